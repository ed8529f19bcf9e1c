"""`frequent/abandoned-carts`: one reminder of what somebody left in a cart.

The application keeps carts as documents `payments-carts/ID`: `owner` (a uid) or `email`, `status`
`pending`, `items`, `url`, `metadata.updated`. The mail is queued in the commit that marks the cart,
so there is one, and `frequent/email-queue` sends it.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from toolgate.packs.backend.mail.addresses import BadAddress, checked_address
from toolgate.packs.backend.mail.composing import Wish
from toolgate.packs.backend.mail.content import BadContent
from toolgate.packs.backend.mail.queue import QueuedMail
from toolgate.packs.backend.mail.recipients import Recipients
from toolgate.packs.backend.marketing.consent import Recipient, emails_of
from toolgate.packs.backend.paging import pages_of
from toolgate.ports.documents import (
    DocumentTransaction,
    Fields,
    Filter,
    Merge,
    Operator,
    Query,
    StoredDocument,
)
from toolgate.ports.push_ids import push_id
from toolgate.ports.rules import broken_id_rule
from toolgate.ports.users import USERS, timestamp_record
from toolgate.workflows.declarations import Run, Workflow

if TYPE_CHECKING:
    from toolgate.packs.backend.world import BackendWorld

CARTS = "payments-carts"
PENDING = Filter("status", Operator.EQUAL, "pending")
UPDATED = "metadata.updated.timestampUNIX"
QUIET = timedelta(hours=1)
"""So long after the last change a cart is abandoned."""
TOO_LATE = timedelta(days=7)
SENDER = "marketing"
SUBJECT = "You left something in your cart"


def _due(now: datetime) -> Filter:
    return Filter(UPDATED, Operator.LESS_OR_EQUAL, int((now - QUIET).timestamp()))


async def has_abandoned(world: "BackendWorld") -> bool:
    """Whether somebody is to be reminded."""
    now = world.mail.sending.clock()
    return bool(await world.documents.query(Query(CARTS, (PENDING, _due(now)), limit=1)))


async def remind(run: "Run[BackendWorld]") -> dict[str, Any]:
    """Remind everybody once; how many, and why others were not."""
    now = run.world.mail.sending.clock()
    counts = {"reminded": 0, "no consent": 0, "too late": 0, "nobody to write to": 0}
    counts |= run.state
    async for page in pages_of(run.world.documents, CARTS, PENDING, _due(now)):
        for cart in page:
            outcome, mail = await _reminder(run.world, cart, now)
            counts[outcome] += await _store(run, cart, outcome, mail)
            await run.checkpoint(counts, done=sum(counts.values()))
    return counts


async def _reminder(
    world: "BackendWorld", cart: StoredDocument, now: datetime
) -> tuple[str, QueuedMail | None]:
    """What becomes of a cart, and the mail where there is to be one."""
    changed: Any = _map(_map(cart.fields, "metadata"), "updated").get("timestampUNIX")
    if not isinstance(changed, int | float) or changed < (now - TOO_LATE).timestamp():
        return "too late", None
    email = await _address(world, cart.fields)
    try:
        recipients = Recipients(to=[checked_address(email)])
    except BadAddress:
        return "nobody to write to", None
    if await world.consent.refused([Recipient(email)], SENDER):
        return "no consent", None
    order = {
        name: cart.fields[name] for name in ("items", "currency", "total") if name in cart.fields
    }
    content: dict[str, Any] = {"message": "It is still there. You can go on where you stopped."}
    if cart.fields.get("url"):
        content["button"] = {"text": "Go to the cart", "url": cart.fields["url"]}
    wish = Wish(
        id=push_id(),
        subject=SUBJECT,
        sender=SENDER,
        group=SENDER,
        template="order",
        data={"content": content, "order": order},
        categories=("abandoned-cart",),
    )
    try:
        return "reminded", world.mail.composer.compose(wish, recipients, now)
    except BadContent:
        return "nobody to write to", None


async def _address(world: "BackendWorld", cart: Fields) -> str:
    owner = cart.get("owner")
    if isinstance(owner, str) and not broken_id_rule(owner):
        for email in emails_of(await world.documents.get(USERS, owner)):
            return email
    email = cart.get("email")
    return email if isinstance(email, str) else ""


async def _store(
    run: "Run[BackendWorld]", cart: StoredDocument, outcome: str, mail: QueuedMail | None
) -> int:
    """Mark the cart, and queue its mail with that; 0 where it has changed meanwhile."""
    world = run.world

    async def mark(documents: DocumentTransaction) -> bool:
        if await documents.get(CARTS, cart.id) != cart.fields:
            return False
        now = world.mail.sending.clock()
        said = {
            "outcome": outcome,
            "date": timestamp_record(now),
            "messageId": mail.id if mail else None,
        }
        status = "reminded" if mail else "abandoned"
        documents.write(Merge(CARTS, cart.id, {"status": status, "reminder": said}))
        return True

    async with run.transaction() as tx:
        marked = await world.documents.transact(tx, mark)
        if marked and mail is not None:
            await world.mail.sending.hold(tx, mail)
    return int(marked)


def _map(record: Fields, name: str) -> dict[str, Any]:
    value = record.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


ABANDONED_CARTS: "Workflow[BackendWorld]" = Workflow(
    name="frequent/abandoned-carts",
    summary="Reminds people once of what they left in a cart.",
    run=remind,
    acts_as=("send_email",),
    schedule="*/15 * * * *",
    when=has_abandoned,
)
