"""One technology a folder, each giving a port; imported by `document_stores.py` and `testing/`."""
