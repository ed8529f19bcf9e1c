"""The tables of pack `orchestrator`, and what reads and writes them."""
