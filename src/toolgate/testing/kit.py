"""A gate for tests: real database, real policy, real audit."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.lowlevel
from sqlalchemy import select

from toolgate import demo, packs
from toolgate.app import App, opened
from toolgate.db.tables import audit
from toolgate.gate.calls import Call
from toolgate.gate.offer import AnyOffer
from toolgate.gate.outcomes import Outcome
from toolgate.gate.principal import Principal, Role, of_role
from toolgate.settings import read_settings

MANY = 1_000_000
ADMIN = of_role(Role.ADMIN, "test-admin")


@dataclass(frozen=True, slots=True)
class Kit:
    """An open gate and short ways to use it."""

    app: App

    async def call(
        self, tool: str, /, as_: Principal = ADMIN, *, dry_run: bool = False, **arguments: Any
    ) -> Outcome:
        """One call through the gate."""
        if not isinstance(as_, Principal):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f'kit.call takes arguments by name, as in kit.call("{tool}", city="Rome"); '
                "kit.send takes them as a dict"
            )
        return await self.send(tool, arguments, as_, dry_run=dry_run)

    async def send(
        self, tool: str, arguments: Any, as_: Principal = ADMIN, *, dry_run: bool = False
    ) -> Outcome:
        """One call with arguments of any shape; others get their turn first, as on the wire."""
        await anyio.lowlevel.checkpoint()
        return await self.app.gate.execute(
            Call(
                tool=tool,
                arguments=arguments,
                principal=as_,
                request_id="test",
                transport="test",
                dry_run=dry_run,
            )
        )

    async def audit_rows(self) -> list[dict[str, Any]]:
        """Every audit row so far, oldest first."""
        await self.app.gate.audit.flush()
        every = select(audit).order_by(audit.c.seq)
        return await self.app.gate.database.read(
            lambda connection: [dict(row) for row in connection.execute(every).mappings()]
        )


@asynccontextmanager
async def opened_kit(
    folder: Path,
    *,
    writes: bool = False,
    demo_data: bool = False,
    plugins: Sequence[AnyOffer] = (),
    **settings: Any,
) -> AsyncGenerator[Kit, None]:
    """A gate that keeps its data in `folder`; settings as `limits__seconds=1`.

    With `writes`, every switch that the rules of the enabled packs ask for is on.
    """
    flags = {name.replace("__", "."): value for name, value in settings.items()}
    values: dict[str, Any] = {"data": folder, "limits.calls_per_minute": 0}
    values |= switched_on(settings.get("packs__enabled")) if writes else {}
    uncounted = dict.fromkeys(("limits.refusals_per_minute", "limits.guesses_per_minute"), MANY)
    flags = values | uncounted | flags
    async with opened(read_settings(flags=flags, environment={}), plugins) as app:
        if demo_data:
            await demo.load_demo(app)
        yield Kit(app)


def switched_on(enabled: Iterable[str] | None = None) -> dict[str, Any]:
    """Settings that switch on what these packs' rules ask for; all built-in ones unless named."""
    return {
        f"{offer.pack.name}.{key}": True
        for offer in packs.offers(enabled)
        if offer.settings
        for key in offer.settings.switches.values()
    }
