"""`daily/marketing-prune`: who wants no marketing leaves the list of contacts.

Consent is asked again before every mail, so nobody is mailed for being on the list. But a list, and
its copy at a provider, should not keep who has said no.
"""

from typing import TYPE_CHECKING, Any

from toolgate.packs.backend.marketing.consent import Recipient
from toolgate.workflows.declarations import Run, Workflow

if TYPE_CHECKING:
    from toolgate.packs.backend.world import BackendWorld

PAGE = 100


async def prune(run: "Run[BackendWorld]") -> dict[str, Any]:
    """Go through the list, from where an earlier attempt was stopped."""
    contacts = run.world.contacts
    state: dict[str, Any] = run.state or {"after": None, "checked": 0, "removed": 0}
    while rows := await contacts.list.page(state["after"], PAGE):
        emails = [one.contact.email for one in rows]
        refused = await contacts.consent.refused([Recipient(one) for one in emails])
        gone = [one for one in emails if one in refused]
        checked = state["checked"] + len(rows)
        removed = state["removed"] + len(gone)
        state = {"after": emails[-1], "checked": checked, "removed": removed}
        async with run.transaction() as tx:
            for email in gone:
                await contacts.list.remove(tx, email, pending=contacts.provider is not None)
            await run.checkpoint_in(tx, state, done=checked, message=f"{removed} removed")
    return {name: state[name] for name in ("checked", "removed")}


MARKETING_PRUNE: "Workflow[BackendWorld]" = Workflow(
    name="daily/marketing-prune",
    summary="Removes contacts who want no marketing.",
    run=prune,
)
