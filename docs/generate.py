"""Writes docs/reference from the code.

python -m docs.generate           write the pages
python -m docs.generate --check   exit 1 and name the pages that are stale
"""

import inspect
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from docs.markdown import fenced, page, table
from docs.tools_page import tools_page
from toolgate import packs
from toolgate.cli.main import commands
from toolgate.gate import errors
from toolgate.gate.dialects import ENVELOPE
from toolgate.gate.errors import GateError
from toolgate.gate.rule_schema import ACTIONS, switches_of, vocabulary
from toolgate.gate.rules import shipped_rules
from toolgate.settings import OWN, PREFIX, borrowed, every_setting, setting_fields
from toolgate.transports.http import route_of

FOLDER = Path(__file__).parent / "reference"
WIDTH = 100

ENDPOINTS = (
    (
        "`/mcp`, `/backend-manager/mcp`",
        "a key or token",
        "MCP over Streamable HTTP, 2026-07-28 and older; also with `/` at the end",
    ),
    ("`GET /v1/tools`", "a key or token", "the tools the caller may see, with schemas"),
    ("`POST /v1/tools/{name}`", "a key or token", "call a tool; the body is its arguments as JSON"),
    (
        "`POST /rpc`",
        "a key or token",
        "JSON-RPC 2.0; the method is a tool's name; batches of up to 100",
    ),
    ("`GET /openapi.json`", "a key or token", "OpenAPI 3.1 of the tools the caller may see"),
    ("`GET /metrics`", "the role `admin`", "metrics in Prometheus' text format"),
    (
        "`GET /.well-known/oauth-protected-resource`",
        "nothing",
        "the authorization server for `/mcp` and `/backend-manager/mcp` (append the path)",
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
    ("`POST /backend-manager/mcp/revoke`", "nothing", "revoke a token; also `/revoke`"),
    ("`GET /`", "nothing", "a page, or text, that says what this is; `/favicon.ico` and `.svg`"),
    ("`OPTIONS`, any path", "an allowed `Origin`", "CORS preflight"),
    ("`GET /healthz`", "nothing", "the process is alive"),
    (
        "`GET /readyz`",
        "nothing",
        "200 if calls can be answered, otherwise 503 with what fails: "
        "`database`, `audit`, `counters` (the counter store), `documents`, `blobs`",
    ),
)
REQUEST_HEADERS = (
    ("`Authorization: Bearer …`", "who is calling: a key or an access token"),
    (
        "`X-Request-Id`",
        "your id for the request: 1 to 128 characters of `A-Z a-z 0-9 . _ : / + = -`, and not of "
        "the form of a generated one (`tg` and 32 hexadecimal digits); any other is replaced. The "
        "audit stores it beside the caller: it is what the client says, so two requests may have "
        "the same. Each row has an id of its own (`id`)",
    ),
    (
        "`X-Dry-Run: true`",
        "on `/v1/tools/{name}`, routes of tools, `/rpc` and `/mcp`: perform all checks, store "
        "nothing. Any value but `false` asks for it; over MCP also `toolgate/dryRun` in `_meta`",
    ),
    (
        "`Accept`",
        "on `/v1/tools/{name}` and routes of tools, if the result has an attachment: its media "
        "type, or `application/octet-stream`, for the bytes alone; otherwise JSON with base64",
    ),
    ("`Host`", "must be one of `server.allowed_hosts`, otherwise 421; sent twice: 400"),
    (
        "`Origin`",
        "if sent, must be on an allowed host or in `server.allowed_origins`, otherwise 403; a CORS "
        "preflight (`OPTIONS`) from an allowed origin needs no credentials",
    ),
)
ANSWER_HEADERS = (
    ("`X-Request-Id`", "the request's id, yours or a generated one; also in the audit and the log"),
    ("`Retry-After`", "with 429: seconds to wait"),
    (
        "`X-Dry-Run-Changes`",
        "after a dry run, but not on `/mcp`: what would change, as JSON "
        "([Allow writes](../how-to/allow-writes.md))",
    ),
    (
        "`Access-Control-Allow-Origin`, `Access-Control-Expose-Headers`, `Vary: Origin`",
        "for a request with an allowed `Origin`, whatever the status; cookies are never allowed",
    ),
    ("`WWW-Authenticate`", "with 401, and with 403 for insufficient scope: how to get a token"),
)


def settings_page() -> str:
    """Every setting."""
    further = OWN | borrowed(every_setting())
    named = {name: variable for variable, name in further.items() if name}
    rows = ((f"`{name}`", _variable(name), _default(one), one.description) for name, one in KNOWN)
    own = (f"`{variable}` sets `{name}`" for name, variable in named.items())
    return page(
        "Settings",
        "A setting is `limits.seconds` in `toolgate.toml`, `TOOLGATE_LIMITS__SECONDS` in the "
        "environment, and a flag if a command has one. Precedence: flags, the environment, a "
        "`.env` beside the settings file, the settings file. "
        "An unknown name is an error at start that suggests the closest known one. "
        "In the environment, lists are separated by commas or JSON, and tables are JSON.",
        "The settings file is `toolgate.toml` in the working folder, or the one named by "
        "`--config` or `TOOLGATE_CONFIG`. `toolgate init` writes one with every setting. Relative "
        "paths in the file, including the default data folder, are relative to the file's folder; "
        "those in variables or flags, to the working folder.",
        "A `.env` beside the settings file holds variables as `NAME=value`, one per line; those "
        "of other programs are ignored, and paths in it are relative to its folder. Without a "
        "settings file no `.env` is read. `TOOLGATE_KEY` is for clients and is read from the "
        "environment only.",
        table(("setting", "variable", "default", "meaning"), rows),
        "Further variables: " + "; ".join(own) + ".",
    )


KNOWN = setting_fields(every_setting())


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
        "Errors are rendered in the dialect of the tool's pack. `kind` is the stable name, which "
        "the audit stores. Over MCP a failed call is a result with `isError: true`; only an "
        "unknown tool is a protocol error (-32602). On `/rpc` it is a JSON-RPC error.",
        "A caller without valid credentials gets the same 401 for every path, "
        '`{"error": "Unauthorized. …"}`, so that no response shows whether a path exists. '
        "An authenticated caller gets every error in the dialect of the path's pack, also 404, "
        f"405, 413 and 429. {_envelope_text()}",
        table(("class", "kind", "HTTP", "code", "JSON-RPC", "retry", "meaning"), rows),
        f"Nothing in toolgate raises {', '.join(_unused())} yet: they are for packs to come.",
        "`InvalidArguments` is -32301 if the only problems are missing arguments, and -32302 if "
        "they are all wrong types or formats. On `/rpc`, a body that is not JSON is -32700 and a "
        "malformed request -32600.",
        "Audit rows have three further kinds: `cancelled` (the client disconnected), `dry_run`, "
        "and `started` (a write outside the database whose outcome is not known).",
    )


def _envelope_text() -> str:
    """Where errors have a code, and which packs ship that answer so."""
    of_packs = [one for one in packs.offers(packs.SHIPPED) if one.pack.dialect is ENVELOPE]
    tools = [tool for offer in of_packs for tool in offer.tools if tool.route]
    paths = ", ".join(sorted({f"`/{route_of(tool).split('/')[1]}`" for tool in tools}))
    names = ", ".join(f"`{offer.pack.name}`" for offer in of_packs)
    shape = (
        'Where the dialect is `{"error": {"code": "…", "message": "…"}}`, `code` is the one below'
    )
    where = f" (pack {names}: below {paths}, and at `/v1/tools/{{name}}`)" if names else ""
    return f"{shape}{where}."


def _unused() -> Iterator[str]:
    """The errors that no other module of toolgate names."""
    tree = Path(errors.__file__)
    # pack.py names every error, for packs of other packages, and raises none.
    naming = (tree, tree.parents[1] / "pack.py")
    sources = (file.read_text() for file in tree.parents[1].rglob("*.py") if file not in naming)
    named = {word for source in sources for word in re.findall(r"\w+", source)}
    return (f"`{one.__name__}`" for one in error_classes() if one.__name__ not in named)


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
        "Results go to standard output, notes to standard error. Tables and colours appear only in "
        "a terminal. Exit codes: 0 success, 1 failure, 2 wrong usage or settings, 3 refused.",
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
    for name, inner in subcommands(command, context):
        yield from helps(inner, f"{path} {name}", context)


IN_QUERIES = (
    ("string, or anything", 'the text: `q=5` is `"5"`; `q=` is the empty string'),
    ("integer, number, boolean, null", "as in JSON: `limit=5`, `ratio=1e-3`, `active=true`"),
    ("list of these", "the name repeated: `tags=a&tags=b`"),
    ("object, list of objects", 'JSON, percent-encoded where needed: `filter={"a":1}`'),
)


def _routes() -> Iterator[tuple[str, str, str]]:
    for offer in packs.offers(packs.SHIPPED):
        for tool in offer.tools:
            if tool.route:
                link = f"[`{tool.name}`](tools.md#{tool.name})"
                yield f"`{route_of(tool)}`", link, tool.description.partition("\n")[0]


def _pack_headers() -> Iterator[tuple[str, str]]:
    """The headers that fill in an argument on the routes of a pack."""
    for offer in packs.offers(packs.SHIPPED):
        for header in offer.from_request.headers if offer.from_request else ():
            yield f"`{header.name}`", f"on routes of pack `{offer.pack.name}`: {header.description}"


def subcommands(command: Any, context: Any = None) -> list[tuple[str, Any]]:
    """The commands below a command, those of packs included."""
    if not isinstance(command, TyperGroup):
        return []
    return [(name, command.get_command(context, name)) for name in command.list_commands(context)]


def http_page() -> str:
    """Paths and headers."""
    return page(
        "HTTP",
        table(("path", "needs", "what"), ENDPOINTS),
        "If a JSON object has the same name twice, the last value counts.",
        "Response bodies are JSON in the dialect of the tool's pack; "
        "[Errors](errors.md) lists the statuses.",
        "## Routes of tools",
        "Some tools have a route of their own beside `POST /v1/tools/{name}`, with the same "
        "checks, limits and audit. Some headers below fill in an argument of such a route. A "
        "tool of your own that replaces a built-in one also gets its route.",
        table(("route", "tool", "what"), _routes()),
        "Arguments are in the path and the query, with any method but GET also in the body as "
        "JSON, DELETE included; each in one place only. In the path and the query, the declared "
        "type of an argument says how it is written:",
        table(("type", "in a query"), IN_QUERIES),
        "What is not written so is refused as a string in a body would be: `limit=007`, "
        "`active=1`, `ratio=NaN`. Names are never repeated except for lists, and "
        "`filter[a]=1` is another name than `filter`. A GET request with a body is refused with "
        "400: content has no defined meaning there (RFC 9110, section 9.3.1), and leaving it out "
        "would answer another question than was asked.",
        "Of several routes that match a path, the one with fixed text where the others have an "
        "argument is meant. Routes of several packs may begin alike; two tools with the same "
        "method and path are refused at the start. An unknown path is answered in the dialect of "
        'the routes that begin with most of it, and where these differ with `{"error": …}`. '
        "A route that is hidden from the caller is an unknown path.",
        "## Request headers",
        table(("header", "meaning"), [*REQUEST_HEADERS, *_pack_headers()]),
        "## Response headers",
        table(("header", "meaning"), ANSWER_HEADERS),
    )


WORDS = vocabulary(switches_of(every_setting()()))


def _looked_at() -> Iterator[tuple[str, str, str]]:
    for variable, attributes in WORDS.variables.items():
        for name, one in attributes.items():
            values = " or ".join(f"`{value}`" if value else '`""`' for value in one.values)
            meaning = f"{one.meaning}: {values}" if values else one.meaning
            yield f"`{variable}.{name}`", f"`{one.type}`", meaning
    for name, meaning in ACTIONS.items():
        yield f'`action == Action::"{name}"`', "", meaning


def policies_page() -> str:
    """The built-in rules, and what rules can look at."""
    parts = (
        p
        for name, text in shipped_rules(packs.offers(packs.SHIPPED)).items()
        for p in (f"## {name}", _cedar(text))
    )
    return page(
        "Policies",
        "The built-in rules, in [Cedar](https://www.cedarpolicy.com). What no rule permits is "
        "denied; a `forbid` always wins. Your own rules are added to these: "
        "[Write a rule](../how-to/write-a-rule.md).",
        *parts,
        "## What a rule can look at",
        table(("in a rule", "type", "meaning"), _looked_at()),
        "Every rule is checked against this schema, at start and by `toolgate doctor`:",
        fenced(WORDS.schema(), "text"),
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
