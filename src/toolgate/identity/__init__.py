"""Credentials in, `Principal` out."""
