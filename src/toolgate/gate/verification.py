"""Comparing the audit with its seals: every row and seal that does not fit is named."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, func, select

from toolgate.db.engine import Database
from toolgate.db.tables import audit, audit_head, audit_seals
from toolgate.gate.seals import BEGINNING, ENTRY, LAST_OF_SQLITE, digests, seal_hash

NOT_IN_CHAIN = "noted head not in the chain"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it was sealed."""

    what: str
    seq: int
    """The audit row, or the seal where `what` speaks of one."""
    until: int | None = None
    """The last of several, where they are told together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What `audit verify` found."""

    rows: int
    seals: int
    unsealed: int
    head: str
    findings: list[Finding]
    noted_seal: int | None = None
    """The seal whose hash is the head that was asked for; 0 for the beginning of the chain."""


async def verify(database: Database, head: bytes | None = None) -> Verdict:
    """Check every seal and every sealed row; name each that does not fit.

    `head` is the hash of a seal that was noted earlier: is it still in the chain?
    """
    return await database.read(lambda connection: _Verification(connection, head).verdict())


class _Verification:
    """Follows the chain from its beginning."""

    def __init__(self, connection: Connection, head: bytes | None) -> None:
        self._connection = connection
        self._head = head
        self._findings: list[Finding] = []
        self._removed_seals: list[range] = []
        self._previous, self._number = BEGINNING, 0
        self._rows = self._seals = self._last_sealed = 0
        self._noted_seal = 0 if head == BEGINNING else None

    def verdict(self) -> Verdict:
        """What is found."""
        # Asked for first: what others add meanwhile makes neither look too great.
        last_row = self._last_row()
        newest = self._connection.execute(select(audit_head.c.number, audit_head.c.hash)).first()
        head_hash = bytes(newest.hash) if newest else None
        at_newest = BEGINNING
        for seal in _seals(self._connection):
            self._follow(seal)
            if newest and self._number <= newest.number:
                at_newest = self._previous
        self._missing("seal", self._number, newest.number if newest else 0)
        if newest is None:
            self._find("note of the newest seal removed", self._number)
        elif newest.number <= self._number and head_hash != at_newest:
            self._find("seal changed", newest.number)
        unsealed = self._loose()
        self._missing("row", self._newest_row(), last_row)
        if self._head is not None and self._noted_seal is None:
            self._find(NOT_IN_CHAIN, self._number)
        return Verdict(
            rows=self._rows,
            seals=self._seals,
            unsealed=unsealed,
            head=self._previous.hex(),
            findings=list(dict.fromkeys(self._findings)),
            noted_seal=self._noted_seal,
        )

    def _follow(self, seal: RowMapping) -> None:
        number: int = seal["number"]
        self._missing("seal", self._number, number - 1)
        if seal["previous"] != self._previous or seal["hash"] != seal_hash(seal):
            self._find("seal changed", number)
        self._findings += self._check_rows(seal)
        self._previous, self._number = bytes(seal["hash"]), number
        self._rows, self._seals = self._rows + seal["rows"], self._seals + 1
        if self._head == self._previous:
            self._noted_seal = number

    def _check_rows(self, seal: RowMapping) -> list[Finding]:
        complete_bytes = len(seal["entries"]) // ENTRY.size * ENTRY.size
        sealed: dict[int, bytes] = dict(ENTRY.iter_unpack(seal["entries"][:complete_bytes]))
        self._last_sealed = max(self._last_sealed, *sealed, 0)
        mine = select(audit).where(audit.c.seq.in_(sealed) | (audit.c.seal == seal["number"]))
        rows = {row["seq"]: row for row in self._connection.execute(mine).mappings()}
        sealed_digests = set(sealed.values())
        findings: list[Finding] = []
        for seq, right in sealed.items():
            row = rows.get(seq)
            if row is None:
                findings.append(Finding("row removed", seq))
            elif right not in (now := digests(row)):
                findings.append(
                    Finding("row reordered" if now & sealed_digests else "row changed", seq)
                )
            elif row["seal"] != seal["number"]:
                findings.append(Finding("row taken out of its seal", seq))
        findings += [Finding("row added", seq) for seq in rows if seq not in sealed]
        return sorted(findings, key=lambda one: one.seq)

    def _loose(self) -> int:
        """Name rows under seals that do not exist; how many rows wait for a seal."""
        its_seal = select(audit_seals.c.number).where(audit_seals.c.number == audit.c.seal)
        lost = select(audit.c.seq, audit.c.seal).where(
            audit.c.seal.is_not(None), ~its_seal.exists()
        )
        for row in self._connection.execute(lost.order_by(audit.c.seq)):
            if not any(row.seal in removed for removed in self._removed_seals):
                self._find("row under a seal that does not exist", row.seq)
        waiting = select(func.count()).select_from(audit).where(audit.c.seal.is_(None))
        return self._connection.scalar(waiting) or 0

    def _last_row(self) -> int:
        """The number of the last row that was ever stored, where the database keeps it."""
        if self._connection.dialect.name != "sqlite":
            return 0  # PostgreSQL counts numbers too that were given to no row
        return self._connection.scalar(LAST_OF_SQLITE.statement) or 0

    def _newest_row(self) -> int:
        """The last row that is there, or is already told to be missing."""
        stored: int = self._connection.scalar(select(func.max(audit.c.seq))) or 0
        return max(stored, self._last_sealed)

    def _missing(self, what: str, last: int, until: int) -> None:
        """Name what should stand between two numbers, the second one included."""
        if until == last + 1:
            self._find(f"{what} removed", until)
        elif until > last:
            self._findings.append(Finding(f"{what}s removed", last + 1, until))
        if what == "seal":
            self._removed_seals.append(range(last + 1, until + 1))

    def _find(self, what: str, seq: int) -> None:
        self._findings.append(Finding(what, seq))


def _seals(connection: Connection) -> Iterator[RowMapping]:
    following = select(audit_seals).order_by(audit_seals.c.number).limit(1)
    seal = connection.execute(following).mappings().first()
    while seal is not None:
        yield seal
        after = following.where(audit_seals.c.number > seal["number"])
        seal = connection.execute(after).mappings().first()
