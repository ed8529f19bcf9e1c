"""What a token may be used for: every tool of the person, or only those that read."""

TOOLS = "tools"
READ = "tools:read"
SUPPORTED = [TOOLS, READ]


def requested_scope(parameter: str | None) -> str:
    """The widest of our scopes that a request names; `tools` when it names none at all.

    Empty where it names others only.
    """
    names = [TOOLS] if parameter is None else parameter.split()
    return next((scope for scope in SUPPORTED if scope in names), "")


def read_only(scope: str) -> str:
    """The same for reading only."""
    return READ if scope else ""


def is_within(requested: str, scope: str) -> bool:
    """Whether a refresh asks for no more than was allowed."""
    allowed = {TOOLS, READ} if scope == TOOLS else {scope}
    return set(requested.split()) <= allowed


def allows_tools(scope: str) -> bool:
    """Whether a token of this scope is for tools at all."""
    return scope in SUPPORTED


def is_read_only(scope: str) -> bool:
    """Whether a token of this scope is for tools that read, and no others."""
    return scope == READ
