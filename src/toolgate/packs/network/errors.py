"""Errors under the names that the seed of this pack gives them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from toolgate.gate.arguments import shorten_value
from toolgate.gate.errors import (
    Conflict,
    Forbidden,
    InvalidArguments,
    NotFound,
    Problem,
    QuotaExceeded,
    ResultTooLarge,
    TooLarge,
    Unavailable,
)
from toolgate.packs.network.pack import INVALID_PATH
from toolgate.ports.documents import (
    StoreContended,
    StoreDenied,
    StoreExhausted,
    StoreUnavailable,
)
from toolgate.ports.tree import TreeRefused, TreeTooLarge

INVALID_DATA_TYPE = "INVALID_DATA_TYPE"
SIZE_LIMIT = "SIZE_LIMIT_EXCEEDED"


def invalid_path(path: str, message: str, suggestion: str) -> InvalidArguments:
    """A path of the right form that is not of what the operation is for."""
    problem = Problem("path", "format", message, shorten_value(path), suggestion, INVALID_PATH)
    return InvalidArguments([problem])


def invalid_type(value: Any, message: str, suggestion: str) -> InvalidArguments:
    """Data of a type that cannot be stored there."""
    shown = shorten_value(value)
    return InvalidArguments(
        [Problem("data", "type", message, shown, suggestion, INVALID_DATA_TYPE)]
    )


def invalid(field: str, message: str, value: Any = None, suggestion: str = "") -> InvalidArguments:
    """An argument that breaks another rule."""
    problem = Problem(field, "value", message, shorten_value(value), suggestion or None)
    return InvalidArguments([problem])


def not_found(path: str, message: str, suggestion: str) -> NotFound:
    """Nothing is at a path."""
    return NotFound(
        message, field="path", value=shorten_value(path), reason=message, suggestion=suggestion
    )


def too_large(message: str) -> TooLarge:
    """Data over a limit."""
    step = "Store it in several parts."
    return TooLarge(message, field="data", value=None, name=SIZE_LIMIT, suggestion=step)


@contextmanager
def store_errors(field: str = "data") -> Generator[None]:
    """What a store refuses, with the code and the name of the reason; `field` is what it names."""
    try:
        yield
    except TreeTooLarge as large:
        raise ResultTooLarge(str(large), field="path", name=SIZE_LIMIT) from None
    except TreeRefused as refused:
        raise invalid(field, str(refused)) from None
    except StoreContended as contended:
        raise Conflict(str(contended)) from contended
    except StoreDenied as denied:
        raise Forbidden(str(denied), rule="store-denied", name="PERMISSION_DENIED") from denied
    except StoreExhausted as exhausted:
        raise QuotaExceeded(str(exhausted)) from exhausted
    except StoreUnavailable as away:
        raise Unavailable(str(away), name="CONNECTION_ERROR") from away
