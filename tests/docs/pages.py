"""Markdown pages as a list of blocks to check, and text compared with what a page shows."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "examples/worker/README.md",
]
BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.S | re.M
)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)\s]+)\)")
MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?"), "TIME"),
    (re.compile(r"tg_[0-9a-f]{16}_[0-9a-f]{64}"), "tg_KEY"),
    (re.compile(r"\b[0-9a-f]{16,64}\b"), "HEX"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r"(?m)^(\d+ TIME .*?) \d+\b"), r"\1 MS"),  # how long a call took, in the audit
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, and the note that stands before it as `<!-- word: rest -->`."""

    note: str
    rest: str
    language: str
    text: str

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Each command of a console block with the output shown below it."""
        parts = re.split(r"^\$ ", self.text, flags=re.M)[1:]
        return [_command(part) for part in parts]


def _command(part: str) -> tuple[str, str]:
    command, _, shown = part.partition("\n")
    while command.endswith("\\"):
        more, _, shown = shown.partition("\n")
        command += f"\n{more}"
    return command, shown


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    found: list[Block] = []
    for one in BLOCK.finditer(page.read_text(encoding="utf-8")):
        note, _, rest = (one["note"] or "").partition(":")
        found.append(Block(note.strip(), rest.strip(), one["language"], one["text"]))
    return found


def links(page: Path) -> list[str]:
    """The relative links of a page, without fragments."""
    prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
    return [link.partition("#")[0] for link in LINK.findall(prose) if not link.startswith("#")]


def masked(text: str) -> str:
    """The text without what differs at every run."""
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def fits(shown: str, real: str, *, whole: bool = True) -> bool:
    """Whether the output is what the page shows; `…` stands for anything."""
    pattern = re.escape(masked(shown))
    pattern = re.sub(r"(?m)^…\\\n", "(?:.*?\n)?", pattern).replace("…", ".*?")
    match = re.fullmatch if whole else re.match
    return match(pattern, masked(real), re.S) is not None
