"""The tools of pack `appdata`, a module a family."""
