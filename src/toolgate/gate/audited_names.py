"""What the audit calls something that there is not: never a text that may hold arguments.

The name of a tool that is found needs none of this.
"""

import re

from toolgate.gate.attachments import URI
from toolgate.gate.tool import NAME

NOT_A_NAME = "(not a name)"
SCHEME = re.compile(r"\s*toolgate:", re.I | re.A)
"""Ours, however the rest of the URI is spelled."""
LINK = re.compile(rf"{re.escape(URI)}({NAME.pattern})/.*", re.I | re.A | re.S)
OTHER_URI = re.compile(r"[a-z][a-z0-9+.-]*://[^\s?#@]*", re.I | re.A)
"""Without a query, a fragment or a user: these may hold a secret."""


def audited_name(name: str) -> str:
    """What a caller took for the name of a tool or a prompt, if it can be one."""
    return name if NAME.fullmatch(name) else NOT_A_NAME


def audited_uri(uri: str) -> str:
    """A resource's URI; of an attachment's the tool alone, as the rest are arguments."""
    if link := LINK.fullmatch(uri):
        return link[1]
    if SCHEME.match(uri):
        return URI
    return uri if OTHER_URI.fullmatch(uri) else NOT_A_NAME
