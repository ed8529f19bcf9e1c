"""Contacts and campaigns, and who may be sent them."""
