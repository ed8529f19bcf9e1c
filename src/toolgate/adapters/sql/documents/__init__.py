"""Documents in tables of the gate's database, indexed by every field as Firestore does it.

`store` is the port, `index` what is kept of each document, `reading` how documents are read by
their ids, `writing` how they are written step by step and `rows` in one statement, `transaction`
how they are read and written as one. `plans` says which part of the index a query reads, `search`
and `statements` how, `results` what it returns; `build` gives an index to documents without one.
"""

from toolgate.adapters.sql.documents.build import IndexBuild, Progress
from toolgate.adapters.sql.documents.store import SqlDocuments

__all__ = ["IndexBuild", "Progress", "SqlDocuments"]
