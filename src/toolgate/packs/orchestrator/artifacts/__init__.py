"""Artifacts: files that agents keep for a task."""
