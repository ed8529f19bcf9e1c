"""MCP: the SDK's server for everything, and a short way for plain calls and lists."""
