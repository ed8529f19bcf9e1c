"""From a user's files to tools for the catalogue: all of them, or every reason why not."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from toolgate.extend.declarations import Entry
from toolgate.extend.files import UnreadableEntry, entries_of
from toolgate.extend.routes import BadAddress, origin_of
from toolgate.extend.tools import OWN, OwnTool
from toolgate.extend.validation import EntryValidator
from toolgate.extend.world import OwnWorld
from toolgate.gate.offer import AnyOffer, Offer, Site
from toolgate.sections import ExtendSettings, LimitSettings
from toolgate.setting_types import BadSettings, Section

MAX_BYTES = 4 * 1024 * 1024
MAX_PROBLEMS = 50


Problem = tuple[Path, int | None, str]
"""File, line where one is known, and reason."""
Place = tuple[Path, int]


class BadTools(BadSettings):
    """The files cannot be used; each line of the message has file, line and reason."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = [
            f"{file}:{line}: {reason}" if line else f"{file}: {reason}"
            for file, line, reason in problems
        ]
        lines = self.problems[:MAX_PROBLEMS]
        if len(self.problems) > MAX_PROBLEMS:
            lines.append(f"and {len(self.problems) - MAX_PROBLEMS} more problems.")
        super().__init__("\n".join(lines))


def check_settings(settings: ExtendSettings) -> None:
    """Raise `BadSettings` unless the settings of section extend fit together."""
    try:
        if settings.base_url is not None:
            origin_of(settings.base_url)
    except BadAddress as problem:
        raise BadSettings(f"Setting extend.base_url: {problem}.") from None
    if settings.identity == "key" and not settings.key:
        raise BadSettings("Setting extend.identity is key, so extend.key must be set too.")
    if settings.key and not (settings.key.isascii() and settings.key.isprintable()):
        raise BadSettings("Setting extend.key must be visible ASCII characters.")


def offer_of(files: Sequence[Path], settings: ExtendSettings, limits: LimitSettings) -> AnyOffer:
    """The tools of the files, in their order."""

    @asynccontextmanager
    async def world(site: Site, _: Section) -> AsyncGenerator[OwnWorld]:
        yield OwnWorld(site.documents, site.outbound, settings.seconds, limits)

    problems: list[Problem] = []
    tools: dict[str, tuple[Place, OwnTool]] = {}
    for file in files:
        for one in _entries(file):
            if isinstance(one, UnreadableEntry):
                problems.append((file, one.line, f"{one.reason}."))
                continue
            checking = EntryValidator(one, settings)
            tool = checking.tool()
            problems += [(file, line, reason) for line, reason in checking.problems]
            if tool is not None:
                problems += _add_tool(tools, (file, one.line), tool)
    if problems:
        raise BadTools(problems)
    return Offer(pack=OWN, open=world, tools=tuple(tool for _, tool in tools.values()))


def _entries(file: Path) -> list[Entry | UnreadableEntry]:
    """Every entry of a file; for one that cannot be read as a whole, why."""
    try:
        return list(entries_of(file, _text(file)))
    except UnreadableEntry as problem:
        return [problem]


def _add_tool(
    tools: dict[str, tuple[Place, OwnTool]], place: Place, tool: OwnTool
) -> list[Problem]:
    (file, line), first = tools.setdefault(tool.alias, (place, tool))
    if first is tool:
        return []
    where = f"line {line}" if file == place[0] else f"{file}:{line}"
    message = f"{tool.name}: {where} has a tool of this name already"
    same = first.name == tool.name
    return [(*place, f"{message}." if same else f"{message} ({first.name}; . and _ are one).")]


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise UnreadableEntry(None, f"it is longer than {MAX_BYTES:,} bytes")
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UnreadableEntry(None, "it is not there (setting extend.tools)") from None
    except UnicodeDecodeError:
        raise UnreadableEntry(None, "it is not UTF-8; save it as UTF-8") from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UnreadableEntry(None, f"{why} (setting extend.tools)") from None
