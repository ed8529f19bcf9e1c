"""Links to the page where a user looks after a subscription."""

from toolgate.packs.backend.payments.payments import Payments, told
from toolgate.packs.backend.payments.preconditions import check_paid, check_payment_known
from toolgate.packs.backend.payments.processor import (
    ProcessorBusy,
    ProcessorRefused,
    ProcessorSilent,
)


async def portal(payments: Payments, uid: str, return_url: str | None, *, may_cancel: bool) -> str:
    """A new link for a user with a paid plan, whatever has become of it."""
    back = payments.return_urls.checked(return_url)
    account = await payments.account(uid)
    check_paid(account)
    check_payment_known(account)
    processor = payments.processor_of(account)
    try:
        return await processor.portal(account, back, may_cancel=may_cancel)
    except (ProcessorRefused, ProcessorBusy) as problem:
        raise told(problem, "create portal session") from problem
    except ProcessorSilent as problem:  # a link that nobody got opens nothing
        raise told(ProcessorBusy(str(problem)), "create portal session") from problem
