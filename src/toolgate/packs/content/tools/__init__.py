"""The tools of pack `content`, a module a family."""
