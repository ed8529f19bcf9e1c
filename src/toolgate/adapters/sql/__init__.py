"""Ports kept in the gate's own database, SQLite or PostgreSQL."""
