"""Nodes: the machines that work for the agents."""
