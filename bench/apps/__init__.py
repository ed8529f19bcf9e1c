"""The servers that are measured beside toolgate, each a process of its own."""
