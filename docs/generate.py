"""Writes docs/reference from the code.

python -m docs.generate           write the pages
python -m docs.generate --check   exit 1 and name the pages that are stale
"""

import inspect
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from docs.markdown import fenced, page, table
from docs.tools_page import tools_page
from toolgate.cli.main import commands
from toolgate.gate import errors
from toolgate.gate.errors import GateError
from toolgate.gate.rule_schema import ACTIONS, VARIABLES, schema
from toolgate.gate.rules import built_in_rules
from toolgate.settings import BORROWED, OWN, PREFIX, described

FOLDER = Path(__file__).parent / "reference"
WIDTH = 100

ENDPOINTS = (
    ("`/mcp`, `/backend-manager/mcp`", "a key", "MCP over Streamable HTTP, 2026-07-28 and older"),
    ("`GET /v1/tools`", "a key", "the tools the caller may see, with schemas"),
    ("`POST /v1/tools/{name}`", "a key", "call a tool; the body is its arguments as JSON"),
    ("`GET /api/…`", "a key", "the tools of pack `content`, each at the address its entry names"),
    ("`POST /rpc`", "a key", "JSON-RPC 2.0; the method is a tool's name; batches of up to 100"),
    ("`GET /openapi.json`", "a key", "OpenAPI 3.1 of the tools the caller may see"),
    ("`GET /metrics`", "an admin key", "figures in Prometheus' text format"),
    (
        "`GET /.well-known/oauth-protected-resource`",
        "nothing",
        "who gives out tokens for `/mcp` and `/backend-manager/mcp` (append the path)",
    ),
    (
        "`GET /.well-known/oauth-authorization-server`",
        "nothing",
        "the OAuth 2.1 endpoints below, and what they accept",
    ),
    ("`POST /backend-manager/mcp/register`", "nothing", "register a client; also `/register`"),
    (
        "`GET /backend-manager/mcp/authorize`",
        "nothing",
        "sign a person in and ask for consent; also `/authorize`",
    ),
    (
        "`POST /backend-manager/mcp/token`",
        "nothing",
        "tokens for a code or a refresh token; also `/token`",
    ),
    ("`POST /backend-manager/mcp/revoke`", "nothing", "end a token; also `/revoke`"),
    ("`GET /`", "nothing", "what this is, as a page or as text; `/favicon.ico` and `.svg`"),
    ("`GET /healthz`", "nothing", "the process is alive"),
    (
        "`GET /readyz`",
        "nothing",
        "200 when calls are answered, else 503 with what fails: "
        "`database`, `audit`, `counters` (the counter store), `documents`",
    ),
)
REQUEST_HEADERS = (
    ("`Authorization: Bearer …`", "who is calling: a key or an access token"),
    ("`X-Request-Id`", "your id for the request: 1 to 128 of `A-Z a-z 0-9 . _ : / + = -`"),
    ("`X-Dry-Run: true`", "on `/v1/tools/{name}`, `/rpc` and `/mcp`: all checks, nothing stored"),
    ("`x-project-id`, `x-project-slug`", "below `/api`: the project, by id or by slug"),
    ("cookie `projectId`", "below `/api`: the project, where no header names one"),
    ("`Host`", "must be one of `server.allowed_hosts`, else 421; more than one: 400"),
    (
        "`Origin`",
        "if sent, on an allowed host or in `server.allowed_origins`, else 403; a preflight "
        "(`OPTIONS`) of an allowed origin needs no credentials",
    ),
)
ANSWER_HEADERS = (
    ("`X-Request-Id`", "the id, yours or made up; also in the audit and the log"),
    ("`Retry-After`", "with 429: seconds to wait"),
    (
        "`Access-Control-Allow-Origin`, `Access-Control-Expose-Headers`, `Vary: Origin`",
        "to a request with an allowed `Origin`, whatever the status; cookies are never asked for",
    ),
    ("`WWW-Authenticate`", "with 401, and with 403 for a token without scope: how to get one"),
)


def settings_page() -> str:
    """Every setting."""
    borrowed = {name: variable for variable, name in (OWN | BORROWED).items() if name}
    rows = ((f"`{name}`", _variable(name), _default(one), one.description) for name, one in KNOWN)
    own = (f"`{variable}` sets `{name}`" for name, variable in borrowed.items())
    return page(
        "Settings",
        "A setting has one name in three spellings: `limits.seconds` in `toolgate.toml`, "
        "`TOOLGATE_LIMITS__SECONDS` in the environment, and a flag where a command has one. "
        "Flags win over the environment, the environment over a `.env` beside the settings file, "
        "and that over the settings file. "
        "An unknown name is an error at start that suggests the nearest known one. "
        "In the environment, a list is written with commas and a table as JSON.",
        "The file is `toolgate.toml` where the command runs, or the one named by `--config` or "
        "`TOOLGATE_CONFIG`. `toolgate init` writes one with every setting in it. A relative path "
        "in the file starts from the file's folder, the data folder's too; one in a variable or a "
        "flag starts from the working folder.",
        "A file `.env` beside the settings file holds variables as `NAME=value`, one a line; names "
        "of other programs are ignored, and paths in it start from its folder. Without a settings "
        "file no `.env` is read. `TOOLGATE_KEY` belongs to clients and is read from the "
        "environment only.",
        table(("setting", "variable", "default", "meaning"), rows),
        "Further variables: " + "; ".join(own) + ".",
    )


KNOWN = described()


def _variable(name: str) -> str:
    return f"`{PREFIX}{name.upper().replace('.', '__')}`"


def _default(field: Any) -> str:
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "not set"
    return f"`{json.dumps(value, default=str)}`"


def error_classes() -> list[type[GateError]]:
    """Every class of the tree, in the order of the file."""
    every = cast("list[type[Any]]", [c for _, c in inspect.getmembers(errors, inspect.isclass)])
    tree = [one for one in every if issubclass(one, GateError) and one is not GateError]
    return sorted(tree, key=lambda one: inspect.getsourcelines(one)[1])


def errors_page() -> str:
    """Every way to fail."""
    rows = (
        (f"`{c.__name__}`", f"`{c.kind}`", c.status, f"`{c.code}`", c.rpc, _retry(c), _first(c))
        for c in error_classes()
    )
    return page(
        "Errors",
        "One tree of errors, worded in the dialect of the tool's pack. `kind` is the stable name: "
        "it stands in the audit. Over MCP a failed tool is a result with `isError: true`; only an "
        "unknown tool is a protocol error (-32602). On `/rpc` it is a JSON-RPC error.",
        "A caller without good credentials gets one and the same 401 for every path, "
        '`{"error": "Unauthorized. …"}`, so that no path tells whether it exists or whose it is. '
        "Who is known gets every error of a path in the words of its pack: below `/api` and at "
        "`/v1/tools/{name}` of a tool of `content` that is "
        '`{"error": {"code": "…", "message": "…"}}`, also for 404, 405, 413 and 429.',
        table(("class", "kind", "HTTP", "content code", "JSON-RPC", "retry", "meaning"), rows),
        "`InvalidArguments` is -32301 when all that is wrong is a missing argument, and -32302 "
        "when all is of the wrong type or format. On `/rpc`, a body that is no JSON is -32700 and "
        "a malformed request -32600.",
        "Audit rows know three further kinds: `cancelled` (the client went away), `dry_run`, and "
        "`started` (a write outside the database whose end is not known).",
    )


def _retry(error: type[GateError]) -> str:
    return "yes" if error.retryable else "no"


def _first(error: type[GateError]) -> str:
    return inspect.cleandoc(error.__doc__ or "").partition("\n")[0]


def cli_page() -> str:
    """Every command's help."""
    root = cast(TyperGroup, get_command(commands()))
    parts = (
        part
        for path, text in helps(root, "toolgate")
        for part in (f"## {path}", fenced(text, "text"))
    )
    return page(
        "Command line",
        "Answers go to standard output, notes to standard error. Tables and colours appear only on "
        "a terminal. Exit codes: 0 ok, 1 failed, 2 wrong usage or settings, 3 refused.",
        *parts,
    )


def helps(command: TyperCommand | TyperGroup, path: str, parent: Any = None) -> Iterator[Any]:
    """A command's path and help, and those of its subcommands, in plain text."""
    command.rich_markup_mode = None
    context = command.context_class(
        command,
        parent=parent,
        info_name=path.rpartition(" ")[2],
        terminal_width=WIDTH,
        max_content_width=WIDTH,
    )
    yield path, command.get_help(context)
    for name, inner in getattr(command, "commands", {}).items():
        yield from helps(inner, f"{path} {name}", context)


def http_page() -> str:
    """Paths and headers."""
    return page(
        "HTTP",
        table(("path", "needs", "what"), ENDPOINTS),
        "The body of an answer is JSON in the dialect of the tool's pack; "
        "[Errors](errors.md) lists the statuses.",
        "## Request headers",
        table(("header", "meaning"), REQUEST_HEADERS),
        "## Answer headers",
        table(("header", "meaning"), ANSWER_HEADERS),
    )


def _looked_at() -> Iterator[tuple[str, str, str]]:
    for variable, attributes in VARIABLES.items():
        for name, one in attributes.items():
            values = " or ".join(f"`{value}`" if value else '`""`' for value in one.values)
            meaning = f"{one.meaning}: {values}" if values else one.meaning
            yield f"`{variable}.{name}`", f"`{one.type}`", meaning
    for name, meaning in ACTIONS.items():
        yield f'`action == Action::"{name}"`', "", meaning


def policies_page() -> str:
    """The built-in rules, and what rules can look at."""
    parts = (p for name, text in built_in_rules().items() for p in (f"## {name}", _cedar(text)))
    return page(
        "Policies",
        "The built-in rules, in [Cedar](https://www.cedarpolicy.com). What no rule permits is "
        "denied; a `forbid` always wins. Your own rules come beside them: "
        "[Write a rule](../how-to/write-a-rule.md).",
        *parts,
        "## What a rule can look at",
        table(("in a rule", "type", "meaning"), _looked_at()),
        "Every rule is checked against this schema, at start and by `toolgate doctor`:",
        fenced(schema(), "text"),
    )


def _cedar(text: str) -> str:
    return fenced(text, "cedar")


PAGES = {
    "tools.md": tools_page,
    "settings.md": settings_page,
    "errors.md": errors_page,
    "cli.md": cli_page,
    "http.md": http_page,
    "policies.md": policies_page,
}


def stale() -> list[str]:
    """The pages that are not what the code says."""
    return [name for name, made in PAGES.items() if _stored(FOLDER / name) != made()]


def _stored(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or check them."""
    old = stale()
    if "--check" not in arguments:
        FOLDER.mkdir(exist_ok=True)
        for name in old:
            (FOLDER / name).write_text(PAGES[name](), encoding="utf-8")
        return 0
    for name in old:
        sys.stderr.write(f"docs/reference/{name} is stale: run `python -m docs.generate`.\n")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
