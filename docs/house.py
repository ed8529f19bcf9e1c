"""Draws docs/house.svg: the packages of toolgate, and which import which, from the import graph.

A box stands above everything it imports. A line that follows from others is left out.

python -m docs.house           draw it
python -m docs.house --check   exit 1 if the code says something else
"""

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import grimp

PICTURE = Path(__file__).parent / "house.svg"
ROOT = "toolgate"
ROOMS = ("packs",)
"""Packages whose parts have boxes of their own."""
BOX, HIGH, GAP, ROW, MARGIN = 118, 34, 14, 86, 20
Edges = Mapping[str, frozenset[str]]


def imports() -> Edges:
    """Every box with the boxes that it imports."""
    graph = grimp.build_graph(ROOT, cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules - {ROOT, f"{ROOT}.__main__"}:
        imported = {_box(one) for one in graph.find_modules_directly_imported_by(module)}
        # The command line loads the commands of packs by name; they are its own side.
        if not module.endswith(".commands"):
            found.setdefault(_box(module), set()).update(imported - {_box(module)})
    return {box: frozenset(others & found.keys()) for box, others in found.items()}


def _box(module: str) -> str:
    parts = module.split(".")[1:]
    return ".".join(parts[: 2 if parts[:1] and parts[0] in ROOMS else 1])


def reduced(edges: Edges) -> Edges:
    """The edges without those that follow from others."""

    @cache
    def reached(box: str) -> frozenset[str]:
        return edges[box].union(*(reached(one) for one in edges[box]))

    return {
        box: frozenset(
            one
            for one in others
            if not any(one in reached(other) for other in others if other != one)
        )
        for box, others in edges.items()
    }


def rows(edges: Edges) -> list[list[str]]:
    """The boxes by height: each stands above all that it imports."""

    @cache
    def height(box: str) -> int:
        return 1 + max((height(one) for one in edges[box]), default=-1)

    tallest = max(map(height, edges))
    return [
        sorted(box for box in edges if height(box) == level) for level in range(tallest, -1, -1)
    ]


def drawn() -> str:
    """The picture."""
    edges = imports()
    levels = rows(edges)
    wide = max(len(level) for level in levels) * (BOX + GAP) - GAP + 2 * MARGIN
    high = len(levels) * ROW - (ROW - HIGH) + 2 * MARGIN
    place = {
        box: (
            (wide - len(level) * (BOX + GAP) + GAP) // 2 + number * (BOX + GAP),
            MARGIN + row * ROW,
        )
        for row, level in enumerate(levels)
        for number, box in enumerate(level)
    }
    lines = [_line(place[box], place[one]) for box, one in _pairs(reduced(edges))]
    boxes = [_drawn_box(box, *place[box]) for box in sorted(place)]
    return "\n".join([_head(wide, high), *lines, *boxes, "</svg>", ""])


def _pairs(edges: Edges) -> Iterable[tuple[str, str]]:
    return ((box, one) for box in sorted(edges) for one in sorted(edges[box]))


def _head(wide: int, high: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        f'font-family="ui-monospace, monospace" font-size="12">\n'
        f'<rect width="{wide}" height="{high}" rx="8" fill="#161b22"/>'
    )


def _line(above: tuple[int, int], below: tuple[int, int]) -> str:
    (x, y), (to_x, to_y) = above, below
    x, y, to_x = x + BOX // 2, y + HIGH, to_x + BOX // 2
    bend = (to_y - y) // 2
    return (
        f'<path d="M{x} {y} C{x} {y + bend} {to_x} {to_y - bend} {to_x} {to_y}" '
        'fill="none" stroke="#57606a"/>'
    )


def _drawn_box(name: str, x: int, y: int) -> str:
    is_pack = name.startswith("packs.")
    fill, edge = ("#12261e", "#3fb950") if is_pack else ("#0d1117", "#79c0ff")
    where = f'x="{x}" y="{y}" width="{BOX}" height="{HIGH}"'
    return (
        f'<rect {where} rx="6" fill="{fill}" stroke="{edge}"/>'
        f'<text x="{x + BOX // 2}" y="{y + HIGH // 2 + 4}" fill="#e6edf3" '
        f'text-anchor="middle">{name}</text>'
    )


def is_stale() -> bool:
    """Whether the code has changed since."""
    return not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn()


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(f"{PICTURE.name} is stale: run `python -m docs.house`." if is_stale() else 0)
    PICTURE.write_text(drawn(), encoding="utf-8")
