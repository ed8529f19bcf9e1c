"""Checks of what toolgate keeps: database, keys, audit, documents; and of the packs."""

import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from toolgate.cli.checks import CheckResult, State, check_clock, failed_check
from toolgate.cli.integrity import check_integrity
from toolgate.cli.principals import IN_FORCE, key_state
from toolgate.cli.problems import explain

if TYPE_CHECKING:
    from toolgate.cli.running_server import RunningServer
    from toolgate.db.engine import Database
    from toolgate.gate.offer import FindRepository
    from toolgate.settings import Settings

STORE_SECONDS = 15


async def check_packs(settings: "Settings") -> CheckResult:
    """Every enabled pack opens; tried on a database in passing, without any other store."""
    import anyio

    from toolgate.app import opened
    from toolgate.sections import ExtendSettings, PolicySettings
    from toolgate.storage_sections import BlobSettings, DatabaseSettings

    with tempfile.TemporaryDirectory() as folder:
        trial = settings.model_copy(
            update={
                "data": Path(folder),
                "database": DatabaseSettings(url=None),
                # Checked by themselves.
                "documents": type(settings.documents)(url="database:"),
                "blobs": BlobSettings(),
                "extend": ExtendSettings(),
                "policy": PolicySettings(),
            }
        )
        try:
            with anyio.fail_after(STORE_SECONDS):
                async with opened(trial) as app:
                    tools = len(app.gate.catalogue)
                    names = ", ".join(offer.pack.name for offer in app.gate.catalogue.offers)
        except TimeoutError:
            message = f"They are not open within {STORE_SECONDS} s. Check their settings."
            return CheckResult("packs", State.FAIL, message)
        except Exception as error:
            return failed_check("packs", error)
    return CheckResult("packs", State.OK, f"{names}; {tools} tools.")


async def check_documents(settings: "Settings") -> CheckResult:
    """Every place of documents answers; the database is checked by itself."""
    import anyio

    from toolgate.db.engine import Database
    from toolgate.document_stores import DocumentStores, packs_with_documents

    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{folder}/toolgate.db")
        stores = DocumentStores(settings, database)
        try:
            with anyio.fail_after(STORE_SECONDS):
                for pack in packs_with_documents(settings):
                    stores.of(pack)
                await stores.check()
        except TimeoutError:
            message = f"No answer within {STORE_SECONDS} s. Check documents.* and the network."
            return CheckResult("documents", State.FAIL, message)
        except Exception as error:
            return failed_check("documents", error)
        finally:
            await stores.close()
            await database.close()
    return CheckResult("documents", State.OK, f"{_store_places(settings)}.")


def _store_places(settings: "Settings") -> str:
    """Where documents are, pack by pack where that differs."""
    from toolgate.document_stores import firestore_of, packs_with_documents

    places = {pack: firestore_of(settings, pack) for pack in packs_with_documents(settings)}
    places = {
        pack: f"{place} answers" if place else "kept in the database"
        for pack, place in places.items()
    }
    if len(set(places.values())) == 1:
        return places.popitem()[1]
    return ", ".join(f"{pack}: {where}" for pack, where in places.items())


async def check_counters(settings: "Settings") -> CheckResult:
    """Calls can be counted."""
    from urllib.parse import urlsplit

    import anyio

    from toolgate.gate.errors import Unavailable
    from toolgate.gate.limits import MEMORY, Limits

    store = settings.limits.store
    if store == MEMORY:
        return CheckResult("counters", State.OK, "each process counts calls by itself.")
    where = urlsplit(store).netloc.rpartition("@")[2]  # without a password
    step = "Start it, or change the setting limits.store."
    try:
        limits = Limits(settings.limits)
        try:
            with anyio.fail_after(STORE_SECONDS):
                await limits.check()
        finally:
            await limits.close()
    except (Unavailable, TimeoutError):
        message = f"The counter store at {where} does not answer, so no call is answered."
        return CheckResult("counters", State.FAIL, f"{message} {step}")
    except Exception as error:
        return CheckResult("counters", State.FAIL, f"limits.store cannot be used: {error}. {step}")
    return CheckResult("counters", State.OK, f"The counter store at {where} answers.")


async def check_database(
    settings: "Settings", server: "RunningServer | None"
) -> AsyncIterator[CheckResult]:
    """The file, schema, writing, keys, audit and clock; nothing stays changed."""
    from toolgate.data_folder import embedded_file
    from toolgate.db.engine import Database

    try:
        database = Database(settings.database_url)
    except Exception as error:
        yield failed_check("database", error)
        return
    try:
        file = embedded_file(database)
        if file and not file.exists():
            for check in _without_file(settings, file, server):
                yield check
            return
        integrity = await check_integrity(database, file) if file else None
        if integrity:
            yield integrity
        if not integrity or integrity.state is State.OK:
            async for check in _inside(settings, database):
                yield check
    except Exception as error:
        yield failed_check("database", error)
    finally:
        await database.close()


def _without_file(
    settings: "Settings", file: Path, server: "RunningServer | None"
) -> list[CheckResult]:
    if server is None:
        result = CheckResult("database", State.OK, f"{file} will be created at the first start.")
        return [result, _keys(settings, [])]
    if server.has_lost_database:
        message = f"{file} is gone, and the toolgate at {server.url} has lost its database."
        step = "Stop it, restore the file from a backup, and start it again."
        return [CheckResult("database", State.FAIL, f"{message} {step}")]
    message = f"{file} is not there, but a toolgate answers at {server.url}: its data is elsewhere."
    step = "Run this command in its folder, or name its settings with --config or --data."
    return [CheckResult("database", State.WARN, f"{message} {step}")]


async def _inside(settings: "Settings", database: "Database") -> AsyncIterator[CheckResult]:
    schema = await _schema(settings, database)
    yield schema
    if schema.state is State.OK:
        async for check in _contents(settings, database):
            yield check


async def _schema(settings: "Settings", database: "Database") -> CheckResult:
    from toolgate.app import offers_of, schemas_of
    from toolgate.db.schemas import GATE
    from toolgate.db.upgrades import current_revision, missing_parts, pending_upgrades

    schemas = schemas_of(offers_of(settings))
    what = f"{database.dialect} answers"
    has = await current_revision(database)
    behind = await pending_upgrades(database, schemas)
    if not behind and (missing := await missing_parts(database, [GATE, *schemas])):
        step = "Correct the migrations, or restore the database from a backup."
        message = f"{what}; schema {has}, but it lacks {', '.join(missing)}. {step}"
        return CheckResult("database", State.FAIL, message)
    if not behind:
        return CheckResult("database", State.OK, f"{what}; schema {has}.")
    schema, revision = behind[0]
    there, needs = f"{what}; {schema.describe(revision)}", schema.newest
    if revision is not None and revision > needs:
        message = f"{there} is newer than this version supports ({needs})."
        return CheckResult("database", State.FAIL, f"{message} Install a newer one.")
    state = State.FAIL if has and database.dialect != "sqlite" else State.WARN
    step = "Run `toolgate db upgrade`."
    return CheckResult("database", state, f"{there}, needs {needs}. {step}")


async def _contents(settings: "Settings", database: "Database") -> AsyncIterator[CheckResult]:
    from toolgate.db.workflow_holds import RESTING, held_since
    from toolgate.gate.trail import rows
    from toolgate.gate.verification import verify
    from toolgate.identity.keys import Keys

    yield await _writing(database)
    if await database.read(held_since):
        yield CheckResult("background work", State.WARN, RESTING)
    yield _keys(settings, await Keys(database).list())
    verdict = await verify(database)
    if verdict.findings:
        first = verdict.findings[0]
        message = f"Findings: {len(verdict.findings)}, the first: {first.what} {first.seq}."
        yield CheckResult("audit", State.FAIL, f"{message} Run `toolgate audit verify`.")
    else:
        yield CheckResult("audit", State.OK, f"intact: rows {verdict.rows}, seals {verdict.seals}.")
    newest = await rows(database, limit=1)
    yield check_clock(newest[-1]["created_at"] if newest else None, datetime.now(UTC))


async def _writing(database: "Database") -> CheckResult:
    """A write can be committed; the same is tried by `/readyz`."""
    from toolgate.db.health import DatabaseHealth
    from toolgate.db.outages import DatabaseTimeout

    name = "database write"
    try:
        async with database.time_limit(writes=True):
            await DatabaseHealth(database).check_writing()
    except DatabaseTimeout as late:
        step = "Another program may hold a lock on it; try again when that program has ended."
        return CheckResult(name, State.FAIL, f"A test row could not be written: {late}. {step}")
    except Exception as error:
        return failed_check(name, error)
    return CheckResult(name, State.OK, "a test row was written and removed.")


def _keys(settings: "Settings", rows: list[dict[str, object]]) -> CheckResult:
    if settings.admin_key:
        return CheckResult("admin key", State.OK, "set by a setting.")
    good = sum(1 for row in rows if row["role"] == "admin" and key_state(row) == IN_FORCE)
    if good:
        return CheckResult("admin key", State.OK, f"{good} in force.")
    return CheckResult("admin key", State.WARN, "none; the next `toolgate serve` creates one.")


async def check_services(settings: "Settings") -> AsyncIterator[CheckResult]:
    """What packs reach outside, each as its pack looks at it."""
    from toolgate.app import offers_of
    from toolgate.forges import Forges
    from toolgate.gate.offer import ServiceWarning
    from toolgate.outbound.client import Outbound

    try:
        offers = offers_of(settings)
    except Exception:
        return  # the check of packs says what is wrong
    async with Outbound(settings.outbound.allow) as outbound:

        async def look(name: str, find: "FindRepository") -> str:
            url, branch = find(settings)
            return await Forges(settings, outbound).of(url, name).check(branch)

        checks = [
            (name, partial(examine, settings, outbound))
            for offer in offers
            for name, examine in offer.checks.items()
        ] + [
            (name, partial(look, name, find))
            for offer in offers
            for name, find in offer.repositories.items()
        ]
        for name, check in checks:
            try:
                yield CheckResult(name, State.OK, await check())
            except ServiceWarning as warning:
                yield CheckResult(name, State.WARN, str(warning))
            except Exception as error:
                told = explain(error)
                yield CheckResult(name, State.FAIL, told[0] if told else str(error))
