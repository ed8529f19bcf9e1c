"""The configuration of MCP clients: what each wants, and where it keeps it."""

import json
import os
import shlex
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from toolgate.cli.problems import Stop

Entry = dict[str, Any]
INPUT_ID = "toolgate-key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
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
class Client:
    """One client's configuration."""

    title: str
    file: Path
    section: str
    entry: Entry
    inputs: list[Entry] = field(default_factory=list[Entry])
    command: str | None = None
    """What to paste into a terminal instead of editing the file."""
    hint: str = ""

    def wanted(self, name: str) -> Entry:
        """The file's content, if there was nothing else in it."""
        whole: Entry = {self.section: {name: self.entry}}
        return whole | {"inputs": self.inputs} if self.inputs else whole


def claude_code(server: Server) -> Client:
    """Claude Code: the project's .mcp.json, or a command."""
    key = server.key or f"${{{server.variable}}}"
    header = f' --header "Authorization: Bearer {server.key or f"${server.variable}"}"'
    sign_in = "In Claude Code, /mcp opens a browser to sign in." if server.signs_in else None
    return Client(
        title="Claude Code",
        file=Path(".mcp.json"),
        section="mcpServers",
        entry={"type": "http", "url": server.url, **server.headers(key)},
        command=f"claude mcp add --transport http {server.name} {server.url}"
        + ("" if server.signs_in else header),
        hint=_sentences(
            sign_in or _from_variable(server),
            server.ca
            and f"Start it with NODE_EXTRA_CA_CERTS={shlex.quote(str(server.ca))}, "
            "or let this machine trust that CA.",
        ),
    )


def claude_desktop(server: Server) -> Client:
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
    without = "the server answers nothing" if bridged else "only public tools are there"
    hint = "" if server.key else f"Without a key {without}; give one with --key."
    return Client(
        title="Claude Desktop",
        file=_desktop_folder() / "claude_desktop_config.json",
        section="mcpServers",
        entry=entry,
        hint=hint,
    )


def cursor(server: Server) -> Client:
    """Cursor: the project's .cursor/mcp.json."""
    key = server.key or f"${{env:{server.variable}}}"
    sign_in = "Cursor opens a browser to sign in." if server.signs_in else None
    return Client(
        title="Cursor",
        file=Path(".cursor/mcp.json"),
        section="mcpServers",
        entry={"url": server.url, **server.headers(key)},
        hint=_sentences(sign_in or _from_variable(server), _trusted(server)),
    )


def vscode(server: Server) -> Client:
    """VS Code: the workspace's .vscode/mcp.json; it asks for the key and keeps it safe."""
    key = server.key or f"${{input:{INPUT_ID}}}"
    ask: Entry = {
        "type": "promptString",
        "id": INPUT_ID,
        "description": "toolgate key",
        "password": True,
    }
    return Client(
        title="VS Code",
        file=Path(".vscode/mcp.json"),
        section="servers",
        entry={"type": "http", "url": server.url, **server.headers(key)},
        inputs=[] if server.key or server.signs_in else [ask],
        hint=_sentences(_vscode_hint(server), _trusted(server)),
    )


def _vscode_hint(server: Server) -> str:
    if server.signs_in:
        return "VS Code opens a browser to sign in."
    return "" if server.key else "VS Code asks for the key at the first start."


CLIENTS = {
    "claude-code": claude_code,
    "claude-desktop": claude_desktop,
    "cursor": cursor,
    "vscode": vscode,
}


def _sentences(*said: str | None) -> str:
    return " ".join(one for one in said if one)


def _trusted(server: Server) -> str:
    if server.ca is None:
        return ""
    return f"This machine has to trust {server.ca}; `toolgate serve` prints the command."


def _from_variable(server: Server) -> str:
    return "" if server.key else f"The key is taken from the environment: {server.variable}."


def _desktop_folder() -> Path:
    match sys.platform:
        case "darwin":
            return Path.home() / "Library/Application Support/Claude"
        case "win32":
            return Path.home() / "AppData/Roaming/Claude"
        case _:
            return Path.home() / ".config/Claude"


def write(client: Client, name: str) -> bool:
    """Merge the entry into the client's file; False when it was there already.

    Everything else in the file stays; the old file is kept beside it as `.bak`.
    """
    before = _read(client.file)
    after = _merged(before, client, name)
    if after == before:
        return False
    client.file.parent.mkdir(parents=True, exist_ok=True)
    if client.file.exists():
        shutil.copy2(client.file, client.file.with_name(f"{client.file.name}.bak"))
    fresh = client.file.with_name(f"{client.file.name}.new")
    fresh.write_text(json.dumps(after, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if client.file.exists():
        shutil.copymode(client.file, fresh)
    os.replace(fresh, client.file)
    return True


def _read(file: Path) -> Entry:
    if not file.exists():
        return {}
    text = file.read_text(encoding="utf-8-sig")
    try:
        content: Any = json.loads(text) if text.strip() else {}
    except ValueError as problem:
        step = "Correct it, or add the entry by hand (leave out --write)."
        raise Stop(f"{file} is not valid JSON: {problem}. {step}") from None
    return _object(content, file, "it")


def _merged(before: Entry, client: Client, name: str) -> Entry:
    servers = _object(before.get(client.section, {}), client.file, client.section)
    after = before | {client.section: servers | {name: client.entry}}
    if client.inputs:
        asked = before.get("inputs", [])
        if not isinstance(asked, list):
            raise Stop(f"{client.file}: inputs is not a list. Correct it first.")
        known = cast("list[Any]", asked)
        ids = [cast(Entry, one).get("id") for one in known if isinstance(one, dict)]
        after["inputs"] = known + [one for one in client.inputs if one["id"] not in ids]
    return after


def _object(content: Any, file: Path, what: str) -> Entry:
    if not isinstance(content, dict):
        raise Stop(f"{file}: {what} is not a JSON object. Correct it first.")
    return cast(Entry, content)
