"""Work that lasts ends with its credential, and otherwise as it would by itself."""

import anyio
import pytest

from toolgate.gate.errors import Unauthenticated
from toolgate.transports.stream_credentials import run_while_valid

pytestmark = pytest.mark.anyio


async def good() -> bool:
    return True


async def ended() -> bool:
    return False


async def test_the_answer_of_the_work_is_the_answer() -> None:
    async def work() -> str:
        return "done"

    assert await run_while_valid(good, work) == "done"


async def test_a_failure_of_the_work_stays_what_it_is() -> None:
    async def work() -> None:
        raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        await run_while_valid(good, work)


async def test_work_ends_with_its_credential() -> None:
    with pytest.raises(Unauthenticated, match="expired or was revoked"):
        await run_while_valid(ended, anyio.sleep_forever)
