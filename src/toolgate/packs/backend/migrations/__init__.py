"""How the tables of pack `backend` came to be."""
