"""Whether a reader took a file as it is written: a second, simpler reading of the same text, compared value by value.

The second reading shares no code with the product's: YAML without types, JSON that refuses a name given twice, commas
and line ends. What it cannot tell it leaves out, and says so where it is called.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import BaseModel

_NOTHING, _TRUE, _FALSE = {"", "~", "null"}, {"true", "yes", "on"}, {"false", "no", "off"}
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?", re.I)
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_MERGE, _GRID = "<<", 1e-8  # rewards are rounded to a grid
_UNCHECKED = re.compile(
    r"(?:\.at_test_budget)?\.(?:provenance|coverage|power|controls\[\d+\]\.(?:fault|measured|limit)|bounds\[\d+\]\.(?:attack|neighbor)"
    r"|subject\.source|about\.(?:table|noise source|seeds|probes))\b"
)
"""Places in evidence that its scores cannot confirm, which verification shows without a yes: how it came to be, what
searches without replays covered and caught, and by how much. Their kinds are checked."""


def spec_differs(text: str, spec: BaseModel) -> str | None:
    """The first value of a spec's text that the spec does not hold; None if there is none."""
    return next(_differences(_plain(yaml.compose(text, Loader=_LOADER)), spec, "spec"), None)


def _plain(node: Any) -> Any:
    """A node with words for all scalars; the later of two equal names is given a name of its own, which nobody knows."""
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    if not isinstance(node, yaml.MappingNode):
        return node.value
    found: dict[str, Any] = {}
    for key, value in node.value:
        if key.value == _MERGE:
            merged = _plain(value)
            for each in merged if isinstance(merged, list) else [merged]:
                found = {**each, **found}
        else:
            found[key.value if key.value not in found else f"{key.value} again"] = _plain(value)
    return found


def _differences(raw: Any, held: Any, place: str) -> Iterator[str]:
    """Where what was read differs from what is written, in words."""
    if isinstance(held, BaseModel | Mapping):
        if not isinstance(raw, Mapping):
            yield f"{place}: {raw!r} became {held!r}"
            return
        for name, value in raw.items():
            there, here = _field(held, name), f"{place}.{name}"
            yield from [f"{here}: is left out"] if there is None else _differences(value, there[0], here)
    elif isinstance(held, list | tuple):
        items = raw if isinstance(raw, list) else [raw]
        if len(items) != len(held):
            yield f"{place}: {len(items)} values became {len(held)}"
            return
        for i, (item, mine) in enumerate(zip(items, held, strict=True)):
            yield from _differences(item, mine, f"{place}[{i}]")
    elif not isinstance(raw, str) or not _is_same(raw, held):
        yield f"{place}: {raw!r} became {held!r}"


def _field(held: Any, name: str) -> tuple[Any] | None:
    """What a model or a mapping holds under a name."""
    if isinstance(held, Mapping):
        return (held[name],) if name in held else None
    names = {field.alias or own: own for own, field in type(held).model_fields.items()}
    if name in names:
        return (getattr(held, names[name]),)
    extra = held.__pydantic_extra__ or {}
    return (extra[name],) if name in extra else None


def _is_same(text: str, held: Any) -> bool:
    if held is None:
        return text.lower() in _NOTHING
    if isinstance(held, bool):
        return text.lower() in (_TRUE if held else _FALSE)
    if isinstance(held, int | float):
        return _number(text) == held
    if isinstance(held, Path):
        return str(held).endswith(str(Path(text)))
    return str(held) == text


def _number(text: str) -> float | int | None:
    """The number that a person reads: decimal, with _ between digits, or with the prefixes 0x and 0b."""
    plain = text.strip().replace("_", "")
    if re.fullmatch(r"[-+]?[0-9]+", plain):
        return int(plain)
    if _NUMBER.fullmatch(plain):
        return float(plain)
    try:
        return int(plain, 0)
    except ValueError:
        return None


def table_differs(content: bytes, values: Sequence[Sequence[float]]) -> str | None:
    """The first cell of a CSV file of numbers that is not the one that was read."""
    lines = re.split(r"\r\n|\r|\n", content.decode("utf-8-sig"))
    rows = [line.split(",") for line in lines if line][1:]
    if len(rows) != len(values):
        return f"{len(rows)} rows became {len(values)}"
    for n_row, (row, held) in enumerate(zip(rows, values, strict=True), start=1):
        if (wrong := _first(row, held)) is not None:
            return f"row {n_row}: {wrong}"
    return None


def _first(cells: Sequence[str], held: Sequence[float]) -> str | None:
    if len(cells) != len(held):
        return f"{len(cells)} cells became {len(held)}"
    for cell, number in zip(cells, held, strict=True):
        text = cell.strip()
        text = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
        if not _NUMBER.fullmatch(text.strip()) or not math.isclose(float(text), number, rel_tol=0.0, abs_tol=_GRID):
            return f"{cell!r} became {number!r}"
    return None


def columns_differ(content: bytes, columns: Mapping[str, Sequence[Any]]) -> str | None:
    """The first cell of named columns of a CSV file that is not the one that was read."""
    lines = [line for line in re.split(r"\r\n|\r|\n", content.decode("utf-8-sig")) if line.strip()]
    names = [name.strip('"') for name in lines[0].split(",")]
    for name, held in columns.items():
        if names.count(name) != 1:
            return f"{names.count(name)} columns are named {name!r}"
        if len(held) != len(lines) - 1:
            return f"{len(lines) - 1} rows became {len(held)}"
        for n_row, (line, mine) in enumerate(zip(lines[1:], held, strict=True), start=1):
            cells = line.split(",")
            if len(cells) != len(names):
                return f"row {n_row}: {len(cells)} cells under {len(names)} names"
            cell = cells[names.index(name)].strip().strip('"')
            if not (cell == mine if isinstance(mine, str) else _first([cell], [mine]) is None):
                return f"row {n_row}: column {name!r}: {cell!r} became {mine!r}"
    return None


def json_differs(content: bytes, held: Any) -> str | None:
    """The first value of a JSON text that is not the one that was read; a name that stands twice is one too."""
    try:
        stated = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_number)
    except ValueError as error:
        return str(error)
    return next(_unequal(stated, held, "file"), None)


def chosen_differ(content: bytes, held: Any) -> str | None:
    """The first value that `bandana tune` chose and that is not the one that is played."""
    stated = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_number)
    return next(_unequal(held["chosen"], stated["chosen"], "chosen"), None)


def evidence_differs(changed: bytes, original: bytes) -> str | None:
    """The first number of evidence that was changed, of evidence that was found to be verified."""
    pair = [_opened(content) for content in (changed, original)]
    for name in sorted({*pair[0][1], *pair[1][1]}):
        arrays = [found[1].get(name) for found in pair]
        if arrays[0] is None or arrays[1] is None or not np.array_equal(arrays[0], arrays[1], equal_nan=True):
            return f"scores {name} are others, and verified"
    return next((place for place in _changed(pair[0][0], pair[1][0], "") if not _UNCHECKED.match(place)), None)


def _opened(content: bytes) -> tuple[Any, dict[str, Any]]:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(bytes(arrays.pop("description")).decode()), arrays


def _changed(first: Any, second: Any, place: str) -> Iterator[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        for name in {**first, **second}:
            if name in first and name in second:
                yield from _changed(first[name], second[name], f"{place}.{name}")
            else:
                if first.get(name, second.get(name)) != 0:  # what is left out is 0
                    yield f"{place}.{name} is new or missing, and verified"
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for i, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _changed(one, other, f"{place}[{i}]")
    elif not _agree(first, second):
        yield f"{place}: {str(second)[:80]!r} became {str(first)[:80]!r}, and is verified"


def _agree(first: Any, second: Any) -> bool:
    """Whether two values are equal, numbers as far as verification tells them apart."""
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (first, second)]
    if not all(numbers):
        return json.dumps(first) == json.dumps(second)
    try:
        return math.isclose(first, second, rel_tol=1e-9)
    except OverflowError:  # a whole number that no float holds
        return bool(first == second)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a name stands twice among {[name for name, _ in pairs]}")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _unequal(stated: Any, held: Any, place: str) -> Iterator[str]:
    if isinstance(stated, dict) and isinstance(held, Mapping):
        for name, value in stated.items():
            yield from _unequal(value, held[name], f"{place}.{name}") if name in held else [f"{place}.{name}: is left out"]
    elif isinstance(stated, list) and isinstance(held, list | tuple):
        if len(stated) != len(held):
            yield f"{place}: {len(stated)} values became {len(held)}"
        for i, (value, mine) in enumerate(zip(stated, held, strict=False)):
            yield from _unequal(value, mine, f"{place}[{i}]")
    elif isinstance(stated, bool) != isinstance(held, bool) or not _are_equal(stated, held):
        yield f"{place}: {stated!r} became {held!r}"


def _are_equal(stated: Any, held: Any) -> bool:
    if isinstance(stated, int | float) and isinstance(held, int | float):
        return math.isclose(stated, held, rel_tol=1e-15, abs_tol=0.0)
    return type(stated) is type(held) and bool(stated == held)
