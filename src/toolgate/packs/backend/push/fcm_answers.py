"""What an answer of Firebase Cloud Messaging means for one message, and for all of them.

A status alone says too little: 404 is a token that nobody has any more, and a project that is not
there. Only what names its own error code is about the token.
"""

from collections.abc import Iterator
from typing import Any, cast

from toolgate.outbound.responses import FetchedResponse
from toolgate.outbound.service_accounts import json_object
from toolgate.packs.backend.push.port import Delivery, PushResult

OK, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, TOO_MANY, UNAVAILABLE = 200, 401, 403, 404, 429, 503
FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
UNREGISTERED, INVALID_ARGUMENT = "UNREGISTERED", "INVALID_ARGUMENT"
INVALID_TOKEN = "INVALID_REGISTRATION_TOKEN"  # noqa: S105 (a code)
GARBAGE, UNREACHABLE = "UNREADABLE_ANSWER", "UNREACHABLE"
REFUSED = {
    UNAUTHORIZED: "Firebase Cloud Messaging refuses the service account. Check its key.",
    FORBIDDEN: "The service account may not send messages of project {project}. Enable the API "
    "`fcm.googleapis.com` there, and give the account the role Firebase Cloud Messaging API Admin.",
    NOT_FOUND: "Firebase Cloud Messaging knows no project {project}. Check push.url.",
}
"""What it means where no message can be sent."""


def result_of(token: str, response: FetchedResponse) -> PushResult:
    """What became of a message."""
    answer = json_object(response.body)
    if response.status == OK:
        if isinstance(answer.get("name"), str):
            return PushResult(token, Delivery.SENT)
        return PushResult(token, Delivery.UNKNOWN, GARBAGE)
    error = _object(answer.get("error"))
    code = _code(error)
    if code == UNREGISTERED:
        return PushResult(token, Delivery.GONE, code)
    if code in (None, INVALID_ARGUMENT) and _blames_token(error):
        return PushResult(token, Delivery.GONE, INVALID_TOKEN)
    status = error.get("status")
    word = code or (status if isinstance(status, str) else None) or f"STATUS_{response.status}"
    return PushResult(token, Delivery.FAILED, word[:64])


def refusal(project: str, response: FetchedResponse) -> str | None:
    """Why no message can be sent at all; None where the answer is about one message."""
    if _code(_object(json_object(response.body).get("error"))) is not None:
        return None
    told = REFUSED.get(response.status)
    return told.format(project=project) if told else None


def _code(error: dict[str, Any]) -> str | None:
    """FCM's own code of an error."""
    for detail in _details(error):
        code = detail.get("errorCode")
        if detail.get("@type") == FCM_ERROR and isinstance(code, str):
            return code
    return None


def _blames_token(error: dict[str, Any]) -> bool:
    return any(
        _object(violation).get("field") == "message.token"
        for detail in _details(error)
        for violation in _list(detail.get("fieldViolations"))
    )


def _details(error: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return map(_object, _list(error.get("details")))


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
