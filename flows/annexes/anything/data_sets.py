"""Data sets as a user names them on the command line or in a claim: a file, or a Python literal."""

from __future__ import annotations

import ast
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from bandana.flows.texts.mistakes import SpecError

_ENDINGS = (".npy", ".csv", ".json")


def read_data(option: str, text: str) -> Any:
    """A data set from a file, or from a Python literal.

    Args:
      option: its name, for messages.
      text: a path that ends in .npy, .csv or .json, or a literal such as `[0, 1, 1]`.

    Returns:
      an array of .npy; an array of a .csv of numbers, with or without a line of names, else its lines as dictionaries
      (lists, without names); what a .json or a literal says.

    Raises:
      SpecError: neither of these; the message says what to change.
    """
    path = Path(text)
    if path.suffix.lower() not in _ENDINGS:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise SpecError(
                f"{option}: must be a file (.npy, .csv, .json) or a Python literal such as [0, 1, 1], got {text!r}"
            ) from error
    try:
        match path.suffix.lower():
            case ".npy":
                return np.load(path, allow_pickle=False)
            case ".json":
                return json.loads(path.read_text(encoding="utf-8"))
        return _csv(path)
    except (OSError, ValueError) as error:  # what is no JSON, no UTF-8 or no NumPy file
        raise SpecError(f"{option}: {path} cannot be read: {error}") from error


def _csv(path: Path) -> np.ndarray | list[str | list[str]] | list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows:
        raise ValueError("it is empty")
    if wrong := [place for place, row in enumerate(rows, start=1) if len(row) != len(rows[0])]:
        raise ValueError(f"line {wrong[0]} has {len(rows[wrong[0] - 1])} fields, the first has {len(rows[0])}")
    names, rest = (None, rows) if _as_numbers(rows[:1]) is not None else (rows[0], rows[1:])
    numbers = _as_numbers(rest)
    if numbers is not None and len(rest):
        return numbers[:, 0] if numbers.shape[1] == 1 else numbers
    if names is None or len(rows) == 1 or len(names) == 1:
        return [row[0] if len(row) == 1 else row for row in rows]
    return [dict(zip(names, row, strict=True)) for row in rest]


def _as_numbers(rows: list[list[str]]) -> np.ndarray | None:
    if any("_" in field or not field.isascii() for row in rows for field in row):  # Python reads 1_0 as 10
        return None
    try:
        return np.array([[float(field) for field in row] for row in rows], dtype=float)
    except ValueError:
        return None
