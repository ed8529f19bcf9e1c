"""Documents in tables of the gate's database, indexed by every field as Firestore does it.

`store` is the port, `index` what is kept of each document, `plans` which part of the index a query
reads, `search` how it reads it, `results` what it returns, `build` how documents get an index that
have none.
"""

from toolgate.adapters.sql.documents.build import IndexBuild, Progress
from toolgate.adapters.sql.documents.store import SqlDocuments

__all__ = ["IndexBuild", "Progress", "SqlDocuments"]
