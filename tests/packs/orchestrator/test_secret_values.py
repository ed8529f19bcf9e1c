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
    "name-of-many": ("a", {"passwords": ["hunter22", "swordfish1"]}),
    "name-with-number": ("a", {"PASSWORD1": "hunter22", "x": 1}),
    "name-of-database": ("a", {"db_pass": "hunter22"}),
    "name-of-signing": ("a", {"signing_key": "hunter22"}),
    "name-of-encryption": ("a", {"encryptionKey": "hunter22"}),
    "name-beside": ("a", {"name": "password", "value": "hunter22"}),
    "name-beside-in-list": ("a", {"env": [{"name": "DB_PASSWORD", "value": "hunter22"}]}),
    "assigned": ("a", "mysql -u root with password=hunter2"),
    "assigned-in-quotes": ("a", 'DB_PASSWORD = "hunter22"'),
    "assigned-in-sentence": ("a", "The password=hunter2. Do not lose it."),
    "assigned-in-connection": ("a", "Server=db;Uid=sa;Pwd=hunter22;"),
    "assigned-key": ("a", "curl 'https://x.example/?api_key=0123456789abcdef'"),
    "azure": ("a", "AccountName=a;AccountKey=" + "aB3/" * 21 + "aA==;"),
    "hugging-face": ("a", "hf_" + "aBcDeFgHiJ" * 3 + "aBcD"),
    "sendgrid": ("a", "SG." + "a1" * 11 + "." + "b2" * 21 + "c"),
    "slack-webhook": ("a", "https://hooks.slack.com/services/T0AAAAAAA/B0AAAAAAA/" + "aB3x" * 6),
    "bearer-alone": ("a", "Bearer abcdefghijklmnopqrstuvwxyz0123456789"),
    "url-with-colon": ("a", "postgres://u:pa:ss@h/db"),
    "aws-alone": ("a", {"x": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}),
    "aws-in-sentence": ("a", "The AWS secret is wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY, sorry."),
    "token-without-signature": ("a", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9."),
    "said": ("a", "The password: hunter2abc"),
    "said-in-json": ("a", '{"password": "hunter2abc"}'),
    "said-key": ("a", "api_key: 0123456789abcdef"),
    "name-of-environment": ("a", {"password": {"prod": "hunter22"}}),
    "name-after-environment": ("custom.password.staging", "hunter22"),
    "credentials": ("a", {"credentials": "alice:hunter22"}),
    "google-client": ("a", "GOCSPX-" + "aB3x" * 7),
    "webhook": ("a", "whsec_" + "aB3x" * 8),
    "docker": ("a", "dckr_pat_" + "aB3x" * 7),
    "vault": ("a", "hvs." + "CAES" * 8),
    "digital-ocean": ("a", "dop_v1_" + "0a1b" * 16),
    "bearer-of-letters": ("a", "curl -H 'X: Bearer AbCdEfGhIjKlMnOpQrStUv'"),
    "slack-webhook-short": ("a", "https://hooks.slack.com/services/T01/B02/" + "aB3x" * 6),
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
    "assigned-reference": ("a", "password=env:DB_PASSWORD1 or password=$DB_PASSWORD2"),
    "assigned-variable": ("a", "connect(user=USER, password=DB_PASSWORD_2)"),
    "assigned-call": ("a", "password=getpass1234() or password=account1.password"),
    "assigned-placeholder": ("a", "password=<password1> password={password1} password=********"),
    "assigned-word": ("a", "password=required, api_key=optional, pwd=/home/alice1"),
    "compared": ("a", "if password == 'x' and api_key != 12:"),
    "sentence-on-passwords": ("a", "Password: 12 characters at least; token = one word."),
    "plurals": ("a", {"tokens": "100k1234", "secrets": ["db-main-2"], "passes": 1200}),
    "passes": ("a", {"pass": "second", "first_pass": "parse2", "bypass": "no1234"}),
    "name-beside": ("a", {"name": "password", "type": "string", "hint": "12 characters"}),
    "name-beside-reference": ("a", {"name": "password", "value": "secret:db"}),
    "sha-1": ("a", "3f786850e387550fdab836ed7e6dc881de23001b"),
    "sha-1-named": ("a", "The secret store is at 3f786850e387550fdab836ed7e6dc881de23001b"),
    "slack-example": ("a", "https://hooks.slack.com/services/T00000000/B00000000/" + "X" * 24),
    "bearer-words": ("a", "Use Bearer authentication-with-oauth2 or Bearer <token>."),
    "hugging-face-word": ("a", "hf_hub_download and hf_transfer_is_enabled_by_default"),
    "port-and-time": ("a", "http://host:8080/a at 12:30 by mail@example.com"),
    "folder": ("a", {"pwd": "/home/alice"}),
    "credentials-mode": ("a", {"credentials": "include"}),
    "count-of-tokens": ("a", {"token": 4096}),
    "said-algorithm": ("a", "password: sha256 hashed; Password: argon2id; passphrase: base64url"),
    "said-rule": ("a", "Password: required. api_key: optional, see the vault."),
    "said-reference": ("a", "password: env:DB_PASSWORD1, api_key: ${API_KEY_FOR_STAGING_2}"),
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
