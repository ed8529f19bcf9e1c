"""The tools of pack `orchestrator`, one module for each family."""
