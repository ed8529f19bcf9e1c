"""Finds credentials that were put into a record in plain text: they belong into a secret store.

Known formats are told by how they begin, so ordinary text is not taken for one. A key whose last
part says that it names a secret may hold a reference to one (`env:NAME`, `secret:NAME`).
"""

import re
from collections.abc import Iterator
from typing import Any, cast

from toolgate.packs.orchestrator.long_texts import matches

PLACEHOLDER = (
    r"(?:<[^<>@]{1,40}>|\$\{?\w{1,80}\}?|\{{1,2}\w{1,80}\}{1,2}|\*{1,80}|(?-i:PASS(?:WORD)?))"
)
"""What stands in a URL of an example where the password would be."""
MIXED_40 = (
    r"(?=[A-Za-z/+]{0,39}[0-9])(?=(?:[0-9a-z/+]{0,39}[A-Z]){6})(?=(?:[0-9A-Z/+]{0,39}[a-z]){6})"
    r"[0-9A-Za-z/+]{40}"
)
"""Random digits of Base64; a SHA-1 is as long, and of one case."""
MARKS = r"!#%^*+_~@-"
WITH_DIGIT = rf"(?=[A-Za-z{MARKS}]{{0,80}}[0-9])(?=[0-9{MARKS}]{{0,80}}[A-Za-z])"
ASSIGNED_END = r"(?=[\s\"'`,;&)]|\.(?:\s|$)|$)"
ASSIGNED = r"(?:=|\s{0,3}=\s{0,3}(?=[\"'])|[\"']?:\s{0,3})"
NO_ALGORITHM = r"(?!(?i:sha|base|argon|pbkdf|bcrypt|scrypt|md|aes|utf|ascii|latin)-?[0-9])"
"""What passwords are said to be hashed and written with."""
NO_VARIABLE = rf"(?![A-Z][A-Z0-9_]{{0,80}}{ASSIGNED_END})"
"""After a `=` a name in capitals is that of a variable."""
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
        r"(?i:secret_?access_?key)[\"']?\s{0,3}[=:]\s{0,3}[\"']?[0-9A-Za-z/+]{40}|"
        rf"(?i:aws|secret)[\w \"'`:=,.-]{{0,40}}(?<![0-9A-Za-z/+]){MIXED_40}(?![0-9A-Za-z/+=])"
    ),
    "an Azure account key": re.compile(r"(?i:accountkey)=[0-9A-Za-z/+]{40,}"),
    "a Hugging Face token": re.compile(r"\bhf_[0-9A-Za-z]{30,}"),
    "a Google client secret": re.compile(r"\bGOCSPX-[0-9A-Za-z_-]{20,}"),
    "a webhook's secret": re.compile(r"\bwhsec_[0-9A-Za-z+/]{20,}"),
    "a Docker token": re.compile(r"\bdckr_(?:pat|oat)_[0-9A-Za-z_-]{20,}"),
    "a Vault token": re.compile(r"\bhv[sbr]\.[0-9A-Za-z_-]{20,}"),
    "a DigitalOcean token": re.compile(r"\bdo[opr]_v1_[0-9a-f]{40,}"),
    "a SendGrid key": re.compile(r"\bSG\.[\w-]{22}\.[\w-]{43}"),
    "a Slack webhook": re.compile(
        r"hooks\.slack\.com/(?:services|workflows|triggers)/\w{2,20}/\w{2,20}/(?!X{8})\w{12,}"
    ),
    "a Google API key": re.compile(r"\bAIza[0-9A-Za-z_-]{35}"),
    "a Google access token": re.compile(r"\bya29\.[0-9A-Za-z_-]{20,}"),
    "a toolgate key": re.compile(r"tg_[0-9a-f]{16}_[0-9a-f]{64}"),
    "a JSON Web Token": re.compile(
        r"(?<![\w-])eyJ[0-9A-Za-z_-]{10,}+\.eyJ[0-9A-Za-z_-]{10,}+(?:\.[\w-]+)?"
    ),
    "a URL with a password": re.compile(
        rf"[a-z0-9+.-]{{1,20}}://[^\s/:@]{{0,256}}:(?!{PLACEHOLDER}@)[^\s/@]{{3,256}}@",
        re.IGNORECASE,
    ),
    "an Authorization header": re.compile(
        r"(?i:authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:basic|bearer|token)\s{1,3})"
        r"(?=[a-z+/._~-]{0,80}[A-Z0-9])[0-9A-Za-z+/._~-]{8,}"
        r"|\b(?i:bearer)\s{1,3}(?=(?:[A-Za-z._~+-]{0,40}[0-9]){2})[0-9A-Za-z._~+-]{20,}"
        r"|\b(?i:bearer)\s{1,3}(?=(?:[0-9a-z._~+-]{0,40}[A-Z]){3})(?=(?:[0-9A-Z._~+-]{0,40}[a-z]){3})"
        r"[0-9A-Za-z._~+-]{20,}"
    ),
    "a password after its name": re.compile(
        rf"(?i:password|passwd|passphrase|pwd)[0-9]{{0,3}}{ASSIGNED}[\"']?"
        rf"{NO_VARIABLE}{NO_ALGORITHM}{WITH_DIGIT}[0-9A-Za-z{MARKS}]{{6,80}}+{ASSIGNED_END}"
    ),
    "a key after its name": re.compile(
        r"(?i:api[_-]?key|client[_-]?secret|(?:signing|encryption)[_-]?key|"
        rf"(?:access|auth|refresh)[_-]?token)[0-9]{{0,3}}{ASSIGNED}[\"']?"
        rf"{NO_VARIABLE}{WITH_DIGIT}[0-9A-Za-z{MARKS}]{{16,200}}+={{0,2}}{ASSIGNED_END}"
    ),
}
"""Each is linear in the text: no part without an upper bound is followed by one that overlaps it,
or begins within itself. What it needs is shorter than the overlap of windows (`long_texts`)."""
SECRET_NAMES = re.compile(
    r"(?:^|_)(?:password|passwd|pwd|passphrase|passcode|secret|api_?key|private_?key|"
    r"secret_?(?:access_?)?key|(?:access|refresh|auth|bearer|session)_?token|client_?secret|"
    r"(?:signing|encryption|decryption|master)_?key|"
    r"(?:db|database|user|admin|root|login|mail|smtp|ftp|ssh|sql|redis|postgres)_?pass)$|^token$"
)
"""Of a name in words (`_words`)."""
PLURAL_NAMES = re.compile(r"(?:^|_)(?:passwords|passphrases|api_?keys|private_?keys|credentials?)$")
"""Names of several secrets, if what they hold has a digit: `none` is no password, nor `include`."""
NAMES_OF_NAMES = ("name", "key", "variable")
"""In an object, what says how its `value` is called."""
NO_NAME = re.compile(
    r"(?:value|val|v|text|plain|raw|current|default|string|prod|production|staging|stage|dev|"
    r"development|test|testing|qa|live|local|main|primary|secondary|new|old)"
)
"""Words that say nothing of what they name: what stands before them does."""
AUTHORIZATION = re.compile(r"(?:^|_)authorization$")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
NO_WORD = re.compile(r"[^A-Za-z0-9]++")
MAX_NAME = 512
WHOLE_AWS = re.compile(MIXED_40)
FOLDER_NAME, FOLDER = re.compile(r"(?:^|_)pwd$"), re.compile(r"[~.]{0,2}/|[A-Za-z]:\\")
"""In a shell, `pwd` is where one works."""
COUNT = re.compile(r"[0-9]{1,7}")
"""How many tokens."""
LEAST_NUMBER = 1000
"""Smaller ones under the name of a secret are counts and switches."""
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
    names: dict[str, str] = {}
    texts: list[str] = []
    named: str | None = None
    for place, text in _texts(name, value):
        words = names.get(place) or names.setdefault(place, _words(place))
        # A header in an object is read like one in a text.
        texts.append(f"authorization: {text}" if AUTHORIZATION.search(words) else text)
        if text and _names_secret(words, text) and not REFERENCE.fullmatch(text):
            named = place
        if len(text) < MAX_NAME and WHOLE_AWS.fullmatch(text.strip()):
            return "an AWS secret key"
    # All at once: a value may hold very many short texts.
    whole = "\n".join(texts)
    for what, form in FORMATS.items():
        if any(matches(form, whole)):
            return what
    return None if named is None else f"the secret that {named!r} names"


def redacted(text: str) -> str:
    """The text without the secrets in it, for what must be kept all the same."""
    # Names first: of a secret that is named, the whole is taken out and the name is kept.
    text = ASSIGNMENT.sub(rf"\1{REDACTED}", text)
    for pattern in FORMATS.values():
        text = pattern.sub(REDACTED, text)
    return text


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a value, and every name."""
    return (text for _, text in _texts("", value))


def _words(name: str) -> str:
    """The end of a name in words: `dbPassword`, `db.password ` and `db-password.value` alike."""
    words = NO_WORD.sub("_", HUMP.sub("_", name[-MAX_NAME:])).lower().strip("_0123456789")
    before, _, last = words.rpartition("_")
    return before if before and NO_NAME.fullmatch(last) else words


def _names_secret(words: str, text: str) -> bool:
    if FOLDER_NAME.search(words) and FOLDER.match(text):
        return False
    if words == "token" and COUNT.fullmatch(text):
        return False
    if SECRET_NAMES.search(words):
        return True
    return PLURAL_NAMES.search(words) is not None and any(one.isdigit() for one in text)


def _name_within(inner: dict[str, Any]) -> str | None:
    """How an object calls its value: `{"name": "password", "value": …}`."""
    names = (inner.get(one) for one in NAMES_OF_NAMES)
    return next((one for one in names if isinstance(one, str)), None)


def _texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every text and larger number in a value, with the name it has there."""
    pending = [(name, value)]
    while pending:
        place, one = pending.pop()
        if isinstance(one, str):
            yield place, one
        elif isinstance(one, int | float) and abs(one) >= LEAST_NUMBER:
            yield place, str(one)
        elif isinstance(one, dict):
            inner = cast("dict[str, Any]", one)
            called = _name_within(inner) or place
            pending.extend(
                (called if NO_NAME.fullmatch(key.strip().lower()) else key, part)
                for key, part in inner.items()
            )
            yield from (("", key) for key in inner)
        elif isinstance(one, list):
            pending.extend((place, part) for part in cast("list[Any]", one))
