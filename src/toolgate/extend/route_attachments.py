"""Routes that answer with a file, or with base64 in JSON: both are attachments of their tool."""

import base64
from collections.abc import Mapping
from email.message import Message
from typing import Any, cast

from toolgate.gate.attachments import OCTETS, Attachment
from toolgate.gate.errors import RouteFailed
from toolgate.outbound.responses import FetchedResponse


def base64_field(schema: Mapping[str, Any]) -> str | None:
    """The one property that an output schema says is base64."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    names = [
        name
        for name, one in properties.items()
        if isinstance(one, dict) and cast("dict[str, Any]", one).get("contentEncoding") == "base64"
    ]
    return names[0] if len(names) == 1 else None


def is_file(response: FetchedResponse) -> bool:
    """Whether a response is said to be something else than JSON."""
    kind = _content_type(response).partition(";")[0].strip().lower()
    return kind != "application/json" and not kind.endswith("+json")


def attachment_of_file(response: FetchedResponse) -> Attachment:
    """The file that a route answered."""
    headers = Message()
    headers["Content-Disposition"] = response.headers.get("content-disposition", "attachment")
    return Attachment.of(
        response.body, media_type=_content_type(response), name=headers.get_filename() or ""
    )


def attachment_in(tool: str, field: str, value: Any) -> Attachment | None:
    """The base64 in a field of a JSON answer, if there is any."""
    text: Any = cast("dict[str, Any]", value).get(field) if isinstance(value, dict) else None
    if text is None:
        return None
    try:
        return Attachment.of(base64.b64decode(text, validate=True))
    except (TypeError, ValueError):
        raise RouteFailed(f"The route of {tool} answered a {field} that is not base64.") from None


def _content_type(response: FetchedResponse) -> str:
    return response.headers.get("content-type", OCTETS)
