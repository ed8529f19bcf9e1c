"""Texts that operators put into quarantine, in the gate's database."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, select

from toolgate.db.records import delete_records, insert_record
from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import timestamp
from toolgate.packs.orchestrator.skills.store import QuarantinedText
from toolgate.packs.orchestrator.sql.advisory_locks import lock
from toolgate.packs.orchestrator.sql.tables import quarantined_texts

LOCKED = "skill text"


def check_text(connection: Connection, digest: str) -> None:
    """Raise `QuarantinedText`; no operator decides otherwise before the transaction ends."""
    lock(connection, LOCKED, digest)
    if skill_id := find_texts(connection, [digest]).get(digest):
        raise QuarantinedText(skill_id)


def find_texts(connection: Connection, digests: Collection[str]) -> Mapping[str, str]:
    """Of these texts, those in quarantine: as which skill, by digest."""
    columns = quarantined_texts.c
    wanted = select(columns.digest, columns.skill_id).where(columns.digest.in_(digests))
    return {row.digest: row.skill_id for row in connection.execute(wanted)}


def add_text(tx: Transaction, connection: Connection, digest: str, skill_id: str) -> None:
    """Let a text be stored no more; one that is known stays as it is."""
    lock(connection, LOCKED, digest)
    if not find_texts(connection, [digest]):
        row = {"digest": digest, "skill_id": skill_id, "quarantined_at": timestamp()}
        insert_record(tx, connection, quarantined_texts, row)


def remove_text(tx: Transaction, connection: Connection, digest: str) -> None:
    """Let a text be stored again."""
    is_text = quarantined_texts.c.digest == digest
    delete_records(tx, connection, quarantined_texts, [is_text])


def remove_texts_of(tx: Transaction, connection: Connection, skill_id: str) -> bool:
    """Let the texts of a skill be stored again; False where there are none."""
    of_skill = quarantined_texts.c.skill_id == skill_id
    return delete_records(tx, connection, quarantined_texts, [of_skill]) > 0
