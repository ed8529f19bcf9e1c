"""The check of blobs: one is written, read and deleted."""

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from toolgate.cli.checks import CheckResult, State

if TYPE_CHECKING:
    from toolgate.ports.blobs import Blobs
    from toolgate.settings import Settings

STORE_SECONDS = 15
OF_DOCTOR = "doctor"
"""The folder, or prefix, of blobs that belong to no pack."""
TRIAL = b"written by toolgate doctor"


async def check_blobs(settings: "Settings") -> CheckResult:
    """Blobs can be written, read and listed; what is written is removed."""
    import anyio

    from toolgate.blob_stores import blob_folder
    from toolgate.ports.blobs import BlobsRefused
    from toolgate.ports.documents import StoreUnavailable
    from toolgate.setting_types import BadSettings

    folder = blob_folder(settings)
    where = str(folder or settings.blobs.url)
    try:
        with anyio.fail_after(STORE_SECONDS):
            if folder is None:
                await _try_bucket(settings)
            elif not await _try_folder(settings, folder):
                return CheckResult("blobs", State.OK, f"{where} will be created at the first use.")
    except (BadSettings, OSError) as problem:
        return CheckResult("blobs", State.FAIL, str(problem))
    except BlobsRefused as problem:
        message = f"{where} cannot be used. {_without_credentials(settings) or problem}"
        return CheckResult("blobs", State.FAIL, message)
    except (StoreUnavailable, TimeoutError) as problem:
        return CheckResult("blobs", State.FAIL, _unavailable(settings, where, problem))
    except Exception:
        step = "Check the settings blobs.* and the AWS_* variables."
        return CheckResult("blobs", State.FAIL, f"{where} cannot be used. {step}")
    answers = "answers" if folder is None else "can be written and read"
    return CheckResult("blobs", State.OK, f"{where} {answers}.")


async def _try_bucket(settings: "Settings") -> None:
    from toolgate.blob_stores import BlobStores

    await _try(BlobStores(settings).of(OF_DOCTOR))


async def _try_folder(settings: "Settings", folder: Path) -> bool:
    """Try each pack's folder that there is, or one of our own; False if there is nothing yet."""
    from toolgate.app import offers_of
    from toolgate.blob_stores import BlobStores

    if not _is_there(folder):
        return False
    stores = BlobStores(settings)
    packs = [offer.pack.name for offer in offers_of(settings)]
    for pack in [one for one in packs if (folder / one).exists()] or [OF_DOCTOR]:
        await _try(stores.of(pack))
    with contextlib.suppress(OSError):
        (folder / OF_DOCTOR).rmdir()
    return True


def _is_there(folder: Path) -> bool:
    """Whether there is one; raises where none can be made."""
    from toolgate.setting_types import BadSettings

    if folder.exists():
        return True
    above = next(one for one in folder.parents if one.exists())
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        step = "Make it writable, or name another folder (setting blobs.url)."
        raise BadSettings(f"{folder} cannot be made: {above} is not writable. {step}")
    return False


async def _try(blobs: "Blobs") -> None:
    name = f"doctor-{secrets.token_hex(8)}"
    await blobs.check()
    await blobs.put(name, TRIAL)
    try:
        await blobs.digest(name)
    finally:
        await blobs.delete(name)


def _unavailable(settings: "Settings", where: str, problem: Exception) -> str:
    from toolgate.blob_stores import blob_folder

    if blob_folder(settings) is not None:
        step = "See that it is a folder, that you may write there, and that the disk has room."
        return f"{where} cannot be used: {_cause(problem)}. {step}"
    server = settings.blobs.endpoint or "AWS"
    without = _without_credentials(settings)
    step = "Check the network, and the settings blobs.endpoint and blobs.region."
    return f"{where} cannot be used. {without or f'{server} cannot be reached, or fails. {step}'}"


def _cause(problem: Exception) -> str:
    cause = problem.__cause__
    why = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(problem)
    return why.rstrip(".").lower() if cause else why.rstrip(".")


def _without_credentials(settings: "Settings") -> str | None:
    """What to say where there are none; a machine of AWS may have a role instead."""
    if settings.blobs.access_key_id:
        return None
    what = "AWS_ACCESS_KEY_ID (setting blobs.access_key_id) is not set, and this machine has no"
    return f"{what} role of AWS. Set it and AWS_SECRET_ACCESS_KEY."
