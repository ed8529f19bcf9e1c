"""How the tables of pack `orchestrator` came to be."""
