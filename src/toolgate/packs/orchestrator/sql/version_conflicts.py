"""What is told of a record that is not as its caller expects."""

from toolgate.gate.errors import Conflict


def key_conflict(key: str, version: int) -> Conflict:
    """The record is there already."""
    return Conflict(
        f"{key} exists already, with version {version}. Update it instead.",
        current_version=version,
    )


def version_conflict(current: int | None) -> Conflict:
    """The record has another version than the caller expects."""
    if current is None:
        return Conflict("version conflict: it was changed just now. Read it again.")
    return Conflict(
        f"version conflict: the current version is {current}. Read it again and decide anew.",
        current_version=current,
    )
