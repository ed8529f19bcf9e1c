"""One technology a folder, each giving a port. Only `document_stores.py` and `testing/` know them."""
