"""Ports kept in memory: for tests, and for people who write some."""
