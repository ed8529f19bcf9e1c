"""What of a batch was handed over to the mail server, written where a crash of ours leaves it.

SMTP has no way to ask a server whether it took a mail. So the number of a message is written here
at the last moment before the server can take it: after a crash, a message that is not here was
surely not handed over and is sent, and one that is here is never sent again. A write to a file
outlives the process, not the machine: after a restart of the machine nothing here is believed, and
what was about to be handed over is unknown. So it is while another process still has the journal
open: one that was only slow, and lost its lease, may go on handing over.
"""

import os
import re
import sys
from pathlib import Path

from toolgate.packs.backend.marketing.deliveries import State

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PRIVATE = 0o600
WHOLE = re.compile(r"[0-9]+ [a-z]+")


class Journal:
    """One for each run of a campaign, in the data folder."""

    def __init__(self, folder: Path, run: str) -> None:
        self._path = folder / f"{run}.journal"
        self._boot = _boot()
        self._file: int | None = None

    def read(self, batch: str | None) -> dict[int, State] | None:
        """What became of the messages of this batch; None where that cannot be told.

        One that is not among them was not handed over.
        """
        try:
            with self._path.open(encoding="ascii") as file:
                _lock(file.fileno())
                boot, begun, *lines = file.read().split("\n")[:-1]
        except (OSError, ValueError):
            return None
        if self._boot is None or (boot, begun) != (self._boot, batch):
            return None
        pairs = [line.split() for line in lines if WHOLE.fullmatch(line)]
        return {int(number): State(state) for number, state in pairs}

    def begin(self, batch: str) -> None:
        """Begin anew, before the next batch."""
        if self._file is None:
            self._file = self._create()
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{self._boot or ''}\n{batch}\n".encode())

    def _create(self) -> int:
        """A file of our own: another process may still write to the one that was there."""
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        self._path.unlink(missing_ok=True)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, PRIVATE)
        _lock(file)
        return file

    def note(self, number: int, state: State = State.UNKNOWN) -> None:
        """Write that this one is handed over now; and then, what became of it."""
        assert self._file is not None
        os.write(self._file, f"{number} {state.value}\n".encode())

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def remove(self) -> None:
        """The run is over."""
        self.close()
        self._path.unlink(missing_ok=True)


def _lock(file: int) -> None:
    """Until it is closed, or the process ends; raises `OSError` where another has it."""
    if sys.platform != "win32":
        import fcntl  # noqa: PLC0415 (not on Windows, where no boot is known either)

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _boot() -> str | None:
    """What differs after each start of the machine; None where there is no telling."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None
