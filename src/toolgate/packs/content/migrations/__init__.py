"""Migrations of pack `content`: one file a revision, named by it."""
