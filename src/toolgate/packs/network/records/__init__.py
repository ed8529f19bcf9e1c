"""The records of agents, tasks and skills: documents that are checked when written."""
