"""The tools of pack `backend`, a module a family."""
