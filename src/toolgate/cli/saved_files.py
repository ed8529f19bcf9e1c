"""Where `toolgate call` puts the bytes that a tool hands over."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from toolgate.cli.output import note, on_terminal
from toolgate.cli.problems import Stop

if TYPE_CHECKING:
    from toolgate.gate.outcomes import Attached, Outcome

STDOUT = "-"


def save_attachment(outcome: "Outcome", save: str | None, *, force: bool) -> bool:
    """Save an attachment, or print it; True where the rest of the answer is still to be printed.

    In a pipe that asks for no file it is base64 in the JSON, as on other transports.
    """
    assert outcome.attached is not None
    if save == STDOUT:
        note(outcome.text)
        sys.stdout.buffer.write(outcome.attached.data)
        return False
    if save is None and not on_terminal():
        import orjson

        from toolgate.gate.outcomes import inline_attachment

        typer.echo(orjson.dumps(inline_attachment(outcome)))
        return False
    path = _place(outcome.attached, save)
    _write(path, outcome.attached.data, force=force)
    note(f"{outcome.attached.field}: {len(outcome.attached.data):,} bytes in {path}")
    return True


def _place(attached: "Attached", save: str | None) -> Path:
    """The file that was named, or one in the folder, whose name leads nowhere else."""
    path = Path(save or ".")
    if not path.is_dir():
        return path
    path /= attached.attachment.file_name
    if path.is_symlink():
        raise Stop(f"{path} is a link to another place. Name the file with --save.")
    return path


def _write(path: Path, data: bytes, *, force: bool) -> None:
    try:
        file = path.open("wb" if force else "xb")
    except FileExistsError:
        step = "Name another file with --save, or overwrite it with --force."
        raise Stop(f"{path} is there already. {step}") from None
    with file:
        file.write(data)
