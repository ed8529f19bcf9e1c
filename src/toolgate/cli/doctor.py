"""`toolgate doctor`: is everything as it should be, and if not, what to do."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from toolgate.cli import checks, environment, stores
from toolgate.cli.blob_check import check_blobs
from toolgate.cli.checks import CheckResult, State
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_settings
from toolgate.cli.output import failure, say, say_json, success, warning
from toolgate.cli.problems import ExitCode
from toolgate.cli.running_server import running_server

if TYPE_CHECKING:
    from toolgate.settings import Settings

COLOURS = {State.OK: success, State.WARN: warning, State.FAIL: failure}


def doctor(
    ctx: typer.Context,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Check settings, data, database, counters, packs, documents, blobs, audit, clock, port, TLS.

    Nothing stays changed: a test row is written and removed in one transaction, a test blob is
    deleted. The exit code is 1 if a check fails; warnings do not count.
    """
    from toolgate.settings import BadSettings

    try:
        settings = command_settings(ctx, config, data)
    except BadSettings as problem:
        results = [CheckResult("settings", State.FAIL, str(problem))]
    else:
        results = environment.run_async(lambda: _examine(settings, config))
    if as_json:
        say_json([{"check": one.name, "state": one.state, "says": one.message} for one in results])
    else:
        _print_results(results)
    failed = any(one.state is State.FAIL for one in results)
    raise typer.Exit(ExitCode.FAILED if failed else ExitCode.OK)


async def _examine(settings: "Settings", config: Path | None) -> list[CheckResult]:
    server = running_server(settings)
    results = [
        checks.check_file(config),
        checks.check_data(settings, server),
        await checks.check_modes(settings, config),
    ]
    results += [one async for one in stores.check_database(settings, server)]
    results += [
        await stores.check_counters(settings),
        await stores.check_packs(settings),
        await stores.check_documents(settings),
        await check_blobs(settings),
        *[one async for one in stores.check_services(settings)],
        checks.check_rules(settings),
        checks.check_own_tools(settings),
        checks.check_port(settings, server),
        checks.check_extras(settings),
    ]
    if settings.server.https:
        results.append(checks.check_certificate(settings, datetime.now(UTC)))
    return results


def _print_results(results: list[CheckResult]) -> None:
    width = max(len(one.name) for one in results)
    for one in results:
        say(f"{COLOURS[one.state](one.state.ljust(4))}  {one.name.ljust(width)}  {one.message}")
