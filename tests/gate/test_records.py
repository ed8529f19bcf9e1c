"""What an audit row is made of."""

from datetime import UTC, datetime, timedelta

from toolgate.db.tables import audit
from toolgate.gate.principal import Audited
from toolgate.gate.records import Record, timestamp


def test_a_record_has_every_column_but_the_numbers_in_order() -> None:
    columns = [column.name for column in audit.c]
    assert list(Record._fields) == [one for one in columns if one not in ("seq", "seal")]


def test_what_is_known_of_the_caller_stands_together() -> None:
    """Pipeline and record rely on it: the caller's part is put in as it is."""
    first = Record._fields.index(Audited._fields[0])
    assert Record._fields[first : first + len(Audited._fields)] == Audited._fields


def test_a_moment_is_utc_with_microseconds() -> None:
    for seconds in (0.0, -3600.0, 0.25, 86400.0):
        told = datetime.fromisoformat(timestamp(seconds=seconds))
        assert abs(told - datetime.now(UTC) - timedelta(seconds=seconds)) < timedelta(seconds=5)
        assert len(timestamp(seconds=seconds)) == 27
