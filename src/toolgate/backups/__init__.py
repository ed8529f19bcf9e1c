"""Backups: one moment of the whole database in one file, which both kinds of database take back.

`dump.py` writes it, `load.py` reads it, `archive.py` knows the file, `stored.py` keeps it as blobs.
"""
