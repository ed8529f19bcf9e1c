"""One technology a folder, each giving a port. Only `app.py` and `testing/` know them."""
