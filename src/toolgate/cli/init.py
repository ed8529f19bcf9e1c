"""`toolgate init`: a settings file with everything in it, commented out."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from toolgate.cli.options import AsJson, ConfigFile
from toolgate.cli.output import say, say_json
from toolgate.cli.problems import Stop

Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
HEAD = """\
# Settings of toolgate. Each line shows its default: remove the # to change it.
# The environment overrides this file (TOOLGATE_SERVER__PORT for server.port), flags override both.
"""


def init(config: ConfigFile = None, force: Force = False, as_json: AsJson = False) -> None:
    """Write a commented toolgate.toml."""
    from toolgate.settings import FILE_NAME

    path = config or Path(FILE_NAME)
    if path.exists() and not force:
        raise Stop(
            f"{path} already exists. Overwrite it with --force, or name another with --config."
        )
    path.write_text(commented_settings(), encoding="utf-8")
    if as_json:
        say_json({"file": str(path)})
    else:
        say(f"Wrote {path}. Every setting in it is commented out; `toolgate doctor` checks it.")


def commented_settings() -> str:
    """The text of a settings file that changes nothing."""
    from toolgate.settings import every_setting, setting_fields

    lines = [HEAD]
    section = ""
    for name, field in setting_fields(every_setting()):
        before, dot, key = name.rpartition(".")
        if dot and before != section:
            section = before
            lines.append(f"\n[{section}]\n")
        lines.append(f"# {field.description}\n# {key} = {_default_text(field)}\n")
    return "\n".join(lines).replace("\n\n\n", "\n\n")


def _default_text(field: Any) -> str:
    default = field.get_default(call_default_factory=True)
    if default is None:
        return '"…"'
    return json.dumps(default, default=str)
