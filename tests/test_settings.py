"""Settings: from a file, the environment and flags; a wrong one is named."""

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.needed_packs import needs_pack

from toolgate import packs
from toolgate.document_stores import uses_firestore
from toolgate.settings import (
    BadSettings,
    Settings,
    borrowed,
    every_setting,
    inherited_settings,
    model_of,
    pass_to_workers,
    read_settings,
    setting_fields,
    setting_names,
)

SPACE = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"

SECRETS = {
    "admin_key": "a-secret-admin-key",
    "google.service_account": '{"private_key": "a-secret-account"}',
    "github.token": "a-secret-token",
    "database.url": "postgresql://u:a-secret-password@db/x",
    "limits.store": "async+redis://:a-secret-password@redis:6379",
    "mail.url": "smtp://u:a-secret-password@mail.example",
    "mail.sendgrid_key": "SG.a-secret-key",
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No toolgate.toml of anybody's lies where a test runs."""
    monkeypatch.chdir(tmp_path)


def written(text: str, name: str = "toolgate.toml") -> Path:
    file = Path(name)
    file.write_text(text, encoding="utf-8")
    return file


def value_of(settings: Settings, name: str) -> Any:
    found: Any = settings
    for part in name.split("."):
        found = getattr(found, part)
    return found


def refusal(**sources: Any) -> str:
    with pytest.raises(BadSettings) as refused:
        read_settings(**{"environment": {}, **sources})
    return str(refused.value)


# Three sources --------------------------------------------------------------------------------


def test_without_any_source_the_defaults_count() -> None:
    settings = read_settings(environment={})
    assert settings == model_of(packs.offers())()
    assert settings.database_url == "sqlite:///.toolgate/toolgate.db"
    assert not settings.appdata.writes


def test_the_environment_wins_over_the_file_and_a_flag_over_both() -> None:
    written("[server]\nport = 1\nhost = 'from-file'\nworkers = 2\n")
    environment = {"TOOLGATE_SERVER__PORT": "2", "TOOLGATE_SERVER__HOST": "from-environment"}
    settings = read_settings(environment=environment, flags={"server.port": 3})
    assert settings.server.port == 3
    assert settings.server.host == "from-environment"
    assert settings.server.workers == 2


def test_a_flag_that_was_not_given_changes_nothing() -> None:
    settings = read_settings(
        environment={"TOOLGATE_SERVER__PORT": "2"}, flags={"server.port": None}
    )
    assert settings.server.port == 2


def test_an_empty_variable_is_none() -> None:
    written("[server]\nport = 1\n")
    environment = {"TOOLGATE_SERVER__PORT": "", "MCP_ENABLE_WRITES": "", "TOOLGATE_CONFIG": ""}
    settings = read_settings(environment=environment)
    assert settings.server.port == 1
    assert not settings.appdata.writes


def test_a_named_file_is_read_instead_of_the_usual_one() -> None:
    written("[server]\nport = 1\n")
    other = written("[server]\nport = 2\n", "other.toml")
    assert read_settings(environment={}).server.port == 1
    assert read_settings(environment={"TOOLGATE_CONFIG": "other.toml"}).server.port == 2
    assert (
        read_settings(environment={"TOOLGATE_CONFIG": "toolgate.toml"}, file=other).server.port == 2
    )


def test_a_path_in_a_file_starts_from_the_files_folder() -> None:
    Path("conf").mkdir()
    file = written(
        'data = "kept"\n[policy]\nfolder = "rules"\n[extend]\ntools = "/own/tools.py"\n'
        '[database]\nurl = "sqlite:///db/x.db"\n[google]\ncredentials_file = "../g.json"\n',
        "conf/toolgate.toml",
    )
    settings = read_settings(environment={}, file=file)
    assert settings.data == Path("conf/kept")
    assert settings.policy.folder == Path("conf/rules")
    assert settings.extend.tools == (Path("/own/tools.py"),)
    assert settings.database_url == "sqlite:///conf/db/x.db"
    assert settings.google.credentials_file == Path("conf/../g.json")
    assert read_settings(environment={"TOOLGATE_CONFIG": str(file)}) == settings


def test_every_setting_that_is_a_path_starts_from_the_files_folder() -> None:
    paths = [name for name, one in setting_fields(every_setting()) if "Path" in str(one.annotation)]
    assert "data" in paths
    for name in paths:
        section, _, key = name.rpartition(".")
        text = f"[{section}]\n{key} = 'x'\n" if section else f"{key} = 'x'\n"
        Path("conf").mkdir(exist_ok=True)
        file = written(text, "conf/toolgate.toml")
        found = value_of(read_settings(environment={}, file=file), name)
        assert found in (Path("conf/x"), (Path("conf/x"),)), name


def test_a_path_in_a_variable_or_a_flag_starts_from_the_working_folder() -> None:
    Path("conf").mkdir()
    file = written('data = "a"\n[policy]\nfolder = "b"\n', "conf/toolgate.toml")
    environment = {"TOOLGATE_POLICY__FOLDER": "rules", "TOOLGATE_DATABASE__URL": "sqlite:///x.db"}
    settings = read_settings(environment=environment, file=file, flags={"data": "kept"})
    assert (settings.data, settings.policy.folder) == (Path("kept"), Path("rules"))
    assert settings.database_url == "sqlite:///x.db"


def test_the_usual_data_is_beside_the_file_that_counts() -> None:
    written("")
    assert read_settings(environment={}).data == Path(".toolgate")
    Path("conf").mkdir()
    file = written("", "conf/toolgate.toml")
    assert read_settings(environment={}, file=file).data == Path("conf/.toolgate")


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "sqlite:////whole/x.db", "postgresql://h/x"]
)
def test_an_address_that_is_no_relative_file_stays_as_it_is(url: str) -> None:
    Path("conf").mkdir()
    file = written(f'[database]\nurl = "{url}"\n', "conf/toolgate.toml")
    assert read_settings(environment={}, file=file).database.url == url


VALUES: dict[str, tuple[str, Any]] = {
    "data": ("/data", Path("/data")),
    "admin_key": ("0123456789abcdef", "0123456789abcdef"),
    "server.host": ("::1", "::1"),
    "server.port": ("0", 0),
    "server.workers": ("4", 4),
    "server.allowed_hosts": ("a.example, b.example", ("a.example", "b.example")),
    "server.allowed_origins": ("https://a.example", ("https://a.example",)),
    "database.url": ("sqlite:///x.db", "sqlite:///x.db"),
    "database.prepared_statements": ("false", False),
    "changes.days": ("7", 7),
    "database.unindexed": ("events.payload, *.body", ("events.payload", "*.body")),
    "documents.url": ("firestore://p", "firestore://p"),
    "documents.appdata": ("firestore://p/d", "firestore://p/d"),
    "documents.backend": ("database:", "database:"),
    "documents.network": ("database:", "database:"),
    "contacts.url": ("sendgrid:", "sendgrid:"),
    "contacts.sendgrid_key": ("key", "key"),
    "contacts.sendgrid_url": ("https://x.example", "https://x.example"),
    "contacts.dns_url": ("https://dns.google/resolve", "https://dns.google/resolve"),
    "contacts.mailbox_key": ("key", "key"),
    "contacts.mailbox_url": ("https://x.example", "https://x.example"),
    "push.url": ("fcm://my-project", "fcm://my-project"),
    "push.fcm_url": ("http://127.0.0.1:9399", "http://127.0.0.1:9399"),
    "push.seconds": ("3", 3.0),
    "blobs.url": ("s3://bucket/prefix", "s3://bucket/prefix"),
    "blobs.endpoint": ("http://127.0.0.1:8333", "http://127.0.0.1:8333"),
    "blobs.region": ("eu-central-1", "eu-central-1"),
    "blobs.access_key_id": ("id", "id"),
    "blobs.secret_access_key": ("secret", "secret"),
    "blobs.session_token": ("token", "token"),
    "brand.name": ("Acme", "Acme"),
    "brand.url": ("https://acme.example", "https://acme.example"),
    "brand.contact": ("hello@acme.example", "hello@acme.example"),
    "brand.address": ("1 Main Street", "1 Main Street"),
    "brand.logo": ("https://acme.example/logo.png", "https://acme.example/logo.png"),
    "mail.url": ("smtp://u:p%40@mail.example:25", "smtp://u:p%40@mail.example:25"),
    "mail.starttls": ("never", "never"),
    "mail.ca_file": ("ca.pem", Path("ca.pem")),
    "mail.domain": ("acme.example", "acme.example"),
    "mail.connections": ("8", 8),
    "mail.seconds": ("2.5", 2.5),
    "mail.sendgrid_key": ("SG.x", "SG.x"),
    "mail.sendgrid_url": ("http://127.0.0.1:9", "http://127.0.0.1:9"),
    "mail.groups": ('{"marketing": 5}', {"marketing": 5}),
    "limits.calls_per_minute": ("0", 0),
    "limits.refusals_per_minute": ("5", 5),
    "limits.guesses_per_minute": ("5", 5),
    "limits.sign_ins_per_minute": ("5", 5),
    "server.drain_seconds": ("2.5", 2.5),
    "mcp.sessions": ("3", 3),
    "mcp.streams": ("3", 3),
    "oauth.client_documents": ("false", False),
    "oauth.admin_key_client": ("true", True),
    "limits.tool_calls_per_minute": ('{"db.task.get": 5}', {"db.task.get": 5}),
    "limits.store": ("async+redis://r:1", "async+redis://r:1"),
    "limits.body_bytes": ("2048", 2048),
    "limits.result_bytes": ("4096", 4096),
    "limits.attachment_bytes": ("4096", 4096),
    "limits.unsent_attachment_bytes": ("20480000", 20480000),
    "limits.concurrency": ("1", 1),
    "limits.seconds": ("0.5", 0.5),
    "limits.slow_concurrency": ("3", 3),
    "limits.slow_seconds": ("90", 90.0),
    "backend.metered": ('{"get_user": "requests"}', {"get_user": "requests"}),
    "backend.directory": ("firebase://demo-app", "firebase://demo-app"),
    "backend.directory_url": ("http://127.0.0.1:9099", "http://127.0.0.1:9099"),
    "backend.products": ("products.toml", Path("products.toml")),
    "appdata.collections": ("own.toml", Path("own.toml")),
    "limits.head_bytes": ("8192", 8192),
    "limits.head_lines": ("50", 50),
    "limits.head_seconds": ("2.5", 2.5),
    "limits.body_seconds": ("3.5", 3.5),
    "limits.connections": ("500", 500),
    "policy.folder": ("rules", Path("rules")),
    "policy.read_only": ("true", True),
    "backend.namespace": (SPACE, UUID(SPACE)),
    "backups.keep": ("3", 3),
    "backups.days": ("30", 30),
    "payments.url": ("stripe:", "stripe:"),
    "payments.stripe_secret_key": ("sk_test_1", "sk_test_1"),
    "payments.stripe_webhook_secret": ("whsec_1", "whsec_1"),
    "payments.stripe_url": ("http://127.0.0.1:1", "http://127.0.0.1:1"),
    "payments.return_hosts": ("a.example,b.example", ("a.example", "b.example")),
    "payments.portal_minutes": ("5", 5),
    "payments.keep_days": ("45", 45),
    "payments.stripe_viewing_portal": ("bpc_1", "bpc_1"),
    "payments.seconds": ("2.5", 2.5),
    "backend.hooks": ("hooks.toml", Path("hooks.toml")),
    "backend.environment": ("testing", "testing"),
    "backend.project": ("somiibo-app", "somiibo-app"),
    "backend.version": ("1.2.3", "1.2.3"),
    "content.default_project": ("garden", "garden"),
    "orchestrator.node_inactive_seconds": ("30", 30),
    "orchestrator.task_artifacts": ("5", 5),
    "orchestrator.task_artifact_bytes": ("4096", 4096),
    "orchestrator.skill_patterns": (
        '{"secret_bypass": ["open sesame"]}',
        {"secret_bypass": ("open sesame",)},
    ),
    "policy.disabled": ("db.task.get,web.fetch", ("db.task.get", "web.fetch")),
    "packs.enabled": ("content,backend", ("content", "backend")),
    "mcp.underscore_names": ("1", True),
    "appdata.writes": ("true", True),
    "server.public_url": ("https://t.example", "https://t.example"),
    "server.trusted_proxies": ("10.0.0.0/8, ::1", ("10.0.0.0/8", "::1")),
    "server.https": ("true", True),
    "server.known_heads": ("false", False),
    "sign_in.provider": ("oidc", "oidc"),
    "sign_in.site_url": ("https://app.example/token", "https://app.example/token"),
    "sign_in.firebase_project": ("demo", "demo"),
    "sign_in.firebase_keys_url": ("http://localhost:1/keys", "http://localhost:1/keys"),
    "sign_in.oidc_issuer": ("https://id.example", "https://id.example"),
    "sign_in.oidc_client_id": ("toolgate", "toolgate"),
    "sign_in.oidc_client_secret": ("s3cret", "s3cret"),
    "oauth.cookie": ("__session", "__session"),
    "oauth.registration": ("false", False),
    "oauth.access_minutes": ("5", 5),
    "oauth.refresh_days": ("1", 1),
    "outbound.allow": ("a.example:80, [::1]:8", ("a.example:80", "[::1]:8")),
    "extend.tools": ("tools.json, tools.py", (Path("tools.json"), Path("tools.py"))),
    "extend.base_url": ("https://api.example", "https://api.example"),
    "extend.seconds": ("3", 3.0),
    "extend.identity": ("none", "none"),
    "extend.key": ("k1", "k1"),
    "extend.reload": ("true", True),
    "workflows.concurrency": ("2", 2),
    "workflows.lease_seconds": ("5", 5.0),
    "workflows.days": ("7", 7),
    "network.data_bytes": ("2048", 2048),
    "tree.url": ("rtdb://demo-app", "rtdb://demo-app"),
    "github.url": ("https://git.example/api/v3", "https://git.example/api/v3"),
    "github.token": ("a-token", "a-token"),
    "posts.url": ("github://o/r", "github://o/r"),
    "posts.branch": ("site", "site"),
    "posts.committer_name": ("Site Bot", "Site Bot"),
    "posts.committer_email": ("bot@example.com", "bot@example.com"),
    "posts.authors": ("jane, joe", ("jane", "joe")),
    "posts.layout": ("post", "post"),
    "google.credentials_file": ("/key.json", Path("/key.json")),
    "google.service_account": ("{}", "{}"),
    "google.emulator_host": ("localhost:8080", "localhost:8080"),
    "log.level": ("debug", "debug"),
    "log.format": ("json", "json"),
    "log.requests": ("true", True),
}


@pytest.mark.parametrize("name", setting_names(every_setting()))
def test_every_setting_can_be_given_in_the_environment(name: str) -> None:
    text, value = VALUES[name]
    variable = "TOOLGATE_" + name.upper().replace(".", "__")
    environment = {"TOOLGATE_PACKS__ENABLED": ",".join(packs.SHIPPED), variable: text}
    assert value_of(read_settings(environment=environment), name) == value


@pytest.mark.parametrize("name", setting_names(every_setting()))
def test_every_setting_says_what_it_is_for(name: str) -> None:
    field = dict(setting_fields(every_setting()))[name]
    assert field.description


@pytest.mark.parametrize(
    ("variable", "name", "text", "value"),
    [
        ("MCP_ENABLE_WRITES", "appdata.writes", "true", True),
        ("GOOGLE_APPLICATION_CREDENTIALS", "google.credentials_file", "/k.json", Path("/k.json")),
        ("FIREBASE_SERVICE_ACCOUNT_KEY", "google.service_account", "{}", "{}"),
        ("FIRESTORE_EMULATOR_HOST", "google.emulator_host", "localhost:8080", "localhost:8080"),
        ("DEFAULT_PROJECT_ID", "content.default_project", "p1", "p1"),
        ("BACKEND_MANAGER_KEY", "admin_key", "0123456789abcdef", "0123456789abcdef"),
        ("BACKEND_MANAGER_NAMESPACE", "backend.namespace", SPACE, UUID(SPACE)),
        ("STRIPE_SECRET_KEY", "payments.stripe_secret_key", "sk_test_1", "sk_test_1"),
        ("STRIPE_WEBHOOK_SECRET", "payments.stripe_webhook_secret", "whsec_1", "whsec_1"),
        ("SENDGRID_API_KEY", "mail.sendgrid_key", "SG.x", "SG.x"),
    ],
)
def test_a_variable_of_another_document_means_what_it_means_there(
    variable: str, name: str, text: str, value: Any
) -> None:
    assert borrowed(every_setting())[variable] == name
    assert value_of(read_settings(environment={variable: text}), name) == value


def test_an_own_variable_wins_over_a_borrowed_one() -> None:
    both = {"TOOLGATE_ADMIN_KEY": "own-0123456789abc", "BACKEND_MANAGER_KEY": "borrowed-01234567"}
    for environment in (both, dict(reversed(both.items()))):
        assert read_settings(environment=environment).admin_key == "own-0123456789abc"


@pytest.mark.parametrize("text", ["false", "0", "no", "off", "False"])
def test_writes_stay_off_when_they_are_switched_off_in_words(text: str) -> None:
    assert not read_settings(environment={"MCP_ENABLE_WRITES": text}).appdata.writes


@pytest.mark.parametrize(
    ("settings", "firestore"),
    [
        ({}, False),
        ({"google.credentials_file": "k.json"}, True),
        ({"google.service_account": "{}"}, True),
        ({"google.emulator_host": "localhost:1"}, False),
        ({"documents.url": "firestore://p"}, True),
        ({"documents.url": "database:", "google.service_account": "{}"}, False),
        ({"documents.backend": "database:", "google.service_account": "{}"}, False),
        ({"documents.appdata": "firestore://p"}, True),
        ({"documents.url": "firestore://p", "documents.appdata": "database:"}, True),
    ],
)
def test_firestore_is_chosen_by_its_address_or_its_credentials(
    settings: dict[str, Any], firestore: bool
) -> None:
    assert uses_firestore(read_settings(environment={}, flags=settings)) == firestore


# Wrong ones -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("servr.port", "server.port"),
        ("limit.seconds", "limits.seconds"),
        ("server.prot", "server.port"),
        ("limits.call_per_minute", "limits.calls_per_minute"),
        ("policy.readonly", "policy.read_only"),
        ("admin_keys", "admin_key"),
    ],
)
def test_an_unknown_setting_is_told_the_nearest(name: str, near: str) -> None:
    variable = "TOOLGATE_" + name.upper().replace(".", "__")
    told = refusal(environment={variable: "5"})
    assert told == f"Unknown setting {name}. Did you mean {near}?"


def test_an_unknown_key_in_the_file_is_told_the_nearest() -> None:
    written("[server]\nprot = 1\n")
    assert refusal() == "Unknown setting server.prot. Did you mean server.port?"


def test_an_unknown_setting_that_is_like_none_is_sent_to_the_documentation() -> None:
    told = refusal(environment={"TOOLGATE_XYZZY": "5"})
    assert told == "Unknown setting xyzzy. See docs/reference/settings.md."


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("server.port", "eighty", "must be a whole number from 0 to 65535, not 'eighty'."),
        ("server.port", 65536, "must be a whole number from 0 to 65535, not 65536."),
        ("server.port", 1.5, "must be a whole number from 0 to 65535, not 1.5."),
        ("server.workers", 0, "must be a whole number from 1 to 64, not 0."),
        ("server.https", "maybe", "must be true or false, not 'maybe'."),
        ("server.host", 5, "must be a text, not 5."),
        ("server.allowed_hosts", 5, "must be a list of texts, or one text with commas, not 5."),
        (
            "outbound.allow",
            "intranet.example",
            "must be a list of texts, or one text with commas, not 'intranet.example'. "
            "Each is HOST:PORT, as in intranet.example:8443.",
        ),
        ("limits.seconds", 0, "must be a number above 0, not 0."),
        ("limits.connections", 1, "must be a whole number, 16 or more, not 1."),
        ("limits.connections", "x" * 99, f"must be a whole number, 16 or more, not '{'x' * 39}…."),
        ("oauth.refresh_days", 4000, "must be a number above 0 and not above 3650, not 4000."),
        ("log.level", "loud", "must be one of: debug, info, warning, error, not 'loud'."),
        ("policy.folder", 5, "must be a path, not 5."),
        ("extend.tools", [5], "must be a path, or a list of paths, not 5."),
        (
            "limits.tool_calls_per_minute",
            "x",
            "must be a table of names, each with a whole number, 0 or more, not 'x'.",
        ),
    ],
)
def test_a_wrong_value_is_told_with_its_rule(name: str, value: Any, told: str) -> None:
    assert refusal(flags={name: value}) == f"Setting {name} {told}"


def test_a_wrong_number_of_a_table_is_named() -> None:
    told = refusal(flags={"limits.tool_calls_per_minute": {"a": -1}})
    assert told == (
        "Setting limits.tool_calls_per_minute.a must be a whole number, 0 or more, not -1."
    )


def test_a_value_in_the_place_of_a_section_is_refused() -> None:
    assert refusal(flags={"server": 5}) == "Setting server is a section; set one of its keys."


def test_a_value_that_may_be_a_secret_is_not_shown() -> None:
    told = refusal(environment={"TOOLGATE_ADMIN_KEY": "too-short"})
    assert told == (
        "Setting admin_key must be a text of 16 characters or more. "
        "`openssl rand -hex 32` makes one."
    )


@pytest.mark.parametrize("name", setting_names(every_setting()))
def test_every_setting_can_say_what_it_must_be(name: str) -> None:
    told = refusal(flags={"packs.enabled": packs.SHIPPED, name: object()})
    assert re.fullmatch(rf"Setting {name} must be (a |one of: |true or false).+", told)


def test_every_wrong_setting_is_named_at_once() -> None:
    told = refusal(flags={"server.port": "x", "limits.seconds": -1, "nothing.here": 1})
    assert all(part in told for part in ("server.port", "limits.seconds", "nothing"))


def test_a_key_below_what_is_no_section_is_refused() -> None:
    written("server = 5\n")
    told = refusal(environment={"TOOLGATE_SERVER__PORT": "1"})
    assert told == "Setting server is a section; set one of its keys."


@pytest.mark.parametrize("text", ["[server\nport = 1", "port = = 1", "\0"])
def test_a_file_that_is_not_toml_is_named(text: str) -> None:
    file = written(text, "wrong.toml")
    assert refusal(file=file).startswith("wrong.toml is not valid TOML: ")


def test_a_file_that_is_not_text_is_named() -> None:
    Path("wrong.toml").write_bytes(b"\xff\xfe\x00")
    assert refusal(file=Path("wrong.toml")).startswith("wrong.toml is not valid TOML: ")


@pytest.mark.parametrize(
    "sources",
    [{"file": Path("missing.toml")}, {"environment": {"TOOLGATE_CONFIG": "missing.toml"}}],
)
def test_a_named_file_that_is_not_there_is_an_error(sources: dict[str, Any]) -> None:
    assert refusal(**sources).startswith("missing.toml is not there.")
    assert "`toolgate init --config missing.toml`" in refusal(**sources)


# Secrets --------------------------------------------------------------------------------------


def test_no_secret_is_shown_when_settings_are_printed() -> None:
    settings = read_settings(environment={}, flags=SECRETS)
    for name, value in SECRETS.items():
        assert value_of(settings, name) == value
    assert "a-secret" not in f"{settings!r} {settings} {settings.database!r} {settings.google!s}"


@pytest.mark.parametrize("name", SECRETS)
def test_no_secret_is_told_when_its_setting_is_wrong(name: str) -> None:
    told = refusal(flags={name: ["a-secret-in-a-list"]})
    assert name in told
    assert "a-secret" not in told


@needs_pack("orchestrator")
def test_worker_processes_get_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGATE_HANDED_DOWN", "")
    flags = {name: value for name, (_, value) in VALUES.items()}
    settings = read_settings(environment={}, flags=flags)
    pass_to_workers(settings)
    assert inherited_settings() == settings
