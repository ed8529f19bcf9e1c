"""The tables of pack `backend`, and what reads and writes them."""
