"""Links with which a recipient leaves an unsubscribe group, and the page behind them.

Opening the page changes nothing: programs that look at mail open every link. The button on it, or
the mail program's own (RFC 8058), sends a POST.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolgate.gate.cursors import Cursors
from toolgate.gate.errors import GateError
from toolgate.gate.pages import HTML, PageAnswer, PageRequest, outside_caller
from toolgate.packs.backend.brand import BrandSettings
from toolgate.packs.backend.mail.addresses import normalised
from toolgate.packs.backend.mail.senders import is_marketing
from toolgate.packs.backend.marketing.consent import Consent
from toolgate.packs.backend.pack import ROUTES

if TYPE_CHECKING:
    from jinja2 import Template

PATH = f"{ROUTES}/unsubscribe"
SIGNED_FOR = ("backend", "unsubscribe")
SOURCE = "unsubscribe-link"


@dataclass(frozen=True, slots=True)
class UnsubscribeLinks:
    """Makes links and reads them: who has one may end the mails it is about, and nothing else."""

    base_url: str
    cursors: Cursors

    def page(self) -> str:
        """The page without a link's secret."""
        return self.base_url + PATH

    def link(self, email: str, group: str | int) -> str:
        """The link of one recipient."""
        token = self.cursors.make(SIGNED_FOR, [normalised(email), str(group)])
        return f"{self.base_url}{PATH}?token={token}"

    def read(self, token: str) -> tuple[str, str] | None:
        """The address and the group of a link; None where it is none of ours."""
        try:
            found = self.cursors.read(SIGNED_FOR, token)
        except GateError:
            return None
        return (str(found[0]), str(found[1])) if found else None


async def answer_unsubscribe(
    links: UnsubscribeLinks, consent: Consent, brand: BrandSettings, request: PageRequest
) -> PageAnswer:
    """The page, or what a POST to it does."""
    found = links.read(request.query.get("token", ""))
    if found is None:
        return _page(400, "invalid", brand)
    email, group = found
    if request.method == "POST":
        async with request.transaction("unsubscribe-link", outside_caller("unsubscribe")) as tx:
            await consent.unsubscribe(tx, email, group, SOURCE)
            if is_marketing(group):
                await consent.revoke(tx, email, SOURCE)
        return _page(200, "done", brand, email, group)
    return _page(200, "ask", brand, email, group)


def problem_page(brand: BrandSettings, problem: GateError) -> PageAnswer:
    """The page where nothing could be done."""
    return _page(problem.status, "problem", brand, sentence=problem.message)


def _page(
    status: int,
    state: str,
    brand: BrandSettings,
    email: str = "",
    group: str = "",
    *,
    sentence: str = "",
) -> PageAnswer:
    words = {"state": state, "email": email, "group": group, "sentence": sentence}
    return PageAnswer(status, _template().render(brand=brand, **words).encode(), HTML)


@cache
def _template() -> "Template":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415

    folder = Path(__file__).parent / "templates"
    pages = Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined)
    return pages.get_template("unsubscribe.page")
