"""Draws docs/a-call.svg: the console block at the end of Life of a call, as a terminal shows it.

The block is run by tests/docs, so the picture shows what really happens.

python -m docs.picture           draw it
python -m docs.picture --check   exit 1 if it is not what the page says
"""

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

FOLDER = Path(__file__).parent
PAGE = FOLDER / "explanation" / "life-of-a-call.md"
PICTURE = FOLDER / "a-call.svg"
WIDTH = 98
# Readable on a light page and on a dark one: the picture brings its own background.
THEME = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [(0, 0, 0), (255, 123, 114), (126, 231, 135), (242, 204, 96)] + [(121, 192, 255)] * 4,
)
COLOURS = (
    (re.compile(r"^\$ .*$", re.MULTILINE), "bold color(4)"),
    (re.compile(r'"error"|refused: \S+'), "bold color(1)"),
    (re.compile(r'"success":true|\bok$|^Intact', re.MULTILINE), "bold color(2)"),
    (re.compile(r"^ROW .*$", re.MULTILINE), "bold"),
)
WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def drawn() -> str:
    """The picture."""
    text = Text(_block(PAGE.read_text(encoding="utf-8")))
    for pattern, style in COLOURS:
        text.highlight_regex(pattern, style)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), color_system="truecolor")
    console.print(text, soft_wrap=True)
    svg = console.export_svg(title="toolgate", theme=THEME, unique_id="call")
    # No font from elsewhere: whoever looks at the page asks nobody else for anything.
    return WEB_FONT.sub("", svg).replace("Fira Code, monospace", "ui-monospace, monospace")


def _block(page: str) -> str:
    return page.rpartition("```console\n")[2].partition("```")[0].rstrip("\n")


def is_stale() -> bool:
    """Whether the page says something else."""
    return not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn()


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(f"{PICTURE.name} is stale: run `python -m docs.picture`." if is_stale() else 0)
    PICTURE.write_text(drawn(), encoding="utf-8")
