"""A set of tables with a history of its own: the gate's, and one for every pack that has tables."""

from dataclasses import dataclass
from functools import cached_property
from importlib import resources

from sqlalchemy import MetaData

from toolgate.db.tables import metadata


@dataclass(frozen=True)
class Schema:
    """Tables, and the package with the migrations that make them."""

    tables: MetaData
    migrations: str
    version_table: str
    """Where the database notes the revision."""
    shared: tuple[str, ...] = ()
    """Its revisions from the time when all tables had one history, oldest first."""

    @cached_property
    def revisions(self) -> list[str]:
        """Every revision, oldest first; migration files are named by them."""
        files = (file.name for file in resources.files(self.migrations).iterdir())
        return sorted(name.partition("_")[0] for name in files if name[:4].isdigit())

    @property
    def newest(self) -> str:
        """The revision that this version needs."""
        return self.revisions[-1]


GATE = Schema(metadata, "toolgate.db.migrations.versions", "alembic_version")
