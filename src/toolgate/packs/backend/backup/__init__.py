"""Backups of the gate's database among the pack's blobs."""
