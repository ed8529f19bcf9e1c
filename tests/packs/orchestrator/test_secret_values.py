"""Credentials in plain text: which are told from ordinary values, and which values are not."""

from typing import Any

import pytest

from toolgate.packs.orchestrator.secret_values import REDACTED, redacted, secret_in

KEY = "tg_" + "0123456789abcdef" + "_" + "0123456789abcdef" * 4
SECRETS: dict[str, tuple[str, Any]] = {
    # by name
    "name": ("custom.password", "hunter22"),
    "name-before-value": ("custom.db_password.value", "hunter22"),
    "name-in-humps": ("a", {"dbPassword": "hunter22"}),
    "name-with-space": ("a", {"password ": "hunter22"}),
    "name-short": ("custom.pwd", "hunter22"),
    "name-of-number": ("a", {"password": 12345678}),
    "name-outside": ("a", {"password": {"v": "hunter22"}}),
    "name-outside-list": ("a", {"password": [{"value": ["hunter22"]}]}),
    "name-of-aws": ("a", {"AWS_SECRET_ACCESS_KEY": "hunter22"}),
    "name-of-token": ("a", {"deep": {"token": "hunter22"}}),
    "name-in-capitals": ("a", {"APIKey": "hunter22"}),
    # by form
    "aws": ("a", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    "basic": ("a", "curl -H 'Authorization: Basic dXNlcjpodW50ZXIyMg=='"),
    "basic-header": ("a", {"Authorization": "Basic dXNlcjpodW50ZXIyMg=="}),
    "bearer": ("a", "authorization: Bearer abcdef0123456789"),
    "npm": ("a", "npm_" + "a1B2" * 9),
    "google": ("a", "ya29." + "a0AfH6SM" * 4),
    "pgp": ("a", "-----BEGIN PGP PRIVATE KEY BLOCK-----"),
    "toolgate-after-letter": ("a", "x" + KEY),
    "toolgate-before-letter": ("a", KEY + "x"),
    "url-without-user": ("a", "redis://:hunter22@cache/0"),
    "url-in-capitals": ("a", "POSTGRES://u:hunter22@db/x"),
    "key-of-object": ("a", {KEY: 1}),
    "among-many": ("a", ["a"] * 1000 + ["ghp_" + "a" * 36]),
}
HONEST: dict[str, tuple[str, Any]] = {
    "reference": ("mail.password", "env:MAIL_PASSWORD"),
    "reference-inside": ("a", {"password": {"value": "vault:mail"}}),
    "policy": ("custom.password.min_length", 12345),
    "policy-object": ("a", {"password": {"min_length": 12, "hint": "Use a manager."}}),
    "switch": ("a", {"password": True, "secret": None, "token": 3, "api_key": ""}),
    "limits": ("a", {"max_tokens": 4096, "token_limit": "4000", "tokens": 100000}),
    "ids": ("a", {"key": "a", "access_key_id": "b", "secretary": "c", "passwords": "none"}),
    "words": ("a", "Basic authentication; Authorization: Bearer <token> or $TOKEN."),
    "authorization": ("a", {"authorization": "rbac"}),
    "placeholder": ("a", "postgres://user:<password>@host/db"),
    "port": ("a", "http://host:8080/path@x"),
    "public-key": ("a", "-----BEGIN PGP PUBLIC KEY BLOCK-----"),
    "npm-word": ("a", "npm_config_registry and npm_lifecycle_event"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_found(name: str) -> None:
    key, value = SECRETS[name]
    found = secret_in(key, value)
    assert found is not None
    assert "hunter22" not in found


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_value_is_left_alone(name: str) -> None:
    assert secret_in(*HONEST[name]) is None


def test_a_text_is_kept_without_its_secrets() -> None:
    told = f"no answer of https://me:word@host with x{KEY} or Authorization: Basic dXNlcjpodW50"
    kept = f"no answer of {REDACTED}host with x{REDACTED} or Authorization: {REDACTED}"
    assert redacted(told) == kept
