"""Calling a route of the user's backend for a tool."""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote, urlsplit

import orjson

from toolgate.extend.parameters import QueryStyle, query_of
from toolgate.extend.route_attachments import attachment_in, attachment_of_file, is_file
from toolgate.extend.schemas import SchemaCheck
from toolgate.extend.world import OwnWorld
from toolgate.gate.attachments import Attachment
from toolgate.gate.context import Context
from toolgate.gate.errors import GateError, InvalidArguments, Problem, RouteFailed
from toolgate.gate.principal import Principal
from toolgate.outbound.responses import FetchedResponse
from toolgate.sections import ExtendSettings

logger = logging.getLogger(__name__)

PLACE = re.compile(r"\{([\w.-]+)\}")
IN_QUERY = {"GET", "DELETE"}
IN_PATH = "/%:@!$&'()*+,;=-._~"
VISIBLE = "".join(chr(one) for one in range(0x21, 0x7F) if chr(one) != "%")
MAX_ERROR_TEXT = 500
OK, REDIRECT, REFUSED, FAILED = 200, 300, 400, 500
AS_IT_IS = {503, 504}
"""Failures whose status says something to the caller; the others are a bad gateway."""
CREDENTIALS = {401, 407}
"""Said to us and not to the caller, whose credentials are good."""


class BadAddress(ValueError):
    """A path or an address cannot be used; the sentence says why."""


@dataclass(frozen=True, slots=True)
class OwnResult:
    """An answer as the route or the handler gave it; what it may be is the user's to say."""

    value: Any
    attachment: Attachment | None = None

    def body(self) -> Any:
        """The answer."""
        return self.value

    def body_without(self, field: str) -> Any:
        """The same without a field; only objects have attachments."""
        return {name: one for name, one in self.value.items() if name != field}


def origin_of(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address that we may call."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadAddress(f"{url} is not an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadAddress(f"{url} must begin with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise BadAddress("an address must not hold credentials")
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise BadAddress(f"{url} must have neither ? nor #; arguments become the query")
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a route is, with `{argument}` for arguments that are part of its path."""

    root: str
    path: str
    trusted: bool
    """Whether it is the user's own backend, which may know who calls."""

    @property
    def names(self) -> list[str]:
        """The arguments in the path."""
        return PLACE.findall(self.path)

    def url_for(self, arguments: Mapping[str, Any]) -> str:
        """The address for these arguments; each stays inside its own segment."""
        problems: list[Problem] = []
        segments = [_segment(one, arguments, problems) for one in self.path.split("/")]
        if problems:
            raise InvalidArguments(problems)
        return self.root + "/".join(segments)


def address_of(path: str, base_url: str | None) -> Address:
    """The address of a route's path, absolute or relative to the base."""
    if "://" in path:
        parts = urlsplit(path)
        if PLACE.search(parts.netloc) or "{" in path.partition("://")[0]:
            raise BadAddress("{…} may stand only in the path, not in the host")
        here = origin_of(path)
        root, path = f"{parts.scheme}://{parts.netloc}", parts.path
        trusted = base_url is not None and origin_of(base_url) == here
    elif base_url is None:
        raise BadAddress(f"{path} is relative, so the setting extend.base_url is needed")
    else:
        origin_of(base_url)
        if "?" in path or "#" in path:
            raise BadAddress(f"{path} must have neither ? nor #; arguments become the query")
        root, path, trusted = base_url.rstrip("/"), f"/{path.lstrip('/')}", True
    _check_path(path)
    return Address(root, path, trusted)


def _check_path(path: str) -> None:
    if re.search(r"[{}]", PLACE.sub("", path)):
        raise BadAddress(f"{path} has a brace that is no {{argument}}")
    if any(one in (".", "..") for one in path.split("/")):
        raise BadAddress(f"{path} must not have . or .. as a part")
    if not path.isprintable() or " " in path or "\\" in path:
        raise BadAddress(f"{path!r} has a character that no path has")


def _segment(template: str, arguments: Mapping[str, Any], problems: list[Problem]) -> str:
    names = PLACE.findall(template)
    if not names:
        return quote(template, safe=IN_PATH)
    plain: dict[str, list[str]] = {}
    for name in names:
        try:
            plain[name] = _parts(name, arguments.get(name))
        except InvalidArguments as invalid:
            problems.extend(invalid.problems)
            plain[name] = ["x"]
    if PLACE.sub(lambda match: ",".join(plain[match[1]]), template) in (".", ".."):
        problems.append(_not_a_part(names[0]))
    parts = PLACE.split(template)
    return "".join(
        ",".join(quote(one, safe="") for one in plain[part]) if odd % 2 else quote(part, IN_PATH)
        for odd, part in enumerate(parts)
    )


def _parts(name: str, value: Any) -> list[str]:
    """The items of a list, or the one value: OpenAPI's style `simple`."""
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not items:
        raise InvalidArguments([_not_a_part(name)])
    return [_part(name, one) for one in items]


def _part(name: str, value: Any) -> str:
    """A value as one part of a path. What some servers would take for a separator is refused."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        message = f"{name} must be a string or a number: it is a part of the route's path"
        raise InvalidArguments([Problem(name, "type", message)])
    text = str(value)
    if not text or not text.isprintable() or "/" in text or "\\" in text:
        raise InvalidArguments([_not_a_part(name)])
    return text


def _not_a_part(name: str) -> Problem:
    message = f"{name} must be one part of a path: not empty, no . or .., no / or \\"
    return Problem(name, "format", message)


@dataclass(frozen=True, slots=True)
class RouteCall:
    """The handler of a route tool: the same for every transport."""

    tool: str
    method: str
    address: Address
    settings: ExtendSettings
    check: SchemaCheck | None
    in_query: Mapping[str, QueryStyle] = field(default_factory=dict[str, QueryStyle])
    """Arguments whose place and form the file names."""
    attachment_field: str | None = None
    """Where the route may answer with a file."""

    async def __call__(self, ctx: Context[OwnWorld], args: dict[str, Any]) -> OwnResult:
        """Ask the route."""
        in_path = set(self.address.names)
        rest = {name: value for name, value in args.items() if name not in in_path}
        headers = identity_headers(
            ctx.principal, ctx.request_id, self.settings, self.address.trusted
        )
        url, content = self.address.url_for(args), None
        all_in_query = self.method in IN_QUERY
        query_arguments = {
            name: value for name, value in rest.items() if all_in_query or name in self.in_query
        }
        try:
            if query := query_of(query_arguments, self.in_query):
                url += f"?{query}"
            if not all_in_query:
                body = {name: value for name, value in rest.items() if name not in query_arguments}
                content = json.dumps(body, ensure_ascii=False).encode()
                headers["Content-Type"] = "application/json"
        except UnicodeEncodeError:
            problem = Problem(
                "arguments", "format", "arguments hold text that is not valid Unicode"
            )
            raise InvalidArguments([problem]) from None
        attached = self.attachment_field is not None
        if attached:
            headers["Accept"] = "*/*"
        response = await ctx.world.request(
            self.tool, self.method, url, headers, content, attached=attached
        )
        return self._read(response)

    def _read(self, response: FetchedResponse) -> OwnResult:
        if response.status >= REFUSED:
            raise failure_of(self.tool, response)
        if not OK <= response.status < REDIRECT:
            message = f"The route of {self.tool} answered {response.status}, which is not followed."
            raise RouteFailed(message)
        attached = self.attachment_field
        if attached and is_file(response):
            value = validated_result(self.tool, {attached: ""}, self.check)
            return OwnResult(value, attachment_of_file(response))
        value = self._json(response)
        return OwnResult(value, attachment_in(self.tool, attached, value) if attached else None)

    def _json(self, response: FetchedResponse) -> Any:
        value: Any = {}
        try:
            if response.body.strip():
                value = orjson.loads(response.body)
        except orjson.JSONDecodeError:
            raise RouteFailed(
                f"The route of {self.tool} answered something other than JSON."
            ) from None
        return validated_result(self.tool, value, self.check)


def validated_result(tool: str, value: Any, check: SchemaCheck | None) -> Any:
    """The answer, if it is what the tool's output_schema promises."""
    if check and (problems := check(value)):
        message = f"{tool} answered what its output_schema does not allow: {problems[0].message}."
        raise RouteFailed(message)
    return value


def failure_of(tool: str, response: FetchedResponse) -> GateError:
    """What the caller is told of a status of 400 or more."""
    status = response.status
    if status in CREDENTIALS:
        status = 403
    elif status >= FAILED and status not in AS_IT_IS:
        status = 502
    words = _error_text(response)
    if response.status in CREDENTIALS:
        logger.warning(
            "The backend refused toolgate's own credentials for %s (%d). See extend.identity.",
            tool,
            response.status,
        )
        words = words and f"The backend refused ({response.status}): {words}"
    return RouteFailed(words or _sentence(tool, response.status), status)


def _sentence(tool: str, status: int) -> str:
    verb = "refused the call" if status < FAILED else "failed"
    return f"The route of {tool} {verb} ({status})."


def _error_text(response: FetchedResponse) -> str | None:
    """The route's own words: `error`, `error.message`, `message`, or a refusal's plain text."""
    body = response.body
    try:
        value: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        is_refusal = response.status < FAILED  # the text of a failure may be a piece of its insides
        return _short_text(body.decode("utf-8", "replace").strip()) if is_refusal else None
    if not isinstance(value, dict):
        return _short_text(value)
    fields = cast("dict[str, Any]", value)
    error = fields.get("error")
    inner = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else error
    return _short_text(inner) or _short_text(fields.get("message"))


def _short_text(text: Any) -> str | None:
    """A short text without markup: an HTML page is for people with a browser."""
    if not isinstance(text, str) or not 0 < len(text) <= MAX_ERROR_TEXT:
        return None
    return text if text.isprintable() and not text.startswith("<") else None


def identity_headers(
    principal: Principal, request_id: str, settings: ExtendSettings, trusted: bool
) -> dict[str, str]:
    """What the route is told of the caller; a foreign host only gets the request id."""
    if settings.identity == "none":
        return {}
    headers = {"X-Request-Id": request_id}
    if not trusted:
        return headers
    headers["X-Toolgate-Roles"] = ",".join(sorted(principal.roles)) or "public"
    if principal.user_id is not None:
        headers["X-Toolgate-User"] = quote(principal.user_id, safe=VISIBLE)
    if settings.identity == "key":
        headers["Authorization"] = f"Bearer {settings.key}"
    return headers
