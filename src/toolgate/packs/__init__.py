"""The ready tools: one folder a pack, one module a family."""
