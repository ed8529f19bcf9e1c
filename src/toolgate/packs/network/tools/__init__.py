"""Tools of pack `network`, one module a family."""
