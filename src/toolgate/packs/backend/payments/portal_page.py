"""The portal page of the embedded ledger."""

from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any

from toolgate.packs.backend.payments.money import written
from toolgate.packs.backend.payments.payments import unix_now
from toolgate.packs.backend.payments.portal_links import PortalLink
from toolgate.packs.backend.payments.preconditions import is_pending, unix_of
from toolgate.packs.backend.payments.processor import Account, Payment

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; background: Canvas; color: CanvasText; }
main { max-width: 34rem; margin: 0 auto; padding: 2rem 1.25rem; }
h1 { font-size: 1.5rem; line-height: 1.2; margin: 0 0 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .5rem 1.25rem; margin: 0 0 1.5rem;
     padding: 1rem 1.25rem; border: 1px solid color-mix(in srgb, CanvasText 25%, Canvas);
     border-radius: .5rem; }
dt { color: color-mix(in srgb, CanvasText 65%, Canvas); }
dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
button { font: inherit; padding: .6rem 1.1rem; border-radius: .4rem; cursor: pointer; color: #fff;
         border: 1px solid #b3261e; background: #b3261e; }
button:focus-visible, a:focus-visible { outline: 3px solid #4a90d9; outline-offset: 2px; }
a { color: LinkText; }
time { white-space: nowrap; }
p.note { font-size: .875rem; color: color-mix(in srgb, CanvasText 65%, Canvas); margin-top: 2rem; }
"""
FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>{style}</style>
</head>
<body><main>
{body}
</main></body>
</html>
"""
NOTE = (
    '<p class="note">This page belongs to the ledger that is built into toolgate. It keeps the '
    "books; no money is moved here.</p>"
)
FORM = """<form method="post" action="{path}">
<p>{means}</p>
<button type="submit">{button}</button>
</form>"""
AT_THE_END = "The subscription stays yours until <time>{}</time>. Nothing is charged after that."
AT_ONCE = "A trial ends at once. Nothing is charged."


def page_of(
    account: Account, payment: Payment | None, link: PortalLink, path: str, closed: str | None
) -> str:
    """The page of one user: plan, status, the last payment, and a way to cancel, or why not."""
    told = account.subscription
    pending = is_pending(account)
    rows = [
        ("Plan", str(told["product"].get("name"))),
        ("Status", "ends with its period" if pending else str(told["status"])),
        ("Ends on" if pending or told["status"] == "cancelled" else "Paid until", _day(told)),
    ]
    if payment is not None:
        rows.append(("Last payment", written(payment.amount, payment.currency)))
    if payment is not None and payment.refunded:
        rows.append(("Refunded", written(payment.refunded, payment.currency)))
    listed = "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows)
    form = ""
    if not pending and told["status"] in {"active", "suspended"}:
        form = f"<p>{escape(closed)}</p>" if closed else _form(account, path)
    back = f'<p><a href="{escape(link.return_url)}">Back</a></p>'
    return _framed("Your subscription", f"<dl>{listed}</dl>\n{form}\n{back}\n{NOTE}")


def _form(account: Account, path: str) -> str:
    """The form that cancels, and what that means."""
    if unix_of(account.subscription["trial"].get("expires")) > unix_now():
        return FORM.format(path=escape(path), means=AT_ONCE, button="End the trial now")
    means = AT_THE_END.format(escape(_day(account.subscription)))
    return FORM.format(path=escape(path), means=means, button="Cancel at the end of the period")


def sentence_page(sentence: str, *, back: bool) -> str:
    """A page that says one thing."""
    back_link = '<p><a href="">Back to the subscription</a></p>' if back else ""  # the same address
    return _framed("Your subscription", f"<p>{escape(sentence)}</p>\n{back_link}\n{NOTE}")


def _framed(title: str, body: str) -> str:
    return FRAME.format(title=title, style=STYLE, body=f"<h1>{title}</h1>\n{body}")


def _day(told: Mapping[str, Any]) -> str:
    seconds = unix_of(told["expires"])
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}" if seconds else "not known"
