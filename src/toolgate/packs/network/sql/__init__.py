"""The pack's own tables, and what reads and writes them."""
