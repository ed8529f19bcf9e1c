"""What others read as it stands: no credentials in it, and no characters that nobody sees."""

from functools import partial
from typing import Any

from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.packs.orchestrator.long_texts import examine
from toolgate.packs.orchestrator.pack import secret_message
from toolgate.packs.orchestrator.secret_values import secret_in, texts_in
from toolgate.packs.orchestrator.tools.json_values import size_of
from toolgate.packs.orchestrator.unseen_text import hidden_characters_in


async def check_kept(caller: str, **fields: Any) -> None:
    """Raise where one of these arguments holds what is not kept."""
    for field, value in fields.items():
        if value is not None:
            await examine(caller, size_of(field, value), partial(_check, field, value))


def check_characters(field: str, value: Any) -> None:
    """Raise where a text in a value holds characters that nobody sees."""
    for text in texts_in(value):
        if hidden := hidden_characters_in(text):
            message = f"{field} holds characters that nobody sees ({hidden}). Leave them out"
            raise InvalidArguments([Problem(field, "format", message)])


def _check(field: str, value: Any) -> None:
    check_characters(field, value)
    if secret := secret_in("", value):
        raise InvalidArguments([Problem(field, "secret", secret_message(field, secret))])
