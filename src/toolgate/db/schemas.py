"""A set of tables with a history of its own: the gate's, and one for every pack that has tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable

from sqlalchemy import MetaData

from toolgate.db.tables import metadata

REVISION = re.compile(r"""^revision\b[^=\n]*=\s*["']([^"'\n]*)""", re.MULTILINE)

UPGRADE = re.compile(r"^(?:def )?upgrade\b|\bimport\b.*\bupgrade\b", re.MULTILINE)


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
        return sorted(self._files)

    @cached_property
    def _files(self) -> dict[str, Traversable]:
        files = resources.files(self.migrations).iterdir()
        return {one.name.partition("_")[0]: one for one in files if one.name[:4].isdigit()}

    @property
    def misnamed(self) -> Iterator[tuple[str, str]]:
        """Files of migrations whose name has another revision than they say, with the latter."""
        for revision, file in self._files.items():
            said = REVISION.search(file.read_text(encoding="utf-8"))
            if said is None or said[1] != revision:
                yield file.name, said[1] if said else "none"

    @property
    def without_upgrade(self) -> Iterator[str]:
        """Files of migrations that have nothing to run."""
        for file in self._files.values():
            if not UPGRADE.search(file.read_text(encoding="utf-8")):
                yield file.name

    @property
    def pack(self) -> str | None:
        """The pack whose tables these are; None for the gate's."""
        return None if self is GATE else self.version_table.removesuffix("_version")

    def describe(self, revision: str | None) -> str:
        """A revision of these tables, in words."""
        return f"schema {revision or 'none'}{f' of pack {self.pack!r}' if self.pack else ''}"

    @property
    def newest(self) -> str:
        """The revision that this version needs."""
        return self.revisions[-1]


GATE = Schema(metadata, "toolgate.db.migrations.versions", "alembic_version")
