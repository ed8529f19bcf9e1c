"""Demo campaigns: sales to segments and a newsletter, each of which recurs."""

from datetime import UTC, datetime
from typing import Any

from toolgate.gate.demo_documents import Document
from toolgate.packs.backend.marketing.campaigns import COLLECTION, new_campaign
from toolgate.packs.backend.marketing.recurrence import Recurrence, next_date

FIRST = datetime(2026, 1, 5, 15, tzinfo=UTC)
"""What each pattern is counted from."""
QUARTERLY: dict[str, Any] = {"pattern": "quarterly"}
SECOND_TUESDAY: dict[str, Any] = {"pattern": "monthly-weekday", "nth": 2, "day": 2}


def _sale(segment: str, code: str, subject: str) -> dict[str, Any]:
    message = "{brand.name} is cheaper this {date.month}. Use the code below by the end of it."
    content = {
        "title": subject,
        "message": message,
        "discountCode": code,
        "button": {"text": "See the plans", "url": "https://example.com/pricing"},
    }
    return {
        "name": f"{{holiday.name}} sale: {segment}",
        "subject": subject,
        "template": "card",
        "sender": "marketing",
        "segments": [segment],
        "data": {"content": content},
    }


def demo_campaigns(now: datetime) -> tuple[Document, ...]:
    """The campaigns, each due at its next date: none is sent when the demo begins."""
    newsletter = {
        "name": "Newsletter",
        "subject": "{brand.name} in {date.month}",
        "template": "plain",
        "sender": "newsletter",
        "all": True,
        "data": {"content": {"title": "What is new", "message": "Here is what happened."}},
    }
    of = "subscription_"
    campaigns = {
        "_recurring-sale-free": (
            _sale(f"{of}free", "UPGRADE15", "15 % off your first month"),
            QUARTERLY,
        ),
        "_recurring-sale-churned-trial": (
            _sale(f"{of}churned_trial", "COMEBACK20", "20 % off, should you come back"),
            QUARTERLY,
        ),
        "_recurring-sale-churned-paid": (
            _sale(f"{of}churned_paid", "MISSYOU25", "We miss you: 25 % off"),
            QUARTERLY,
        ),
        "_recurring-sale-cancelled": (
            _sale(f"{of}cancelled", "MISSYOU25", "Your old plan for 25 % less"),
            QUARTERLY,
        ),
        "_recurring-newsletter": (newsletter, SECOND_TUESDAY),
    }
    return tuple(
        (COLLECTION, id, _recurring(settings, recurrence, now))
        for id, (settings, recurrence) in campaigns.items()
    )


def _recurring(settings: dict[str, Any], recurrence: dict[str, Any], now: datetime) -> Any:
    due = next_date(Recurrence.model_validate(recurrence), FIRST, now)
    first = int(FIRST.timestamp())
    return new_campaign(
        settings, type="email", send_at=due, now=FIRST, recurrence=recurrence, firstAt=first
    )
