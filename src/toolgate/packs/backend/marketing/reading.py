"""Whether a campaign's document can be sent at all: documents are written by others too."""

import math
from typing import Any, cast

from pydantic import ValidationError

from toolgate.packs.backend.mail.senders import PRESETS
from toolgate.packs.backend.marketing.recurrence import Pattern, Recurrence
from toolgate.packs.backend.marketing.segments import SEGMENTS
from toolgate.ports.documents import Fields

TYPES = ("email", "push")
LAST_MOMENT = 253_370_764_800
"""The year 9999 in unix seconds: no date comes after it."""
UNREADABLE = f"recurrence cannot be read: its pattern is one of {', '.join(Pattern)}"
NO_DATE = "must be unix seconds, 0 or more"


def problem_of(campaign: Fields) -> str | None:
    """What is wrong with a campaign, in words; None where it can begin."""
    if campaign.get("type") not in TYPES:
        return f"type must be one of: {', '.join(TYPES)}"
    for name in ("sendAt", "firstAt"):
        if name in campaign and not _is_moment(campaign[name]):
            return f"{name} {NO_DATE}"
    given: Any = campaign.get("recurrence")
    try:
        if given:
            Recurrence.model_validate(given)
    except ValidationError:
        return UNREADABLE
    settings: Any = campaign.get("settings")
    if not isinstance(settings, dict):
        return "settings must be a map with name, subject and sender"
    return _problem_of_settings(cast("Fields", settings), campaign["type"])


def _problem_of_settings(settings: Fields, type: str) -> str | None:
    for name in ("name", "subject"):
        if not isinstance(settings.get(name), str):
            return f"settings.{name} must be a text"
    if type == "email" and not _is_one_of(settings.get("sender"), PRESETS):
        return f"settings.sender must be one of: {', '.join(PRESETS)}"
    if not isinstance(settings.get("data") or {}, dict):
        return "settings.data must be a map"
    return _problem_of_people(settings, "uid" if type == "push" else "email")


def _problem_of_people(settings: Fields, key: str) -> str | None:
    for name in ("segments", "excludeSegments"):
        listed: Any = settings.get(name) or []
        if not isinstance(listed, list):
            return f"settings.{name} must be an array"
        if not all(_is_one_of(one, SEGMENTS) for one in cast("list[Any]", listed)):
            return f"settings.{name} names no segment. Segments are: {', '.join(SEGMENTS)}"
    tester: Any = settings.get("test")
    named = cast("Fields", tester).get(key) if isinstance(tester, dict) else None
    if tester and not isinstance(named, str):
        return f"settings.test must be a map with {key}"
    return None


def _is_one_of(value: Any, names: dict[str, Any]) -> bool:
    return isinstance(value, str) and value in names


def _is_moment(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 <= value < LAST_MOMENT
    )
