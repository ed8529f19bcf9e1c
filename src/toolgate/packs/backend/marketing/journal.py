"""What of a batch was handed over to the mail server, written where a crash of ours leaves it.

SMTP has no way to ask a server whether it took a mail. So the number of a message is written here
at the last moment before the server can take it: after a crash, a message that is not here was
surely not handed over and is sent, and one that is here is never sent again. A write to a file
outlives the process, not the machine: after a restart of the machine nothing here is believed, and
what was about to be handed over is unknown.
"""

import os
import re
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
            boot, begun, *lines = self._path.read_text(encoding="ascii").split("\n")[:-1]
        except (OSError, ValueError):
            return None
        if self._boot is None or (boot, begun) != (self._boot, batch):
            return None
        pairs = [line.split() for line in lines if WHOLE.fullmatch(line)]
        return {int(number): State(state) for number, state in pairs}

    def begin(self, batch: str) -> None:
        """Begin anew, before the next batch."""
        self.close()
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        self._file = os.open(self._path, flags, PRIVATE)
        os.write(self._file, f"{self._boot or ''}\n{batch}\n".encode())

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


def _boot() -> str | None:
    """What differs after each start of the machine; None where there is no telling."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None
