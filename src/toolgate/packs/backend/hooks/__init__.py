"""Hooks: what an operator registers by name, in a file, for `run_hook` to run."""
