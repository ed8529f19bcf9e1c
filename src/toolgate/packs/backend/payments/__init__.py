"""Payments: what is paid elsewhere, and the records of users that follow it."""
