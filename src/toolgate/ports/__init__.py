"""What toolgate needs from outside, one protocol a file; adapters give it."""
