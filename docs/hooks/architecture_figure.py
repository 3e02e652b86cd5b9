"""The drawing of `docs/architecture.md`: the four floors, the folders of each, and who imports whom, read from the code."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

FLOORS = ("flows", "audits", "algorithms", "privacy_core")
_FILLS = ("#dbe9f6", "#fbe3d4", "#d8efe4", "#eee0ee")
_INK, _LINE = "#24292f", "#57606a"
_WIDTH, _BOX, _HEIGHT, _ROW = 960, 98, 30, 42
_LEFT, _TOP, _GAP = 40, 46, 26


@dataclass(frozen=True)
class Floor:
    """One package below `bandana`.

    Attributes:
      name: of the package.
      about: first sentence of its docstring.
      rooms: its folders, and those of its files that import one of them (ending in .py), from left to right.
      columns: room -> column; what a room imports is to its right, and as near as can be.
      arrows: (room, imported room), without those that follow from others.
      files: its other files.
    """

    name: str
    about: str
    rooms: tuple[str, ...]
    columns: dict[str, int]
    arrows: tuple[tuple[str, str], ...]
    files: tuple[str, ...]


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def folders(place: Path) -> list[str]:
    """Names of the packages directly below a package."""
    return sorted(path.parent.name for path in place.glob("*/__init__.py"))


def _part_of(name: str, floor: str, inside: list[str]) -> str | None:
    """The folder or file of a floor that a dotted name lies in; None where it lies elsewhere."""
    parts = name.split(".")
    if parts[:2] != ["bandana", floor] or len(parts) < 3:
        return None
    return parts[2] if parts[2] in inside else f"{parts[2]}.py"


def _reaches(start: str, end: str, arrows: set[tuple[str, str]]) -> bool:
    """Whether there is a path of arrows from `start` to `end` that is longer than one arrow."""
    seen: set[str] = set()
    ahead = [to for of, to in arrows if of == start and to != end]
    while ahead:
        room = ahead.pop()
        if room == end:
            return True
        if room not in seen:
            seen.add(room)
            ahead += [to for of, to in arrows if of == room]
    return False


def floor_of(root: Path, name: str) -> Floor:
    """Reads one floor from its sources.

    Raises:
      ValueError: rooms import each other in a circle.
    """
    place = root / name
    inside = folders(place)
    arrows: set[tuple[str, str]] = set()
    for path in sorted(place.rglob("*.py")):
        parts = path.relative_to(place).parts
        own = parts[0] if len(parts) > 1 else path.name
        found = (_part_of(dotted, name, inside) for dotted in _imported(ast.parse(path.read_text("utf-8"))))
        arrows |= {(own, part) for part in found if part is not None and part != own}
    files = {path.name for path in place.glob("*.py")} - {"__init__.py"}
    rooms = [*inside, *sorted(file for file in files if any(of == file and to in inside for of, to in arrows))]
    arrows = {(of, to) for of, to in arrows if of in rooms and to in rooms}
    heights: dict[str, int] = {}
    while open_ := [room for room in rooms if room not in heights]:
        ready = [room for room in open_ if all(to in heights for of, to in arrows if of == room)]
        if not ready:
            raise ValueError(f"these rooms of {name} import each other in a circle: {', '.join(open_)}")
        heights |= {room: max((heights[to] + 1 for of, to in arrows if of == room), default=0) for room in ready}
    joined = {room for arrow in arrows for room in arrow}
    columns = {room: max(heights.values()) - heights[room] if room in joined else 0 for room in rooms}
    return Floor(
        name,
        (ast.get_docstring(ast.parse((place / "__init__.py").read_text("utf-8"))) or "").partition("\n")[0],
        tuple(sorted(rooms, key=lambda room: (columns[room], room))),
        columns,
        tuple(sorted(arrow for arrow in arrows if not _reaches(*arrow, arrows))),
        tuple(sorted(file.removesuffix(".py") for file in files - set(rooms))),
    )


def _text(x: float, y: float, words: str, size: float = 12, anchor: str = "middle", **style: str) -> str:
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def _lines(names: tuple[str, ...], width: int) -> list[str]:
    """Names joined by commas, in lines of at most `width` characters."""
    lines = [""]
    for name in names:
        if lines[-1] and len(lines[-1]) + len(name) > width:
            lines.append("")
        lines[-1] += f"{name}, " if name != names[-1] else name
    return [line for line in lines if line]


def _paths(floor: Floor) -> list[list[str]]:
    """Each arrow as the places that it passes, one a column; between its rooms they are places of its own."""
    paths = []
    for of, to in floor.arrows:
        between = range(floor.columns[of] + 1, floor.columns[to])
        paths.append([of, *(f"{of} > {to} @ {column}" for column in between), to])
    return paths


def _ordered(floor: Floor, paths: list[list[str]]) -> list[list[str]]:
    """The places of each column from top to bottom, near the places that they are joined to."""
    places: dict[str, int] = dict(floor.columns)
    for path in paths:
        places |= {place: floor.columns[path[0]] + n for n, place in enumerate(path[:-1])}
    columns = [[place for place in places if places[place] == c] for c in range(max(places.values(), default=-1) + 1)]
    joined: dict[str, list[str]] = {}
    for path in paths:
        for one, other in pairwise(path):
            joined.setdefault(one, []).append(other)
            joined.setdefault(other, []).append(one)
    for sweep in range(8):
        for column in columns if sweep % 2 else reversed(columns):
            rows = {place: n - len(others) / 2 for others in columns for n, place in enumerate(others)}
            near = {place: [rows[other] for other in joined.get(place, [])] or [math.inf] for place in column}
            column.sort(key=lambda place: sum(near[place]) / len(near[place]))
    return columns


def _drawn(floor: Floor, fill: str, top: float) -> tuple[list[str], float]:
    """The shapes of a floor whose band begins at `top`, and where the band ends."""
    paths = _paths(floor)
    columns = _ordered(floor, paths)
    most = max((len(column) for column in columns), default=0)
    listed = _lines(floor.files, 140)
    below = top + _TOP + most * _ROW
    end = below + 17 * len(listed) + 8
    step = min(190.0, (_WIDTH - 2 * _LEFT - _BOX) / max(1, len(columns) - 1))
    corner = {
        place: (_LEFT + n * step, top + _TOP + (most - len(column)) * _ROW / 2 + row * _ROW)
        for n, column in enumerate(columns)
        for row, place in enumerate(column)
    }
    shapes = [
        f'<rect x="10" y="{top:.0f}" width="{_WIDTH - 20}" height="{end - top:.0f}" rx="8" fill="{fill}"/>',
        _text(24, top + 22, floor.name, 15, "start", font_weight="bold"),
        _text(138, top + 22, floor.about, 12, "start", fill=_LINE),
    ]
    for path in paths:
        line = f"M{corner[path[0]][0] + _BOX:.0f} {corner[path[0]][1] + _HEIGHT / 2:.0f}"
        for one, other in pairwise(path):
            (x0, y0), (x1, y1) = corner[one], corner[other]
            x0, y0, y1, bend = x0 + _BOX, y0 + _HEIGHT / 2, y1 + _HEIGHT / 2, (x1 - x0 - _BOX) / 2
            line += f" C{x0 + bend:.0f} {y0:.0f} {x1 - bend:.0f} {y1:.0f} {x1 - 2:.0f} {y1:.0f}"
            line += f" H{x1 + _BOX:.0f}" if other != path[-1] else ""
        shapes.append(f'<path d="{line}" fill="none" stroke="{_LINE}" stroke-width="1.2" marker-end="url(#tip)"/>')
    for room in floor.rooms:
        x, y = corner[room]
        dash = ' stroke-dasharray="4 3"' if room.endswith(".py") else ""
        shapes.append(
            f'<rect data-room="{floor.name}/{room}" x="{x:.0f}" y="{y:.0f}" width="{_BOX}" height="{_HEIGHT}" '
            f'rx="5" fill="#ffffff" stroke="{_LINE}"{dash}/>'
        )
        shapes.append(_text(x + _BOX / 2, y + _HEIGHT / 2 + 4, room))
    shapes += [
        _text(24, below + 10 + 17 * n, line, 11, "start", fill=_LINE, font_style="italic") for n, line in enumerate(listed)
    ]
    return shapes, end


def svg(root: Path) -> str:
    """The drawing of the code below a folder, with the same text for the same code."""
    shapes: list[str] = []
    top = 10.0
    for name, fill in zip(FLOORS, _FILLS, strict=True):
        drawn, end = _drawn(floor_of(root, name), fill, top)
        shapes += drawn
        if name != FLOORS[-1]:
            shapes.append(
                f'<path d="M{_WIDTH / 2:.0f} {end:.0f} V{end + _GAP - 4:.0f}" stroke="{_LINE}" stroke-width="2" '
                'marker-end="url(#tip)"/>'
            )
        top = end + _GAP
    height = top - _GAP + 10
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" width="{_WIDTH}" '
        f'height="{height:.0f}" font-family="DejaVu Sans, Verdana, sans-serif" fill="{_INK}" role="img">'
        "<title>The floors and rooms of the code, and their imports</title>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" '
        f'markerUnits="userSpaceOnUse"><path d="M0 0 L8 4 L0 8 Z" fill="{_LINE}"/></marker></defs>'
        f'<rect width="{_WIDTH}" height="{height:.0f}" fill="#ffffff"/>'
    )
    return "\n".join([head, *shapes, "</svg>\n"])
