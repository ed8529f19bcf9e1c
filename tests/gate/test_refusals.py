"""Whoever looks for decision=deny in the audit finds every refusal, its rule, and no failure."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.gate.tools import ADMIN, a_tool, offer, only_row, raising, storing
from tests.statements import noted_statements

from toolgate.gate.calls import Call
from toolgate.gate.context import Context
from toolgate.gate.errors import (
    Conflict,
    Forbidden,
    GateError,
    InvalidArguments,
    NotFound,
    PolicyViolation,
    QuotaExceeded,
    TooLarge,
    Unavailable,
)
from toolgate.gate.explanations import Verdict, explain_call
from toolgate.gate.tool import Effect, Input, Output, Target
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

ALLOWED = ("allow", "admin-everything")
ERRORS: dict[str, tuple[GateError, tuple[str, str]]] = {
    "own": (Forbidden("No.", rule="project-role"), ("deny", "project-role")),
    "unnamed": (Forbidden("No."), ("deny", "tool-refused")),
    "content": (PolicyViolation("No.", category="x"), ("deny", "content-policy")),
    "arguments": (InvalidArguments("no"), ("deny", "invalid-arguments")),
    "not_found": (NotFound("No."), ALLOWED),
    "conflict": (Conflict("No."), ALLOWED),
    "quota": (QuotaExceeded("No."), ALLOWED),
    "large": (TooLarge("No."), ALLOWED),
    "outage": (Unavailable("No."), ALLOWED),
}


async def refuses(ctx: Context[Any], args: Any) -> Output:
    raise Forbidden("Not you.", rule="project-role")


class Text(Input):
    text: str


PLUGINS = offer(
    *(a_tool(f"db.read.{name}", raising(error)) for name, (error, _) in ERRORS.items()),
    *(
        a_tool(f"db.write.{name}", raising(error), effect=Effect.WRITE)
        for name, (error, _) in ERRORS.items()
    ),
    replace(a_tool("db.send", refuses, effect=Effect.WRITE), writes=frozenset({Target.OUTSIDE})),
    a_tool("db.text", takes=Text),
    a_tool("db.store", storing(), effect=Effect.WRITE),
)


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path, writes=True, plugins=PLUGINS) as opened:
        yield opened


@pytest.mark.parametrize("way", ["read", "write"])
@pytest.mark.parametrize("name", ERRORS)
async def test_what_a_tool_refuses_is_a_refusal_and_what_fails_is_none(
    kit: Kit, name: str, way: str
) -> None:
    error, expected = ERRORS[name]
    outcome = await kit.call(f"db.{way}.{name}")
    assert (outcome.error_type, outcome.status) == (error.kind, error.status)
    assert (error.rule or "") not in outcome.raw.decode() or error.rule is None
    row = await only_row(kit)
    assert (row["decision"], row["rule"]) == expected
    assert (row["status"], row["error_type"]) == ("error", error.kind)


async def test_arguments_that_break_the_schema_are_refused_by_a_rule_of_their_own(kit: Kit) -> None:
    await kit.call("db.text", text=1)
    row = await only_row(kit)
    assert (row["decision"], row["rule"]) == ("deny", "invalid-arguments")


async def test_a_row_that_was_stored_before_the_write_becomes_a_refusal_too(kit: Kit) -> None:
    await kit.call("db.send")
    row = await only_row(kit)
    assert (row["decision"], row["rule"], row["error_type"]) == (
        "deny",
        "project-role",
        "access_denied",
    )


async def test_a_dry_run_that_is_not_possible_names_its_rule(kit: Kit) -> None:
    outcome = await kit.call("db.send", dry_run=True)
    assert outcome.status == 403
    row = await only_row(kit)
    assert (row["decision"], row["rule"]) == ("deny", "no-dry-run")


# What would become of a call --------------------------------------------------------------------


async def explained(kit: Kit, tool: str, arguments: Any) -> tuple[str, str]:
    gate = kit.app.gate
    found = gate.catalogue.find(tool)
    assert found is not None
    call = Call(
        tool=tool, arguments=arguments, principal=ADMIN, request_id="test", transport="test"
    )
    told = await explain_call(gate, call, found)
    return told.verdict, told.rule


@pytest.mark.parametrize(
    ("arguments", "verdict", "rule"),
    [
        ({"text": "x"}, Verdict.ALLOWED, "admin-everything"),
        ({}, Verdict.INVALID, "invalid-arguments"),
        (TooLarge("Too much."), Verdict.INVALID, "admin-everything"),
        (Unavailable("Not now."), Verdict.FAILED, "admin-everything"),
    ],
    ids=["good", "missing", "large", "outage"],
)
async def test_a_call_is_explained_as_the_gate_would_end_it(
    kit: Kit, arguments: Any, verdict: str, rule: str
) -> None:
    assert await explained(kit, "db.text", arguments) == (verdict, rule)
    await kit.send("db.text", arguments)
    row = await only_row(kit)
    assert row["rule"] == rule


async def test_an_explanation_stores_nothing(kit: Kit) -> None:
    with noted_statements() as statements:
        assert (await explained(kit, "db.store", {}))[0] == Verdict.ALLOWED
    assert statements == []
