"""Finds credentials that were put into a record in plain text: they belong into a secret store.

Known formats are told by how they begin, so ordinary text is not taken for one. A key whose last
part says that it names a secret may hold a reference to one (`env:NAME`, `secret:NAME`).
"""

import re
from collections.abc import Iterator
from typing import Any, cast

PLACEHOLDER = (
    r"(?:<[^<>@]{1,40}>|\$\{?\w{1,80}\}?|\{{1,2}\w{1,80}\}{1,2}|\*{1,80}|(?-i:PASS(?:WORD)?))"
)
"""What stands in a URL of an example where the password would be."""
FORMATS = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
    "a Stripe key": re.compile(r"\b[rs]k_(live|test)_[0-9A-Za-z]{16,}"),
    "an OpenAI or Anthropic key": re.compile(
        r"\bsk-(?:proj-|ant-)?(?=[A-Za-z_-]{0,40}[0-9])[0-9A-Za-z_-]{20,}"
    ),
    "a GitHub token": re.compile(r"gh[pousr]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{36,}"),
    "a GitLab token": re.compile(r"\bglpat-[0-9A-Za-z_-]{20,}"),
    "an npm token": re.compile(r"\bnpm_[0-9A-Za-z]{36}"),
    "a Slack token": re.compile(r"\bxox[abprs]-[0-9A-Za-z-]{10,}"),
    "an AWS access key": re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b"),
    "an AWS secret key": re.compile(
        r"(?i:secret_?access_?key)[\"']?\s{0,3}[=:]\s{0,3}[\"']?[0-9A-Za-z/+]{40}"
    ),
    "a Google API key": re.compile(r"\bAIza[0-9A-Za-z_-]{35}"),
    "a Google access token": re.compile(r"\bya29\.[0-9A-Za-z_-]{20,}"),
    "a toolgate key": re.compile(r"tg_[0-9a-f]{16}_[0-9a-f]{64}"),
    "a JSON Web Token": re.compile(
        r"(?<![\w-])eyJ[0-9A-Za-z_-]{10,}+\.eyJ[0-9A-Za-z_-]{10,}+\.[\w-]+"
    ),
    "a URL with a password": re.compile(
        rf"[a-z0-9+.-]{{1,20}}://[^\s/:@]{{0,256}}:(?!{PLACEHOLDER}@)[^\s/:@]{{3,256}}@",
        re.IGNORECASE,
    ),
    "an Authorization header": re.compile(
        r"(?i:authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:basic|bearer|token)\s{1,3})"
        r"(?=[a-z+/._~-]{0,80}[A-Z0-9])[0-9A-Za-z+/._~-]{8,}"
    ),
}
"""Each is linear in the text: no part without an upper bound is followed by one that overlaps it,
or begins within itself."""
SECRET_NAMES = re.compile(
    r"(?:^|[._-])(password|passwd|passphrase|secret|api_?key|private_?key|access_?token|"
    r"refresh_?token|auth_?token|bearer_?token|client_?secret|credentials?)$|^token$",
    re.IGNORECASE,
)
REFERENCE = re.compile(r"(env|secret|file|vault):\S+")
ASSIGNMENT = re.compile(
    r"((?:password|passwd|passphrase|pwd|secret|api[_-]?key|private[_-]?key|credentials?|"
    r"(?:access|auth|bearer|refresh)[_-]?token|authorization)[\"']?\s{0,3}[=:]\s{0,3}|token=)"
    r"(?:\"[^\"]{0,200}\"|'[^']{0,200}'|(?:(?:basic|bearer)\s{1,3})?[^\s,;&]+)",
    re.IGNORECASE,
)
"""A secret after its name, as programs write it into their errors: password=…"""
REDACTED = "[redacted]"


def secret_in(name: str, value: Any) -> str | None:
    """What sort of secret a value holds under this name, or None."""
    for place, text in _texts(name, value):
        if found := next((what for what, one in FORMATS.items() if one.search(text)), None):
            return found
        if text and SECRET_NAMES.search(place) and not REFERENCE.fullmatch(text):
            return f"the secret that {place!r} names"
    return None


def redacted(text: str) -> str:
    """The text without the secrets in it, for what must be kept all the same."""
    for pattern in FORMATS.values():
        text = pattern.sub(REDACTED, text)
    return ASSIGNMENT.sub(rf"\1{REDACTED}", text)


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a value, and every name."""
    return (text for _, text in _texts("", value))


def _texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every text in a value, with the name it has there."""
    pending = [(name, value)]
    while pending:
        place, one = pending.pop()
        if isinstance(one, str):
            yield place, one
        elif isinstance(one, dict):
            inner = cast("dict[str, Any]", one)
            pending.extend((key, part) for key, part in inner.items())
            yield from (("", key) for key in inner)
        elif isinstance(one, list):
            pending.extend((place, part) for part in cast("list[Any]", one))
