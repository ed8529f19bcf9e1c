"""One file a revision, named by it."""
