"""Where `toolgate call` puts the bytes that a tool hands over."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from toolgate.cli.output import escaped_json, note, on_terminal
from toolgate.cli.problems import Stop

if TYPE_CHECKING:
    from toolgate.gate.outcomes import Attached, Outcome

STDOUT = "-"
PREFIX = "attachment"
"""Of names in a folder: whoever made the attachment chose its name, and programs read files by
theirs (`toolgate.toml`, `.env`), or take them for options (`-rf`)."""
RULES = ".cedar"
"""A folder of rules is read by this suffix, whatever comes before it."""


def check_place(save: str, *, dry_run: bool) -> None:
    """Raise where nothing could be saved, before the tool is called."""
    if dry_run:
        raise Stop("A dry run stores nothing. Leave out --save, or --dry-run.")
    if save == STDOUT:
        if on_terminal():
            step = "Name a file, or send them elsewhere: --save - > FILE."
            raise Stop(f"--save - writes bytes, and stdout is a terminal. {step}")
        return
    if not save:
        raise Stop("--save needs a file, a folder, or - for stdout.")
    is_folder = save.endswith(("/", os.sep))
    folder = Path(save) if is_folder else Path(save).parent
    if not folder.is_dir():
        raise Stop(f"There is no folder {folder}. Make it, or name another with --save.")


def save_attachment(outcome: "Outcome", save: str | None, *, force: bool) -> bool:
    """Save an attachment where asked to; True where the rest of the answer is still to be printed.

    Where no file is asked for, it is base64 in the JSON of a pipe, as on other transports, and
    only described on a terminal.
    """
    assert outcome.attached is not None
    if save == STDOUT:
        note(escaped_json(outcome.text))
        sys.stdout.buffer.write(outcome.attached.data)
        return False
    if save is None and not on_terminal():
        import orjson

        typer.echo(orjson.dumps(outcome.attached.inline()))
        return False
    attached, size = outcome.attached, f"{len(outcome.attached.data):,} bytes"
    if save is None:
        kind, name = attached.attachment.content_type, attached.attachment.file_name
        step = "Save it with --save FILE."
        note(f"{attached.field}: {size} of {kind} named {name}, not saved. {step}")
        return True
    path = _place(attached, save)
    _write(path, attached.data, force=force)
    note(f"{attached.field}: {size} in {path}")
    return True


def _place(attached: "Attached", save: str) -> Path:
    """The file that was named, or one in the folder, whose name leads nowhere else."""
    path = Path(save)
    if not path.is_dir():
        return path
    name = attached.attachment.file_name
    path /= name if name.startswith(PREFIX) else f"{PREFIX}-{name}"
    if path.suffix.lower() == RULES:
        raise Stop(f"{path} may be read as a rule. Name the file with --save.")
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
