"""How the tables of pack `network` came to be."""
