"""From standard input and output to a running server, and back: `toolgate mcp --url`."""
