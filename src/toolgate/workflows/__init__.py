"""Durable background work: declared by packs, stored as runs, done by whichever server is free."""
