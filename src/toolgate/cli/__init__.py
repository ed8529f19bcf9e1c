"""The command line: a client of the gate like any other."""
