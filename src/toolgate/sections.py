"""Everything that can be set, section by section."""

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _split(value: object) -> object:
    """A list from the environment is one text with commas."""
    if not isinstance(value, str):
        return value
    return tuple(word.strip() for word in value.split(",") if word.strip())


def _read_json(value: object) -> object:
    """A table from the environment is one JSON text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


Words = Annotated[tuple[str, ...], BeforeValidator(_split)]
Numbers = Annotated[dict[str, Annotated[int, Field(ge=0)]], BeforeValidator(_read_json)]


class Section(BaseModel):
    """Settings that belong together; unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Server(Section):
    """Where the server listens, and whom it answers."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=8765, ge=0, le=65535, description="Port to listen on; 0 picks a free one."
    )
    workers: int = Field(default=1, ge=1, le=64, description="Processes that answer.")
    allowed_hosts: Words = Field(
        default=("localhost", "127.0.0.1", "[::1]"),
        description="Host names a request may be addressed to; `*` for any.",
    )
    allowed_origins: Words = Field(
        default=(), description="Web origins that may call, beside those on the allowed hosts."
    )
    public_url: str | None = Field(
        default=None,
        description="Address under which clients reach this server, such as "
        "`https://tools.example.com`; unless set, it is read from each request.",
    )
    trusted_proxies: Words = Field(
        default=(),
        description="Addresses or networks of reverse proxies whose X-Forwarded-* headers count.",
    )
    drain_seconds: float = Field(
        default=7.0,
        ge=0,
        le=3600,
        description="How long running calls may still take after SIGTERM; then they are answered "
        "with 503.",
    )
    https: bool = Field(
        default=False, description="Serve HTTPS with a certificate made on the spot."
    )
    known_heads: bool = Field(
        default=True,
        description="Answer requests whose headers came a moment ago without parsing them again.",
    )


class DatabaseSettings(Section):
    """Where toolgate keeps its own data."""

    url: str | None = Field(
        default=None,
        repr=False,
        description="`sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`; "
        "unless set, a SQLite file in the data folder.",
    )


class Documents(Section):
    """Where the application's documents are."""

    url: str | None = Field(
        default=None, description="`firestore://PROJECT`; unless set, the database holds them."
    )


class LimitSettings(Section):
    """How much one caller may ask for."""

    calls_per_minute: int = Field(
        default=600, ge=0, description="Calls a minute a caller; 0 for no limit."
    )
    tool_calls_per_minute: Numbers = Field(
        default={},
        description="Calls a minute a caller for single tools, by name; 0 for no limit.",
    )
    refusals_per_minute: int = Field(
        default=60,
        ge=1,
        description="Refusals a minute (unknown or forbidden tools, unreadable messages, missing "
        "credentials) a caller, or an address where no caller is known. Past it the answer is 429, "
        "and one audit row stands for many.",
    )
    guesses_per_minute: int = Field(
        default=20,
        ge=1,
        description="Wrong credentials a minute that are looked up for one address "
        "(IPv6: one /64).",
    )
    sign_ins_per_minute: int = Field(
        default=60,
        ge=1,
        description="Clients that one address may register in a minute, and sign-ins it may begin; "
        "of token requests and pages ten times as many.",
    )
    store: str = Field(
        default="async+memory://",
        repr=False,
        description="Where calls are counted: `async+memory://` for each process by itself, "
        "`async+redis://HOST:PORT` for all together.",
    )
    body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, description="Longest request body.")
    result_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, description="Longest answer.")
    concurrency: int = Field(
        default=64, ge=1, description="Calls that run at once; further ones wait."
    )
    seconds: float = Field(default=60.0, gt=0, description="Longest time for one call.")
    head_bytes: int = Field(
        default=64 * 1024, ge=1024, description="Longest request line and headers together."
    )
    head_lines: int = Field(default=100, ge=16, description="Most headers of a request.")
    head_seconds: float = Field(
        default=10.0, gt=0, description="Longest time until a request's headers have arrived."
    )
    body_seconds: float = Field(
        default=30.0, gt=0, description="Longest time until a request's body has arrived."
    )
    connections: int | None = Field(
        default=None,
        ge=16,
        description="Open connections of one process; unless set, as many as its limit of open "
        "files allows, 10000 at most.",
    )


class AppData(Section):
    """Pack `appdata`."""

    writes: bool = Field(
        default=False, description="Whether documents may be created; also MCP_ENABLE_WRITES=true."
    )


class ContentSettings(Section):
    """Pack `content`."""

    default_project: str = Field(
        default="00000000-0000-4000-a000-000000000001",
        description="Project of an HTTP request that names none; also DEFAULT_PROJECT_ID.",
    )


class PolicySettings(Section):
    """Who may do what, beyond the built-in rules."""

    folder: Path | None = Field(default=None, description="Folder with further .cedar rules.")
    read_only: bool = Field(default=False, description="Refuse every write of every tool.")
    pm_adds_images: bool = Field(
        default=False, description="Whether a project manager may allow further sandbox images."
    )
    disabled: Words = Field(default=(), description="Tools that are switched off.")


class McpSettings(Section):
    """How MCP clients see the tools."""

    underscore_names: bool = Field(
        default=False, description="List `db_task_get` for `db.task.get`; calls understand both."
    )
    sessions: int = Field(
        default=32,
        ge=1,
        le=1000,
        description="Sessions that one caller may have open in one process (clients of the older "
        "protocol); the one idle for longest makes room for a new one.",
    )
    streams: int = Field(
        default=32,
        ge=1,
        le=1000,
        description="Event streams that one caller may have open in one process.",
    )


class SignIn(Section):
    """How a person proves who they are before a client may act for them."""

    provider: Literal["admin_key", "site", "oidc"] = Field(
        default="admin_key",
        description="`admin_key`: the admin key, on a page of ours. `site`: the app's own site, "
        "which hands back a Firebase ID token. `oidc`: any OpenID Connect provider.",
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
        description="With `site`: where the keys of ID tokens are published, as a JWK set.",
    )
    oidc_issuer: str | None = Field(
        default=None, description="With `oidc`: the provider's issuer address."
    )
    oidc_client_id: str | None = Field(
        default=None, description="With `oidc`: our client id at the provider."
    )
    oidc_client_secret: str | None = Field(
        default=None, repr=False, description="With `oidc`: our secret, if the provider gave one."
    )


class OAuth(Section):
    """Tokens that clients get for the people who sign in."""

    registration: bool = Field(default=True, description="Whether clients may register themselves.")
    client_documents: bool = Field(
        default=True,
        description="Whether a client's id may be the address of a document about it, which is "
        "then fetched. Set it to false where this server cannot reach other hosts: clients then "
        "register.",
    )
    admin_key_client: bool = Field(
        default=False,
        description="Whether an admin key may be the client id, from everywhere. On loopback "
        "it may always; elsewhere the key would stand in addresses and their logs.",
    )
    access_minutes: float = Field(default=15, gt=0, le=1440, description="Life of an access token.")
    refresh_days: float = Field(
        default=30, gt=0, le=3650, description="Life of a refresh token that is not used."
    )
    private_client_documents: bool = Field(
        default=False,
        description="Whether client documents may lie on private or local addresses (for tests).",
    )


class Extend(Section):
    """Tools of your own."""

    tools: Path | None = Field(
        default=None,
        description="File with tools of your own: `tools.py`, `tools.yaml` or `tools.json`.",
    )
    base_url: str | None = Field(
        default=None, description="Address that route tools' paths are appended to."
    )
    seconds: float = Field(default=30.0, gt=0, description="Longest time for one route call.")
    identity: Literal["none", "headers", "key"] = Field(
        default="headers",
        description="What a route is told of the caller: nothing; the headers X-Toolgate-User, "
        "X-Toolgate-Roles and X-Request-Id; or these and the key of extend.key.",
    )
    key: str | None = Field(
        default=None,
        repr=False,
        description="With identity `key`: sent as `Authorization: Bearer KEY`.",
    )
    reload: bool = Field(
        default=False, description="Load the file again whenever it changes; also --reload."
    )


class LogSettings(Section):
    """What servers write to standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        description="From which level on toolgate and tools of your own are logged; libraries from "
        "`warning` on.",
    )
    format: Literal["text", "json"] = Field(
        default="text", description="`text` for people, `json` for one object a line."
    )
    requests: bool = Field(
        default=False,
        description="Whether every call is logged: request id, caller, tool, status and duration, "
        "never arguments. Past a limit only the first of a minute is.",
    )


class Google(Section):
    """Credentials of Google Cloud, from the variables Google's own tools use."""

    credentials_file: Path | None = Field(
        default=None, description="Service account file; also GOOGLE_APPLICATION_CREDENTIALS."
    )
    service_account: str | None = Field(
        default=None,
        repr=False,
        description="Service account as JSON text; also FIREBASE_SERVICE_ACCOUNT_KEY.",
    )
    emulator_host: str | None = Field(
        default=None, description="HOST:PORT of a Firestore emulator; also FIRESTORE_EMULATOR_HOST."
    )


class Settings(Section):
    """Everything that can be set."""

    data: Path = Field(
        default=Path(".toolgate"), description="Folder for everything toolgate keeps."
    )
    admin_key: str | None = Field(
        default=None,
        min_length=16,
        repr=False,
        description="Admin key, 16 characters or more (`openssl rand -hex 32` makes one); also "
        "TOOLGATE_ADMIN_KEY or BACKEND_MANAGER_KEY. "
        "Unless set, one is made at the first start.",
    )
    server: Server = Server()
    database: DatabaseSettings = DatabaseSettings()
    documents: Documents = Documents()
    limits: LimitSettings = LimitSettings()
    policy: PolicySettings = PolicySettings()
    mcp: McpSettings = McpSettings()
    appdata: AppData = AppData()
    content: ContentSettings = ContentSettings()
    sign_in: SignIn = SignIn()
    oauth: OAuth = OAuth()
    extend: Extend = Extend()
    google: Google = Google()
    log: LogSettings = LogSettings()

    @property
    def database_url(self) -> str:
        """The database's address; the embedded one unless told otherwise."""
        return self.database.url or f"sqlite:///{self.data / 'toolgate.db'}"

    @property
    def uses_firestore(self) -> bool:
        """Firestore is chosen by its address, or by the presence of its credentials."""
        if self.documents.url is not None:
            return self.documents.url.startswith("firestore://")
        return bool(self.google.credentials_file or self.google.service_account)
