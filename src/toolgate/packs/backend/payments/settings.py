"""Settings of payments."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from toolgate.setting_types import Section, Words


class PaymentsSettings(Section):
    """Who takes the money: the embedded ledger, or Stripe."""

    borrowed: ClassVar[Mapping[str, str]] = {
        "STRIPE_SECRET_KEY": "stripe_secret_key",
        "STRIPE_WEBHOOK_SECRET": "stripe_webhook_secret",
    }

    url: str = Field(
        default="ledger:",
        pattern=r"^(ledger:|stripe:)$",
        examples=["ledger:", "stripe:"],
        description="`ledger:` for the embedded ledger, which moves no money, or `stripe:`.",
    )
    stripe_secret_key: str | None = Field(
        default=None,
        repr=False,
        description="Secret key of Stripe's API; also STRIPE_SECRET_KEY.",
    )
    stripe_webhook_secret: str | None = Field(
        default=None,
        repr=False,
        description="Signing secret of the webhook endpoint in Stripe (`whsec_…`); also "
        "STRIPE_WEBHOOK_SECRET. Without it no event is accepted.",
    )
    stripe_url: str = Field(
        default="https://api.stripe.com",
        pattern=r"^https?://[^/\s]+$",
        description="Address of Stripe's API.",
    )
    stripe_viewing_portal: str | None = Field(
        default=None,
        pattern=r"^bpc_[A-Za-z0-9_]{1,250}$",
        description="Id of a configuration of Stripe's customer portal (`bpc_…`) in which nothing "
        "can be cancelled: for callers who may not call `cancel_subscription`. Without it they get "
        "no link.",
    )
    return_hosts: Words = Field(
        default=(),
        description="Hosts besides the server's own that `returnUrl` of `get_payment_portal` may "
        "name, such as `app.example.com`.",
    )
    portal_minutes: int = Field(
        default=60,
        ge=1,
        le=1440,
        description="How long a link to the portal page of the embedded ledger is good for.",
    )
    keep_days: int = Field(
        default=90,
        ge=30,
        le=3650,
        description="How long the ids of Stripe's events, and what was asked of a processor, are "
        "kept. An event that comes again meanwhile changes nothing; Stripe sends one again for at "
        "most three days.",
    )
    seconds: float = Field(
        default=20.0,
        gt=0,
        le=60,
        description="How long Stripe may take for one call of a tool, retries included.",
    )
