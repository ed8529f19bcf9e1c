"""A tree in a table of the gate's database, one row for each scalar.

`store` is the port and how it writes, `paths` how a path is kept, `reading` how parts of the tree
and queries are read, `scans` how children are found, `locks` how writers wait for each
other, `changes` what a write tells the change log.
"""

from toolgate.adapters.sql.tree.store import SqlTree

__all__ = ["SqlTree"]
