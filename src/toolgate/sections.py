"""Every setting, section by section."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from toolgate.setting_types import HostPorts, Numbers, Paths, Section, Words
from toolgate.storage_sections import (
    BlobSettings,
    ChangeSettings,
    DatabaseSettings,
    DocumentSettings,
    GitHubSettings,
    GoogleSettings,
    TreeSettings,
)

SHORTEST_ADMIN_KEY = 16
"""Characters."""


class ServerSettings(Section):
    """Where the server listens, and which requests it accepts."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=8765, ge=0, le=65535, description="Port to listen on; 0 picks a free one."
    )
    workers: int = Field(default=1, ge=1, le=64, description="Number of server processes.")
    allowed_hosts: Words = Field(
        default=("localhost", "127.0.0.1", "[::1]"),
        description="Values of `Host` that are accepted; `*` for any.",
    )
    allowed_origins: Words = Field(
        default=(), description="Web origins that may call, in addition to those on allowed hosts."
    )
    public_url: str | None = Field(
        default=None,
        description="URL under which clients reach this server, such as "
        "`https://tools.example.com`; if unset, it is derived from each request.",
    )
    trusted_proxies: Words = Field(
        default=(),
        description="Addresses or networks of proxies whose X-Forwarded-* headers are used.",
    )
    drain_seconds: float = Field(
        default=7.0,
        ge=0,
        le=3600,
        description="Time that running calls have to finish after SIGTERM; then they are answered "
        "with 503.",
    )
    https: bool = Field(
        default=False, description="Serve HTTPS with a locally created certificate."
    )
    known_heads: bool = Field(
        default=True,
        description="Answer requests with recently seen headers without parsing these again.",
    )


class LimitSettings(Section):
    """How much one caller may ask for."""

    calls_per_minute: int = Field(
        default=600,
        ge=0,
        description="Calls per minute per caller, including lists of tools, resources and prompts, "
        "and other MCP messages over HTTP; 0 for no limit.",
    )
    tool_calls_per_minute: Numbers = Field(
        default={},
        description="Calls per minute per caller for single tools, by name; 0 for no limit.",
    )
    refusals_per_minute: int = Field(
        default=60,
        ge=1,
        description="Refusals (unknown or forbidden tools, unknown paths, unreadable messages, "
        "missing credentials) per minute per caller, or per address if the caller is not known. "
        "Past it the answer is 429, and one audit row stands for many.",
    )
    guesses_per_minute: int = Field(
        default=20,
        ge=1,
        description="Wrong credentials per minute that are looked up for one address "
        "(IPv6: one /64).",
    )
    sign_ins_per_minute: int = Field(
        default=60,
        ge=1,
        description="Client registrations per minute per address, and as many sign-ins; "
        "ten times as many token requests and pages.",
    )
    store: str = Field(
        default="async+memory://",
        repr=False,
        description="Where calls are counted: `async+memory://` in each process, "
        "`async+redis://HOST:PORT` across all processes.",
    )
    body_bytes: int = Field(
        default=4 * 1024 * 1024,
        ge=1024,
        description="Largest request body; of a tool that takes files, larger by a file.",
    )
    result_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, description="Largest result.")
    attachment_bytes: int = Field(
        default=10 * 1024 * 1024,
        ge=1024,
        description="Largest attachment of a result, or file in a request, in bytes before base64.",
    )
    unsent_attachment_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=1024,
        description="Bytes of attachments per process that clients have not read yet. One caller "
        "holds about half of them at most; past it the answer is 429. As many of other answers; "
        "past it the connections that are read slowest are closed.",
    )
    concurrency: int = Field(
        default=64, ge=1, description="Concurrent calls per process; further ones wait."
    )
    slow_concurrency: int = Field(
        default=64,
        ge=1,
        description="The same for tools that are declared slow; they delay no other calls. One "
        "caller holds at most half of them, so that others find some.",
    )
    seconds: float = Field(
        default=60.0, gt=0, description="Time limit for one call. A tool may set a shorter one."
    )
    slow_seconds: float = Field(
        default=10800.0, gt=0, description="The same for tools that are declared slow."
    )
    head_bytes: int = Field(
        default=64 * 1024, ge=1024, description="Largest request line and headers together."
    )
    head_lines: int = Field(
        default=100, ge=16, description="Maximum number of headers of a request."
    )
    head_seconds: float = Field(
        default=10.0,
        gt=0,
        description="Time limit for a request's headers to arrive, and for a TLS handshake.",
    )
    body_seconds: float = Field(
        default=30.0, gt=0, description="Time limit for a request's body to arrive."
    )
    connections: int | None = Field(
        default=None,
        ge=16,
        description="Open connections per process; if unset, as many as its open-file limit "
        "allows, 10000 at most.",
    )


class PackSettings(Section):
    """Which packs of tools are there."""

    enabled: Words | None = Field(
        default=None,
        description="Names of the packs to load, those of other installed packages included; "
        "unless set, those that ship with toolgate and have all of their tools. `toolgate packs` "
        "lists which are enabled.",
    )


class PolicySettings(Section):
    """Who may do what, beyond the built-in rules."""

    switches: ClassVar[Mapping[str, str]] = {
        "read_only": "read_only",
        "disabled": "disabled",
    }

    folder: Path | None = Field(default=None, description="Folder with your own .cedar rules.")
    read_only: bool = Field(default=False, description="Refuse every write by every tool.")
    disabled: Words = Field(
        default=(),
        description="Tools and packs that are switched off; they exist for nobody. "
        "`toolgate switch` adds to them while servers run.",
    )


class McpSettings(Section):
    """How MCP clients see the tools."""

    underscore_names: bool = Field(
        default=False, description="List `db.task.get` as `db_task_get`; calls accept both."
    )
    sessions: int = Field(
        default=32,
        ge=1,
        le=1000,
        description="Open sessions per caller and process (clients of the older protocol); the "
        "longest-idle one makes room for a new one.",
    )
    streams: int = Field(
        default=32,
        ge=1,
        le=1000,
        description="Open event streams per caller and process.",
    )


class SignInSettings(Section):
    """How a person proves who they are before a client may act for them."""

    provider: Literal["admin_key", "site", "oidc"] = Field(
        default="admin_key",
        description="`admin_key`: the admin key or another key, on toolgate's page. `site`: the "
        "app's own site, which returns a Firebase ID token. `oidc`: any OpenID Connect provider.",
    )
    site_url: str | None = Field(
        default=None, description="With `site`: the page that signs users in, `https://…/token`."
    )
    firebase_project: str | None = Field(
        default=None, description="With `site`: the Firebase project that issues ID tokens."
    )
    firebase_keys_url: str = Field(
        default="https://www.googleapis.com/service_accounts/v1/jwk/"
        "securetoken@system.gserviceaccount.com",
        description="With `site`: URL of the JWK set that signs ID tokens.",
    )
    oidc_issuer: str | None = Field(
        default=None, description="With `oidc`: the provider's issuer URL."
    )
    oidc_client_id: str | None = Field(
        default=None, description="With `oidc`: toolgate's client id at the provider."
    )
    oidc_client_secret: str | None = Field(
        default=None,
        repr=False,
        description="With `oidc`: the client secret, if the provider issued one.",
    )


class OAuthSettings(Section):
    """Tokens issued to clients for the people who sign in."""

    registration: bool = Field(default=True, description="Allow clients to register themselves.")
    client_documents: bool = Field(
        default=True,
        description="Allow a client id to be the URL of the client's metadata document, which is "
        "then fetched. Set it to false if this server cannot reach other hosts: clients then "
        "register.",
    )
    admin_key_client: bool = Field(
        default=False,
        description="Allow an admin key as client id from anywhere. On loopback it is always "
        "allowed; elsewhere the key would be in URLs and in logs of them.",
    )
    cookie: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="Name of the sign-in cookie, for a proxy that forwards one cookie only: "
        "`__session` behind Firebase Hosting. If unset, each sign-in has a cookie of its own.",
    )
    access_minutes: float = Field(
        default=15, gt=0, le=1440, description="Lifetime of an access token."
    )
    refresh_days: float = Field(
        default=30, gt=0, le=3650, description="Lifetime of an unused refresh token."
    )


class OutboundSettings(Section):
    """Requests that toolgate sends to addresses which others choose."""

    allow: HostPorts = Field(
        default=(),
        description="`HOST:PORT` that may be reached at the request of others (a client's "
        "metadata document) although its address is private, also without TLS. All else must be "
        "public, over HTTPS on port 443.",
    )


class ExtendSettings(Section):
    """Your own tools."""

    tools: Paths = Field(
        default=(),
        description="File with your own tools, or several files: `tools.py`, `tools.yaml` or "
        "`tools.json`.",
    )
    base_url: str | None = Field(
        default=None, description="URL that the paths of route tools are appended to."
    )
    seconds: float = Field(default=30.0, gt=0, description="Time limit for one request to a route.")
    identity: Literal["none", "headers", "key"] = Field(
        default="headers",
        description="What a route learns about the caller: nothing; the headers X-Toolgate-User, "
        "X-Toolgate-Roles and X-Request-Id; or these and the key in extend.key.",
    )
    key: str | None = Field(
        default=None,
        repr=False,
        description="With identity `key`: sent as `Authorization: Bearer KEY`.",
    )
    reload: bool = Field(
        default=False, description="Reload the files when one changes; also --reload."
    )


class WorkflowSettings(Section):
    """Background work."""

    concurrency: int = Field(
        default=8, ge=1, le=64, description="Concurrent runs per process; further ones wait."
    )
    lease_seconds: float = Field(
        default=30.0,
        ge=1,
        le=3600,
        description="So long after a process has died, another one goes on with its runs.",
    )
    days: int = Field(
        default=30, ge=1, le=36500, description="How long runs that have ended are kept."
    )


class LogSettings(Section):
    """What servers write to standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        description="Lowest level that toolgate and your own tools log; libraries log from "
        "`warning`.",
    )
    format: Literal["text", "json"] = Field(
        default="text", description="`text` for people, `json` for one object per line."
    )
    requests: bool = Field(
        default=False,
        description="Log every call: request id, caller, tool, status and duration, never "
        "arguments. Past a limit, only the first of each minute.",
    )


class Settings(Section):
    """Everything that can be set; each pack in use adds a section of its name."""

    borrowed: ClassVar[Mapping[str, str]] = {"BACKEND_MANAGER_KEY": "admin_key"}

    data: Path = Field(
        default=Path(".toolgate"), description="Folder for everything toolgate stores."
    )
    admin_key: str | None = Field(
        default=None,
        min_length=SHORTEST_ADMIN_KEY,
        repr=False,
        description=f"Admin key, at least {SHORTEST_ADMIN_KEY} characters "
        "(`openssl rand -hex 32` makes one); also TOOLGATE_ADMIN_KEY or BACKEND_MANAGER_KEY. "
        "If unset, one is created at the first start.",
    )
    server: ServerSettings = ServerSettings()
    database: DatabaseSettings = DatabaseSettings()
    documents: DocumentSettings = DocumentSettings()
    tree: TreeSettings = TreeSettings()
    blobs: BlobSettings = BlobSettings()
    changes: ChangeSettings = ChangeSettings()
    limits: LimitSettings = LimitSettings()
    policy: PolicySettings = PolicySettings()
    mcp: McpSettings = McpSettings()
    packs: PackSettings = PackSettings()
    sign_in: SignInSettings = SignInSettings()
    oauth: OAuthSettings = OAuthSettings()
    outbound: OutboundSettings = OutboundSettings()
    extend: ExtendSettings = ExtendSettings()
    workflows: WorkflowSettings = WorkflowSettings()
    google: GoogleSettings = GoogleSettings()
    github: GitHubSettings = GitHubSettings()
    log: LogSettings = LogSettings()

    def section(self, of_pack: str) -> Section:
        """The settings of a pack; empty ones where it has none."""
        return self.__dict__.get(of_pack) or Section()

    @property
    def database_url(self) -> str:
        """The database's address; the embedded one unless told otherwise."""
        return self.database.url or f"sqlite:///{self.data / 'toolgate.db'}"
