"""Finds credentials that were put into a record in plain text: they belong into a secret store.

Known formats are told by how they begin, so ordinary text is not taken for one. A key whose last
part says that it names a secret may hold a reference to one (`env:NAME`, `secret:NAME`).
"""

import re
from collections.abc import Iterator
from typing import Any, cast

PLACEHOLDER = r"(?:<[^<>@]{1,40}>|\$\{?\w{1,80}\}?|\{{1,2}\w{1,80}\}{1,2}|\*+|PASS(?:WORD)?)"
"""What stands in a URL of an example where the password would be."""
FORMATS = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "a Stripe key": re.compile(r"\b[rs]k_(live|test)_[0-9A-Za-z]{16,}"),
    "an OpenAI or Anthropic key": re.compile(
        r"\bsk-(?:proj-|ant-)?(?=[A-Za-z_-]{0,40}[0-9])[0-9A-Za-z_-]{20,}"
    ),
    "a GitHub token": re.compile(r"\b(gh[pousr]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{36,})"),
    "a GitLab token": re.compile(r"\bglpat-[0-9A-Za-z_-]{20,}"),
    "a Slack token": re.compile(r"\bxox[abprs]-[0-9A-Za-z-]{10,}"),
    "an AWS access key": re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a Google API key": re.compile(r"\bAIza[0-9A-Za-z_-]{35}"),
    "a toolgate key": re.compile(r"\btg_[0-9a-f]{16}_[0-9a-f]{64}\b"),
    "a JSON Web Token": re.compile(
        r"(?<![0-9A-Za-z_-])eyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[\w-]+"
    ),
    "a URL with a password": re.compile(
        rf"\b[a-z][a-z0-9+.-]{{0,30}}://[^\s/:@]+:(?!{PLACEHOLDER}@)[^\s/:@]{{3,}}@"
    ),
}
"""None may go on to the end of the text from many places in it: texts are long."""
SECRET_NAMES = re.compile(
    r"(?:^|[._-])(password|passwd|passphrase|secret|api_?key|private_?key|access_?token|"
    r"refresh_?token|auth_?token|bearer_?token|client_?secret|credentials?)$|^token$",
    re.IGNORECASE,
)
REFERENCE = re.compile(r"(env|secret|file|vault):\S+")
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
    return text


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
