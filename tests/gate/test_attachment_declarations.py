"""Where an attachment may be declared: everywhere that Pydantic looks is looked at."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import pytest
from pydantic import Field, create_model
from pydantic_core import PydanticSerializationError
from tests.gate.tools import a_tool, offer
from typing_extensions import TypeAliasType, TypedDict

from toolgate.gate.attachments import Attachment
from toolgate.gate.context import Context
from toolgate.gate.tool import BadDeclaration, Output
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

Kind = TypeVar("Kind")


@dataclass
class InDataclass:
    """One of the standard library."""

    file: Attachment


@dataclass
class Box(Generic[Kind]):
    """With an attachment beside what is in it."""

    inside: Kind
    file: Attachment | None = None


class InTypedDict(TypedDict):
    """A dict with names."""

    file: Attachment


class InNamedTuple(NamedTuple):
    """A tuple with names."""

    file: Attachment


class InModel(Output):
    """A model inside the Output."""

    file: Attachment


Alias = TypeAliasType("Alias", Attachment)
InAlias = TypeAliasType("InAlias", "list[Attachment]")
Nested = TypeAliasType("Nested", "dict[str, Nested] | Attachment")
NestedText = TypeAliasType("NestedText", "dict[str, NestedText] | str")


def output_of(annotation: Any) -> type[Output]:
    return create_model("Answer", __base__=Output, file=(annotation, ...))


@pytest.mark.parametrize(
    "annotation",
    [
        InDataclass,
        Box[int],
        InTypedDict,
        InNamedTuple,
        InModel,
        InAlias,
        Nested,
        list[Alias],
        Mapping[str, Annotated[Attachment | None, Field()]],
        Attachment | str,
    ],
    ids=[
        "a dataclass",
        "a generic dataclass",
        "a TypedDict",
        "a NamedTuple",
        "a model",
        "an alias",
        "an alias of itself",
        "a list of an alias",
        "a mapping",
        "a union",
    ],
)
def test_one_inside_something_else_is_refused(annotation: Any) -> None:
    with pytest.raises(BadDeclaration, match="wrong has an attachment inside file: make it a"):
        a_tool("wrong", gives=output_of(annotation))


@pytest.mark.parametrize(
    "annotation",
    [
        Attachment,
        Attachment | None,
        Alias,
        Alias | None,
        Annotated[Attachment, "mark"],
        Annotated[Attachment, "mark"] | None,
        Annotated[Alias | None, Field(description="A file.")],
    ],
    ids=["plain", "optional", "alias", "optional alias", "mark", "optional mark", "all"],
)
async def test_every_way_to_write_a_field_is_understood(tmp_path: Path, annotation: Any) -> None:
    model = output_of(annotation)

    async def get(ctx: Context[Any], args: Any) -> Any:
        return model(file=Attachment.of(b"Hello"))

    async with opened_kit(tmp_path, plugins=offer(a_tool("file.get", get, gives=model))) as kit:
        outcome = await kit.call("file.get")
    assert outcome.attached is not None
    assert outcome.attached.data == b"Hello"


def test_a_type_inside_of_itself_is_looked_at_once() -> None:
    assert a_tool("plain", gives=output_of(NestedText)).attachment_field is None


class Anything(Output):
    """What its declaration says nothing of."""

    file: Any


@pytest.mark.parametrize("model", [InModel, Anything], ids=["declared", "not declared"])
def test_one_that_nobody_took_out_is_never_null_in_json(model: type[Output]) -> None:
    with pytest.raises(PydanticSerializationError, match=r"nowhere else|unknown type"):
        model(file=Attachment.of(b"Hello")).body()
