"""The configuration of MCP clients: what each wants, and where it keeps it."""

import json
import shlex
import sys
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, cast

from toolgate.cli.commented_json import with_item, with_member, without_comments
from toolgate.cli.problems import Stop

Entry = dict[str, Any]
INPUT_ID = "toolgate-key"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDetails:
    """What a client has to know of this server."""

    name: str
    url: str
    key: str | None
    """The key itself, where somebody asked for it to be written down."""
    variable: str
    """The environment variable the client takes the key from."""
    command: str
    arguments: list[str]
    ca: Path | None = None
    """The local CA that the client has to trust, where the server has one."""
    signs_in: bool = False
    """Whether a person signs in with a browser, instead of a key."""

    def headers(self, key: str) -> Entry:
        """The client's part that holds the key; nothing where a person signs in."""
        return {} if self.signs_in else {"headers": {"Authorization": f"Bearer {key}"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """One client's configuration."""

    title: str
    file: Path
    section: str
    entry: Entry
    inputs: list[Entry] = field(default_factory=list[Entry])
    command: str | None = None
    """What to paste into a terminal instead of editing the file."""
    hint: str = ""
    holds_key: bool = False
    """Whether the key itself is in the entry, because somebody asked for it."""

    def content(self, name: str) -> Entry:
        """The file's content, if there was nothing else in it."""
        entry: Entry = {self.section: {name: self.entry}}
        return entry | {"inputs": self.inputs} if self.inputs else entry


def add_to_claude_code(name: str, url: str, key: str | None = "${TOOLGATE_KEY}") -> str:
    """The command that adds a server to Claude Code.

    The quotes keep a variable from the shell, so that its name and not the key is stored; the scope
    is the one whose file may name variables.
    """
    header = f" --header {shlex.quote(f'Authorization: Bearer {key}')}" if key else ""
    server = f"{shlex.quote(name)} {shlex.quote(url)}"
    return f"claude mcp add --scope project --transport http {server}{header}"


def claude_code(server: ServerDetails) -> ClientConfig:
    """Claude Code: the project's .mcp.json, or a command."""
    key = server.key or f"${{{server.variable}}}"
    sign_in = "In Claude Code, /mcp opens a browser to sign in." if server.signs_in else None
    return ClientConfig(
        holds_key=bool(server.key),
        title="Claude Code",
        file=Path(".mcp.json"),
        section="mcpServers",
        entry={"type": "http", "url": server.url, **server.headers(key)},
        command=add_to_claude_code(server.name, server.url, None if server.signs_in else key),
        hint=_sentences(
            sign_in or _from_variable(server),
            server.ca
            and f"Start it with NODE_EXTRA_CA_CERTS={shlex.quote(str(server.ca))}, "
            "or let this machine trust that CA.",
        ),
    )


def claude_desktop(server: ServerDetails) -> ClientConfig:
    """Claude Desktop: starts toolgate itself, which opens the data or passes on to a server."""
    if server.signs_in:
        raise Stop(
            "Claude Desktop signs in to servers that are added in Settings, Connectors, as custom "
            f"connectors: {server.url} (it must be https). Leave out --sign-in for its file."
        )
    entry: Entry = {"command": server.command, "args": server.arguments}
    bridged = "--url" in server.arguments
    if server.key:
        # A key made here is looked up; any other can only be the admin key of the settings.
        made_here = server.key.startswith("tg_") or bridged
        entry["env"] = {"TOOLGATE_KEY" if made_here else "TOOLGATE_ADMIN_KEY": server.key}
    without = "the server answers nothing" if bridged else "only public tools are available"
    hint = "" if server.key else f"Without a key {without}; give one with --key."
    return ClientConfig(
        holds_key=bool(server.key),
        title="Claude Desktop",
        file=_desktop_folder() / "claude_desktop_config.json",
        section="mcpServers",
        entry=entry,
        hint=hint,
    )


def cursor(server: ServerDetails) -> ClientConfig:
    """Cursor: the project's .cursor/mcp.json."""
    key = server.key or f"${{env:{server.variable}}}"
    sign_in = "Cursor opens a browser to sign in." if server.signs_in else None
    return ClientConfig(
        holds_key=bool(server.key),
        title="Cursor",
        file=Path(".cursor/mcp.json"),
        section="mcpServers",
        entry={"url": server.url, **server.headers(key)},
        hint=_sentences(sign_in or _from_variable(server), _trust_advice(server)),
    )


def vscode(server: ServerDetails) -> ClientConfig:
    """VS Code: the workspace's .vscode/mcp.json; it asks for the key and keeps it safe."""
    key = server.key or f"${{input:{INPUT_ID}}}"
    ask: Entry = {
        "type": "promptString",
        "id": INPUT_ID,
        "description": "toolgate key",
        "password": True,
    }
    return ClientConfig(
        holds_key=bool(server.key),
        title="VS Code",
        file=Path(".vscode/mcp.json"),
        section="servers",
        entry={"type": "http", "url": server.url, **server.headers(key)},
        inputs=[] if server.key or server.signs_in else [ask],
        hint=_sentences(_vscode_hint(server), _trust_advice(server)),
    )


def _vscode_hint(server: ServerDetails) -> str:
    if server.signs_in:
        return "VS Code opens a browser to sign in."
    return "" if server.key else "VS Code asks for the key at the first start."


CLIENTS = {
    "claude-code": claude_code,
    "claude-desktop": claude_desktop,
    "cursor": cursor,
    "vscode": vscode,
}


def _sentences(*sentences: str | None) -> str:
    return " ".join(one for one in sentences if one)


def _trust_advice(server: ServerDetails) -> str:
    if server.ca is None:
        return ""
    return f"This machine has to trust {server.ca}; `toolgate serve` prints the command."


def _from_variable(server: ServerDetails) -> str:
    return "" if server.key else f"The key is taken from the environment: {server.variable}."


def _desktop_folder() -> Path:
    match sys.platform:
        case "darwin":
            return Path.home() / "Library/Application Support/Claude"
        case "win32":
            return Path.home() / "AppData/Roaming/Claude"
        case _:
            return Path.home() / ".config/Claude"


def write(client: ClientConfig, name: str) -> bool:
    """Merge the entry into the client's file; False when it was there already.

    Everything else in the file stays as it is, comments too. The file as it was before it had this
    entry is kept beside it; later ones are not, since they may hold a key. The file is its owner's
    alone, since it may hold a key, unless it was not before.
    """
    from toolgate.data_folder import write_private

    file = client.file.resolve()  # a link stays a link
    before = file.read_text(encoding="utf-8-sig") if file.exists() else ""
    after = _merge(before, client, name)
    if after is None:
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    if before and name not in _servers(before, client):
        write_private(_free_for_copy(client.file), before)
    mode = file.stat().st_mode if before and not client.holds_key else None
    write_private(file, after)
    if mode is not None:
        file.chmod(mode)
    return True


def _free_for_copy(file: Path) -> Path:
    """Where a copy takes no other copy's place: `.bak`, then `.bak2` and so on."""
    names = (f"{file.name}.bak{number if number > 1 else ''}" for number in count(1))
    return next(one for one in map(file.with_name, names) if not one.exists())


def _servers(text: str, client: ClientConfig) -> Entry:
    content = _read(text, client.file)
    return _object(content.get(client.section, {}), client.file, client.section)


def _merge(before: str, client: ClientConfig, name: str) -> str | None:
    """The file's new text; None when nothing has to change."""
    content = _read(before, client.file)
    servers = _servers(before, client)
    inputs = content.get("inputs", [])
    if not isinstance(inputs, list):
        raise Stop(f"{client.file}: inputs is not a list. Correct it first.")
    ids = [cast(Entry, one).get("id") for one in cast("list[Any]", inputs) if isinstance(one, dict)]
    missing = [one for one in client.inputs if one["id"] not in ids]
    if servers.get(name) == client.entry and not missing:
        return None
    text = with_member(before.strip() or "{}", (client.section, name), client.entry)
    for one in missing:
        text = with_item(text, "inputs", one)
    return text.rstrip() + "\n"


def _read(text: str, file: Path) -> Entry:
    try:
        content: Any = json.loads(without_comments(text)) if text.strip() else {}
    except ValueError as problem:
        step = "Correct it, or add the entry by hand (leave out --write)."
        raise Stop(f"{file} is not valid JSON: {problem}. {step}") from None
    return _object(content, file, "it")


def _object(content: Any, file: Path, what: str) -> Entry:
    if not isinstance(content, dict):
        raise Stop(f"{file}: {what} is not a JSON object. Correct it first.")
    return cast(Entry, content)
