"""What marketing is made of, and how a campaign begins: stored as processing, with its run."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from toolgate.db.transactions import Transaction
from toolgate.gate.errors import GateError, InvalidArguments, Problem
from toolgate.gate.principal import Principal
from toolgate.packs.backend.mail.content import BadContent, read_content
from toolgate.packs.backend.mail.service import Mail
from toolgate.packs.backend.marketing.campaigns import CampaignFilter, Campaigns, Status, changed
from toolgate.packs.backend.marketing.consent import Consent, emails_of
from toolgate.packs.backend.marketing.contacts import ContactList
from toolgate.packs.backend.marketing.deliveries import Deliveries
from toolgate.packs.backend.marketing.reading import problem_of
from toolgate.packs.backend.marketing.recurrence import Recurrence, next_date
from toolgate.packs.backend.push.port import Push
from toolgate.ports.documents import DocumentStore, Fields
from toolgate.ports.push_ids import push_id
from toolgate.ports.users import USERS
from toolgate.workflows.declarations import utc_now
from toolgate.workflows.runs import RunNotFound, Workflows

SEND = "send-campaign"
"""The workflow that sends one campaign."""
DUE_AT_ONCE = 20
"""Campaigns that are begun in one go; the others a minute later."""
LEASE = timedelta(minutes=30)
"""After that, a campaign that is processing without a run of its own is begun again."""
PUSH = "push"
ODD = "its document cannot be read"
SETTLED_BY_THE_RUN = "the run that sent it did not end well: see `toolgate workflows show`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marketing:
    """The parts of marketing."""

    documents: DocumentStore
    campaigns: Campaigns
    deliveries: Deliveries
    consent: Consent
    contacts: ContactList
    mail: Mail
    push: Push
    push_provider: str
    workflows: Workflows
    journals: Path
    clock: Callable[[], datetime] = utc_now

    def provider(self, type: str) -> str:
        """Who delivers campaigns of this type."""
        return self.push_provider if type == PUSH else self.mail.mailer.provider

    def check_content(self, settings: Fields) -> None:
        """Refuse what no template can show, before anything is stored."""
        try:
            read_content(settings.get("data"), str(settings.get("subject", "")))
        except BadContent as problem:
            message = f"{problem.field} {problem}"
            raise InvalidArguments([Problem(problem.field, "value", message)]) from None

    async def tester(self, type: str, caller: Principal) -> Fields:
        """Who gets a campaign that is only tried: the caller, or the brand's contact."""
        record = await self.documents.get(USERS, caller.user_id) if caller.user_id else None
        emails = emails_of(record)
        if type == PUSH and caller.user_id:
            return {"uid": caller.user_id}
        if type != PUSH and (emails or self.mail.brand.contact):
            return {"email": emails[0] if emails else self.mail.brand.contact}
        why = "these credentials belong to no user" if not caller.user_id else "you have no address"
        way = "" if type == PUSH else ", or set brand.contact"
        message = f"test: {why}, so there is nobody to send it to. Use a key of a user{way}"
        raise InvalidArguments([Problem("test", "value", message)])

    async def begin(
        self, tx: Transaction, id: str, campaign: Fields, collected: int | None = None
    ) -> Fields:
        """The campaign as one that is being sent; its run starts when the transaction commits."""
        now = self.clock()
        arguments, key = {"campaign": id}, f"{id}:{campaign['sendAt']}"
        if collected is not None:
            arguments, key = {**arguments, "collected": collected}, f"{campaign['run']}:kept"
        run = await self.workflows.start(tx, SEND, arguments, key=key)
        lease = int((now + LEASE).timestamp())
        return changed(campaign, now, status=Status.PROCESSING.value, run=run, lease=lease)

    async def deliver_kept(self) -> int:
        """Send by mail what campaigns kept in the outbox; how many campaigns begin again."""
        begun = 0
        for id in await self.deliveries.kept():

            async def work(campaign: Fields, id: str = id) -> list[tuple[str, Fields]]:
                if campaign["status"] != Status.SENT or campaign["type"] == PUSH:
                    return []
                nonlocal begun
                begun += 1
                total = await self.deliveries.release(tx, id)
                return [(id, await self.begin(tx, id, campaign, total))]

            async with self.workflows.runs.database.transaction() as tx:
                await self.campaigns.change(tx, id, work)
        return begun

    async def has_due(self) -> bool:
        """Whether a campaign waits to begin, or to be settled."""
        now = int(self.clock().timestamp())
        for status, end in ((Status.PENDING, now), (Status.PROCESSING, None)):
            if await self.campaigns.list(CampaignFilter(status=status.value, end=end, limit=1)):
                return True
        return False

    async def begin_due(self) -> dict[str, int]:
        """Begin what is due, and settle what a run left behind; how many of each."""
        now = int(self.clock().timestamp())
        due = CampaignFilter(status=Status.PENDING.value, end=now, limit=DUE_AT_ONCE)
        begun = await self._each(due, lambda id, _: self._begin_one(id))
        under_way = CampaignFilter(status=Status.PROCESSING.value, limit=1000)
        return {"begun": begun, "settled": await self._each(under_way, self._settle)}

    async def _each(
        self, wanted: CampaignFilter, work: Callable[[str, Fields], Awaitable[int]]
    ) -> int:
        """Do something to each campaign; one that cannot be read has failed, and stops no other."""
        count = 0
        away: GateError | None = None
        for id, campaign in await self.campaigns.list(wanted):
            try:
                count += await work(id, campaign)
            except GateError as problem:  # told once the others had their turn, and tried again
                away = problem
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
                await self._fail(id, campaign.get("status"), ODD)
        if away is not None:
            raise away
        return count

    async def _fail(self, id: str, status: Any, error: str) -> None:
        async def work(campaign: Fields) -> list[tuple[str, Fields]]:
            if campaign.get("status") != status:
                return []
            failed = Status.FAILED.value
            return [(id, changed(campaign, self.clock(), status=failed, error=error))]

        async with self.workflows.runs.database.transaction() as tx:
            await self.campaigns.change(tx, id, work)

    async def _begin_one(self, id: str) -> int:
        """Begin a campaign, unless it was changed meanwhile; one that recurs waits again."""
        count = 0

        async def work(campaign: Fields) -> list[tuple[str, Fields]]:
            nonlocal count
            now = self.clock()
            if campaign["status"] != Status.PENDING or campaign["sendAt"] > now.timestamp():
                return []
            if problem := problem_of(campaign):
                return [(id, changed(campaign, now, status=Status.FAILED.value, error=problem))]
            given = campaign.get("recurrence")
            recurrence = Recurrence.model_validate(given) if given else None
            count = 1
            if recurrence is None:
                return [(id, await self.begin(tx, id, campaign))]
            first = datetime.fromtimestamp(campaign.get("firstAt", campaign["sendAt"]), now.tzinfo)
            later = int(next_date(recurrence, first, now).timestamp())
            again = changed(campaign, now, sendAt=later, firstAt=int(first.timestamp()))
            names = ("settings", "sendAt", "type", "metadata")
            once = {name: campaign[name] for name in names if name in campaign}
            history = {**once, "status": Status.PENDING.value, "recurringId": id}
            other = push_id()
            return [(id, again), (other, await self.begin(tx, other, history))]

        async with self.workflows.runs.database.transaction() as tx:
            await self.campaigns.change(tx, id, work)
        return count

    async def _settle(self, id: str, campaign: Fields) -> int:
        """A campaign whose run failed has failed; one whose run is nowhere begins again."""
        try:
            run = await self.workflows.find(str(campaign.get("run")))
        except RunNotFound:
            run = None
        now = self.clock()
        lease = campaign.get("lease")
        if run is None and isinstance(lease, int | float) and lease > now.timestamp():
            return 0
        if run is not None and not run.ended:
            return 0

        async def work(current: Fields) -> list[tuple[str, Fields]]:
            if current["status"] != Status.PROCESSING or current.get("run") != campaign.get("run"):
                return []
            if run is None and (problem := problem_of(current)):
                return [(id, changed(current, now, status=Status.FAILED.value, error=problem))]
            if run is None:
                return [(id, await self.begin(tx, id, current))]
            failed = changed(
                current, now, status=Status.FAILED.value, error=run.error or SETTLED_BY_THE_RUN
            )
            return [(id, failed)]

        async with self.workflows.runs.database.transaction() as tx:
            await self.campaigns.change(tx, id, work)
        return 1
