"""Help for agents: guides, and a page for every tool that the caller sees."""
