"""What an audit row is made of."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, select
from tests.statements import noted_statements

from toolgate.db.engine import Database
from toolgate.db.tables import audit
from toolgate.db.upgrades import upgrade
from toolgate.gate import audit_records
from toolgate.gate.audit_records import COPY, Ended, Record, record_of, timestamp
from toolgate.gate.calls import Call, ended_now
from toolgate.gate.policy import Decision
from toolgate.gate.principal import AuditFields, Role, of_role
from toolgate.gate.seals import store_sealed
from toolgate.gate.verification import verify


def test_a_record_has_every_column_but_the_numbers_in_order() -> None:
    columns = [column.name for column in audit.c]
    assert list(Record._fields) == [one for one in columns if one not in ("seq", "seal")]


def test_what_is_known_of_the_caller_stands_together() -> None:
    """Pipeline and record rely on it: the caller's part is put in as it is."""
    first = Record._fields.index(AuditFields._fields[0])
    assert Record._fields[first : first + len(AuditFields._fields)] == AuditFields._fields


def test_what_the_audit_is_told_of_a_call_has_its_names() -> None:
    """It is made by position, which is quicker."""
    ids = {"task_id": "t"}
    caller = of_role(Role.USER, "key:1", "u1")
    call = Call(tool="x", principal=caller, request_id="r", transport="mcp", ids=ids)
    decision = Decision(visible=True, allowed=True, rule="users")
    ended = ended_now(call, None, decision, time.perf_counter() - 2, "conflict")
    assert (ended.request_id, ended.transport, ended.principal) == ("r", "mcp", caller)
    assert (ended.tool, ended.allowed, ended.rule) == ("x", True, "users")
    assert (ended.error_type, ended.ids) == ("conflict", ids)
    assert ended.nanoseconds > 10**18
    assert ended.seconds >= 2


def test_a_moment_is_utc_with_microseconds() -> None:
    for seconds in (0.0, -3600.0, 0.25, 86400.0):
        told = datetime.fromisoformat(timestamp(seconds=seconds))
        assert abs(told - datetime.now(UTC) - timedelta(seconds=seconds)) < timedelta(seconds=5)
        assert len(timestamp(seconds=seconds)) == 27


def of_caller(number: int, caller: int) -> Record:
    principal = of_role(Role.USER, f"key:{caller}", f"u{caller}")
    return record_of(
        Ended(f"r{number}", "mcp", principal, "help.get", True, "users", None, None, 0, 0.002)
    )


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("rows", "callers", "statements"), [(237, 1, 15), (237, 3, 45), (237, 237, 15), (1, 1, 1)]
)
async def test_many_rows_take_few_statements_whoever_called(
    database_url: str, rows: int, callers: int, statements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(database_url)
    await upgrade(database)
    records = [of_caller(number, number % callers) for number in range(rows)]
    copy, copied = audit_records._copy, list[str]()

    def counted_copy(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        copied.append(COPY)
        copy(connection, rows)

    monkeypatch.setattr(audit_records, "_copy", counted_copy)
    with noted_statements() as seen:
        await database.write(lambda connection: store_sealed(connection, records))
    stored = [one for one in seen + copied if one.startswith(("INSERT INTO audit ", "COPY audit "))]
    assert 1 <= len(stored) <= (1 if copied else statements)
    columns = [audit.c[name] for name in Record._fields]
    stored = await database.read(
        lambda connection: connection.execute(select(*columns).order_by(audit.c.seq)).all()
    )
    assert [tuple(row) for row in stored] == [tuple(one) for one in records]
    assert (await verify(database)).findings == []
    await database.close()
