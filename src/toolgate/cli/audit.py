"""`toolgate audit`: who called what, and whether the record is intact."""

import json
import signal
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.cli import environment
from toolgate.cli.keys import DURATION, days
from toolgate.cli.options import (
    AsJson,
    ConfigFile,
    DataFolder,
    GroupOptions,
    command_settings,
    group_options,
)
from toolgate.cli.output import (
    client_label,
    definitions,
    failure,
    printable,
    say,
    say_json,
    success,
    table,
)
from toolgate.cli.problems import ExitCode, Stop
from toolgate.cli.tools import known_tool

if TYPE_CHECKING:
    from toolgate.db.engine import Database
    from toolgate.gate.trail import Row
    from toolgate.gate.verification import Verdict
    from toolgate.settings import Settings

Follow = Annotated[bool, typer.Option("--follow", help="Keep printing new rows.")]
ToolName = Annotated[str | None, typer.Option(metavar="TOOL", help="Only calls to this tool.")]
Who = Annotated[
    str | None,
    typer.Option(
        metavar="WHO",
        help="Only this caller: key or client (id or name), user, grant, agent type or kind.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Only rows from then on: so long ago (30m, 12h, 7d), or a time such as "
        "2026-11-16T08:00, in UTC unless it says otherwise.",
    ),
]
OutcomeName = Annotated[
    str | None,
    typer.Option("--outcome", metavar="OUTCOME", help="Only these: ok, failed or refused."),
]
Limit = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=100_000, help="Maximum number of rows.")
]
Head = Annotated[
    str | None,
    typer.Option(metavar="HASH", help="A head recorded earlier; check that the chain contains it."),
]
LOOK_SECONDS = 0.5
SECONDS_IN_A_DAY = 86_400
BATCH = 1000
HASH_BYTES = 32
COLUMNS = ("row", "time", "via", "who", "client", "tool", "ms", "outcome")


def group() -> typer.Typer:
    """The command group."""
    app = typer.Typer(help="Show the audit, newest last, or verify it.")
    app.callback(invoke_without_command=True)(audit)
    app.command("verify")(verify)
    return app


def audit(
    ctx: typer.Context,
    *,
    follow: Follow = False,
    tool: ToolName = None,
    principal: Who = None,
    since: Since = None,
    outcome: OutcomeName = None,
    limit: Limit = 50,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show the audit, newest last. With --json, one object per line."""
    if ctx.invoked_subcommand:
        ctx.obj = GroupOptions(config, data, as_json)
        return
    settings = command_settings(ctx, config, data)
    show = _show_json if as_json else _show_lines if follow else _show_table
    only = {
        "tool": tool,
        "principal": principal,
        "since": _time(since) if since is not None else None,
        "outcome": _known_outcome(outcome) if outcome is not None else None,
    }
    environment.run_async(lambda: _show(settings, only, limit, follow, show))


def _time(text: str) -> str:
    """A time as rows have it."""
    from toolgate.gate.audit_records import timestamp

    if DURATION.fullmatch(text):
        return timestamp(seconds=-days(text) * SECONDS_IN_A_DAY)
    try:
        given = datetime.fromisoformat(text)
        given = given if given.tzinfo else given.replace(tzinfo=UTC)
        return given.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        raise Stop(
            f"--since {text!r} is no time. Write how long ago, as 30m, 12h or 7d, or a time such "
            "as 2026-11-16T08:00."
        ) from None


def _known_outcome(text: str) -> str:
    from toolgate.gate.trail import OUTCOMES

    if text not in OUTCOMES:
        raise Stop(f"There is no outcome {text!r}. Outcomes: {', '.join(OUTCOMES)}.")
    return text


Show = Callable[[list["Row"]], None]


async def _show(
    settings: "Settings", only: dict[str, Any], limit: int, follow: bool, show: Show
) -> None:
    from toolgate.gate.trail import count, rows

    async with environment.database(settings, existing=True) as database:
        entries = await rows(database, limit=limit, **only)
        if only["tool"] and not await rows(database, limit=1, tool=only["tool"]):
            known_tool(settings, only["tool"])
        if entries or show is not _show_table:
            show(entries)
        else:
            say(_empty_text(only, await count(database)))
        if follow:
            # Row numbers begin at 1; without a row yet, everything is new.
            await _follow(database, only, entries[-1]["seq"] if entries else 0, show)


async def _follow(database: "Database", only: dict[str, Any], after: int, show: Show) -> None:
    import anyio

    from toolgate.gate.trail import rows

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
        while True:
            with anyio.move_on_after(LOOK_SECONDS):
                await anext(received)
                return
            if entries := await rows(database, after=after, limit=BATCH, **only):
                show(entries)
                after = entries[-1]["seq"]


def _cells(row: "Row") -> tuple[str, ...]:
    return (
        str(row["seq"]),
        row["created_at"][:19].replace("T", " "),
        row["transport"],
        _who(row),
        _client(row),
        row["tool_name"],
        str(row["duration_ms"]),
        _outcome(row),
    )


def _client(row: "Row") -> str:
    """What acted, or was changed: the OAuth client, or else the key by its name."""
    client, name = row["client_id"] or "", row["key_name"]
    if client.startswith("key:"):
        return f"{name} {client}" if name else client
    return client_label(row["client_name"], client) if client else name or "-"


def _who(row: "Row") -> str:
    if row["subject_type"] == "anonymous":
        kind, _, peer = row["subject_id"].partition(":")
        return f"public {peer}" if kind == "peer" else "public"
    if row["subject_type"] == "operator":
        return row["subject_id"].replace(":", " ", 1)
    what = f"agent {row['agent_type']}" if row["agent_type"] else row["role_names"] or "public"
    user = f" {row['user_id']}" if row["user_id"] else ""
    return f"{what}{user} {row['subject_id'].removeprefix('key:')}"


def _outcome(row: "Row") -> str:
    is_refusal = row["decision"] == "deny"
    outcome = f"refused: {row['rule']}" if is_refusal else row["error_type"] or "ok"
    return outcome if row["times"] == 1 else f"{outcome}, {row['times']} times"


def _empty_text(only: dict[str, Any], total: int) -> str:
    if not total:
        return "No calls yet."
    options = " ".join(f"--{name} {printable(value)}" for name, value in only.items() if value)
    return f"No rows for {options} (of {total})."


def _show_table(rows: list["Row"]) -> None:
    table(COLUMNS, map(_cells, rows))


def _show_lines(rows: list["Row"]) -> None:
    for row in rows:
        number, time, via, who, client, tool, ms, outcome = map(printable, _cells(row))
        colour = success if outcome == "ok" else failure
        say(f"{number:>6}  {time}  {tool}  {colour(outcome)}  {who}  {client}  {via}  {ms} ms")


def _show_json(rows: list["Row"]) -> None:
    for row in rows:
        say(json.dumps(row, ensure_ascii=False))


def verify(
    ctx: typer.Context,
    *,
    head: Head = None,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Verify every seal and every sealed row; the exit code is 1 on a mismatch.

    Record the head elsewhere and pass it with --head later: that proves that nothing up to it
    was removed or replaced as a whole.
    """
    head_hash = _hash(head) if head is not None else None
    settings = command_settings(ctx, config, data)
    verdict = environment.run_on_database(settings, lambda database: _verify(database, head_hash))
    intact = not verdict.findings
    if as_json or group_options(ctx).as_json:
        say_json({"intact": intact} | asdict(verdict))
    else:
        _print_verdict(verdict, with_head=head_hash is not None)
    raise typer.Exit(ExitCode.OK if intact else ExitCode.FAILED)


def _hash(text: str) -> bytes:
    """A head as `verify` prints it."""
    try:
        digest = bytes.fromhex(text.strip())
    except ValueError:
        digest = b""
    if len(digest) != HASH_BYTES:
        raise Stop(
            f"--head {text!r} is not a hash. Give the 64 digits that `audit verify` printed."
        )
    return digest


async def _verify(database: "Database", head: bytes | None) -> "Verdict":
    from toolgate.gate.verification import verify

    return await verify(database, head)


def _print_verdict(verdict: "Verdict", *, with_head: bool) -> None:
    from toolgate.gate.verification import NOT_IN_CHAIN

    if verdict.findings:
        many = len(verdict.findings)
        say(f"{failure('Not intact:')} {many} finding{'s' if many > 1 else ''}.")
    else:
        say(f"{success('Intact:')} every sealed row is as it was written.")
    waiting = " (sealed about a second after the call)" if verdict.unsealed else ""
    details = {
        "rows": f"{verdict.rows} sealed",
        "seals": str(verdict.seals),
        "unsealed": f"{verdict.unsealed}{waiting}",
        "head": verdict.head,
    }
    if with_head:
        at = verdict.noted_seal
        details["noted"] = "not in the chain" if at is None else f"at seal {at}"
    definitions(details)
    if verdict.findings:
        say()
        for one in verdict.findings:
            until = f" to {one.until}" if one.until else ""
            place = f"the chain has {one.seq} seals" if one.what == NOT_IN_CHAIN else one.seq
            say(f"  {one.what}: {place}{until}")
