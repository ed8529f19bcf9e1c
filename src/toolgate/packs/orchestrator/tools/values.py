"""What tools of settings and of preferences have in common: keys, values and their checks."""

import re
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, JsonValue, ValidationInfo
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT
from toolgate.gate.errors import Forbidden, InvalidArguments, Problem, TooLarge
from toolgate.gate.fields import Between
from toolgate.gate.principal import AgentType, Principal, Role
from toolgate.gate.tool import NAME, Input, Output
from toolgate.packs.orchestrator.long_texts import examine
from toolgate.packs.orchestrator.pack import Paged, Reason
from toolgate.packs.orchestrator.records import Change, Record, fits
from toolgate.packs.orchestrator.secret_values import secret_in
from toolgate.packs.orchestrator.steering import TOOL, tool_of
from toolgate.packs.orchestrator.tools.json_values import size_of
from toolgate.packs.orchestrator.tools.kept_values import check_characters
from toolgate.packs.orchestrator.vocabulary import ValueType, is_reserved

MAX_KEY = 256
MAX_VALUE_BYTES = 1024 * 1024
KEY = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
PREFIX = re.compile(r"[a-z0-9_.-]*")


def _key(value: str, info: ValidationInfo) -> str:
    if not KEY.fullmatch(value):
        raise PydanticCustomError(
            TOLD_FORMAT,
            "{field} must be parts of a-z, 0-9, _ and - with dots between them, such as "
            "output.summary_style",
            {"field": info.field_name},
        )
    return value


def _prefix(value: str, info: ValidationInfo) -> str:
    if not PREFIX.fullmatch(value):
        raise PydanticCustomError(
            TOLD_FORMAT,
            "{field} must be the beginning of a key, of a-z, 0-9, _, - and dots",
            {"field": info.field_name},
        )
    return value


def _setting_key(value: str, info: ValidationInfo) -> str:
    """As a key, but a tool's switch has the tool's name, in which there may be capitals."""
    tool = tool_of(value)
    return value if tool is not None and NAME.fullmatch(tool) else _key(value, info)


def _setting_prefix(value: str, info: ValidationInfo) -> str:
    tool = value.removeprefix(TOOL)
    return value if tool != value and NAME.fullmatch(tool) else _prefix(value, info)


Key = Annotated[str, Field(min_length=1, max_length=MAX_KEY), AfterValidator(_key)]
KeyPrefix = Annotated[str, Field(max_length=MAX_KEY), AfterValidator(_prefix)]
SettingKey = Annotated[str, Field(min_length=1, max_length=MAX_KEY), AfterValidator(_setting_key)]
SettingPrefix = Annotated[str, Field(max_length=MAX_KEY), AfterValidator(_setting_prefix)]
Version = Annotated[int, Between(1, 2**53)]
Value = JsonValue


class KeyedValue(Input):
    """A value to be stored."""

    value: Value = Field(description="The value, of the type that value_type names.")
    value_type: ValueType = Field(description="The type of the value.")
    reason: Reason | None = Field(default=None, description="Why, for the history.")

    def change(self, principal: Principal) -> Change:
        """What is stored for this caller."""
        return Change(
            value=self.value,
            value_type=self.value_type,
            by=principal.id,
            reason=self.reason,
            owner=owner_of(principal),
            limited=Role.ADMIN not in principal.roles,
        )


class Expected(Input):
    """What a record must be to be changed."""

    expected_version: Version | None = Field(
        default=None, description="Do it only if the current version is this."
    )


class Deleted(Expected):
    """Why a record is deleted."""

    reason: Reason | None = Field(default=None, description="Why, for the history.")


class ByPrefix(Paged):
    """Which keys of a list."""

    key_prefix: KeyPrefix = Field(default="", description="Only keys that begin with this.")


class StoredValue(Output):
    """A record as it is stored."""

    key: str = Field(description="Its key.")
    value: Any = Field(description="Its value.")
    value_type: ValueType = Field(description="The type of the value.")
    version: int = Field(description="Grows by at least 1 with every change.")
    updated_at: str = Field(description="When it was changed last, ISO 8601.")
    updated_by: str = Field(description="Who changed it last.")

    @classmethod
    def of(cls, record: Record, **more: Any) -> Self:
        """A record as the tools show it."""
        names = StoredValue.model_fields
        return cls(**{name: getattr(record, name) for name in names}, **more)


class Nothing(Output):
    """The answer of a tool that has nothing to add."""


async def check_value(
    caller: str,
    key: str,
    value: Any,
    value_type: ValueType,
    *,
    nullable: bool,
    most_bytes: int = MAX_VALUE_BYTES,
) -> None:
    """Raise where a value is not of its type, too large, a secret, or holds what nobody sees."""
    if not (nullable and value is None) and not fits(value, value_type):
        instead = ". To unset it, delete it" if value is None else ""
        message = f"value must be of value_type {value_type}; it is {_type_of(value)}{instead}"
        _refuse("type", message)
    size = size_of("value", value)
    if size > most_bytes:
        raise TooLarge(
            f"value has {size} bytes as JSON; at most {most_bytes} are stored. Send less."
        )
    await examine(caller, size, lambda: _check_content(key, value))


def _check_content(key: str, value: Any) -> None:
    check_characters("value", value)
    if secret := secret_in(key, value):
        _refuse(
            "secret",
            f"value looks like {secret}, and records are readable by agents. Keep it in a secret "
            "store and write a reference such as env:NAME",
        )


def check_writable(key: str, principal: Principal, reserved: tuple[str, ...]) -> None:
    """Raise `Forbidden` where only an admin may change a key."""
    if Role.ADMIN in principal.roles:
        return
    if is_reserved(key, reserved):
        listed = ", ".join(f"{one}.*" for one in reserved)
        message = f"{key} can be changed by an admin only, like everything in {listed}."
        raise Forbidden(message, rule="reserved-key")


def owner_of(principal: Principal) -> str:
    """Who is counted where a quota is shared: a user with all keys, or a key that has none."""
    kind, whose = (
        ("key", principal.id) if principal.user_id is None else ("user", principal.user_id)
    )
    return f"{kind}:{whose}"


def check_system_writable(principal: Principal) -> None:
    """Raise `Forbidden` where a caller may not change what applies to everybody.

    A project manager that works for one user, or on one task, would speak to all others' agents.
    """
    if Role.ADMIN in principal.roles:
        return
    of_system = principal.agent_type is AgentType.PM and principal.user_id is None
    if not of_system or principal.bound:
        raise Forbidden(
            "What is the whole system's can be changed by an admin, or by a project manager whose "
            "key has neither a user nor a bound id. Use db.preference.* with the scope of your "
            "user, project or task.",
            rule="system-scope",
        )


def _refuse(rule: str, message: str) -> None:
    raise InvalidArguments([Problem("value", rule, message)])


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
