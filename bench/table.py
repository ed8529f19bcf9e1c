"""What was measured, beside what must hold."""

from dataclasses import dataclass, field

from bench.jobs import Measured

OVER, UNDER = "OVER", "UNDER"
BAD = (OVER, UNDER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One ratio and its bound."""

    what: str
    figures: str
    ratio: float
    bound: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        return self.ratio >= self.bound if self.at_least else self.ratio <= self.bound

    @property
    def cells(self) -> list[str]:
        sign = "≥" if self.at_least else "≤"
        told = "ok" if self.holds else UNDER if self.at_least else OVER
        return [self.what, self.figures, f"{self.ratio:.2f}", f"{sign} {self.bound:g}", told]


@dataclass(slots=True)
class Book:
    """Everything a run found."""

    figures: list[tuple[str, str, Measured]] = field(
        default_factory=list[tuple[str, str, Measured]]
    )
    """What was asked, of whom, and how it went."""
    checks: list[Check] = field(default_factory=list[Check])
    skipped: list[str] = field(default_factory=list[str])

    def note(self, asked: str, found: dict[str, Measured]) -> None:
        self.figures += [(asked, name, one) for name, one in found.items()]

    def cpu(self, what: str, ours: Measured, other: Measured, bound: float) -> None:
        """CPU of a call against another's."""
        told = f"{ours.cpu:.0f} µs / {other.cpu:.0f} µs"
        self.checks.append(Check(what=what, figures=told, ratio=ours.cpu / other.cpu, bound=bound))

    def speed(self, what: str, ours: Measured, other: Measured, bound: float) -> None:
        """Calls a second against another's."""
        told = f"{ours.per_second:.0f}/s / {other.per_second:.0f}/s"
        ratio = ours.per_second / other.per_second
        self.checks.append(Check(what=what, figures=told, ratio=ratio, bound=bound, at_least=True))

    def times(self, what: str, ours: float, other: float, bound: float) -> None:
        """Microseconds against microseconds."""
        told = f"{ours:.0f} µs / {other:.0f} µs"
        self.checks.append(Check(what=what, figures=told, ratio=ours / other, bound=bound))


MUST = ["what", "figures", "ratio", "bound", ""]
FIGURES = ["asked", "server", "CPU a call", "its database's", "calls/s", "p50", "p99"]


def figure_cells(asked: str, name: str, one: Measured) -> list[str]:
    return [
        asked,
        name,
        f"{one.cpu:.0f} µs",
        f"{one.beside:.0f} µs" if one.beside else "",
        f"{one.per_second:.0f}",
        f"{one.p50 / 1e3:.2f} ms",
        f"{one.p99 / 1e3:.2f} ms",
    ]


def plain(head: list[str], rows: list[list[str]]) -> str:
    """A table for a terminal."""
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """The same for a page."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
