"""Outputs of a release as a table of numbers: one row for each run, whatever a run returns.

Each output is taken apart into leaves (`bandana.audits.leaves`), and each leaf into a column for its type, shape or text and
columns for its numbers. Which columns there are is decided on some outputs and applied to others, so a score that is learned
on the first can be bounded on the others. What got no column is counted: `Encoder.unread` names it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Number

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.leaves import as_float, leaves, remainder
from bandana.flows.annexes.anything.outputs.calls import Outputs, is_numeric
from bandana.flows.annexes.anything.outputs.scores import telling

_MOST_COLUMNS, _MOST_KEPT = 50_000, 512
_SCREENED, _LEAST_SCREENED = 20_000_000, 512
"""Numbers of the table that screens columns, and rows of each side that it has at least."""
_MOST_LABELS = 64
_MISSING, _OTHER = -1.0, -2.0


def joined(parts: Sequence[Outputs]) -> Outputs:
    """Outputs of several calls, one after the other: one array where all are numbers of one type and shape, else a list."""
    if parts and all(isinstance(part, np.ndarray) and is_numeric(part) for part in parts):
        arrays = [np.asarray(part) for part in parts]
        if len({(part.dtype.str, part.shape[1:]) for part in arrays}) == 1:
            return np.concatenate(arrays)
    items = [item for part in parts for item in part]
    if len({_form(item) for item in items}) == 1 and isinstance(items[0], np.ndarray | Number):
        result = np.array(items)
        if is_numeric(result) and (result.dtype.kind in "bf" or not isinstance(items[0], int) or result.dtype == np.int64):
            return result
    return items


def _form(item: object) -> object:
    return (type(item), item.dtype.str, item.shape) if isinstance(item, np.ndarray | np.generic) else type(item)


@dataclass(frozen=True)
class Encoder:
    """Takes outputs apart into columns; see `learn`.

    Attributes:
      columns: path -> labels that have a number of their own, in order, and how many numbers there are; None for arrays.
      kept: (columns,) those of all columns that a table has.
      n_values: labels and numbers of an output, at most.
      unread: what of the outputs has no column, in words; empty if all has one.
      missed: path -> how many outputs that became a table had a number or a label there, and have no column for it.
    """

    columns: dict[str, tuple[tuple[str, ...], int]] | None
    kept: IntArray | None = None
    n_values: int = 0
    unread: tuple[str, ...] = ()
    missed: Counter[str] = field(default_factory=Counter, compare=False)

    @classmethod
    def learn(cls, data: Outputs, neighbor: Outputs) -> Encoder:
        """Decides on columns from some outputs of each side; arrays of numbers need no decision.

        If an output has many values, all are screened, and those stay that tell most.
        """
        if is_numeric(data) and is_numeric(neighbor):
            return cls(None, n_values=int(np.prod(np.shape(data)[1:])))
        labels: dict[str, Counter[str]] = {}
        widths: Counter[str] = Counter()
        unread: dict[str, None] = {}
        n_values, most = 0, 0
        for output in (item for side in (data, neighbor) for item in side):
            n = 0
            for path, label, numbers, is_read in leaves(output):
                width = 0 if numbers is None else len(numbers)
                n += width + 1
                if not is_read:
                    unread[f"{path or 'the output'}: {label}"] = None
                if width > widths[path] or path not in labels:
                    n_values += max(0, width - widths[path]) + (path not in labels)
                    if n_values > _MOST_COLUMNS:
                        unread[f"read {_MOST_COLUMNS} of {n_values} values"] = None
                        n_values -= max(0, width - widths[path]) + (path not in labels)
                        continue
                    widths[path] = max(width, widths[path])
                labels.setdefault(path, Counter())[label] += 1
            most = max(most, n)
        columns = {
            path: (tuple(sorted(dict(result.most_common(_MOST_LABELS)))), widths[path]) for path, result in labels.items()
        }
        learned = cls(columns, None, most, tuple(unread))
        if n_values <= _MOST_KEPT:
            return learned
        n = max(_LEAST_SCREENED, _SCREENED // n_values)
        tables = [learned.table(side[:n]) for side in (data, neighbor)]
        return cls(columns, telling(*tables)[:_MOST_KEPT], most, tuple(unread))

    def table(self, outputs: Outputs) -> FloatArray:
        """(n, columns) of float64: numbers as they are, labels as whole numbers in columns before them.

        NaN stands for a number that is missing; infinite numbers stay.
        """
        if self.columns is None:
            return _numeric_table(np.asarray(outputs))
        kept = self.kept if self.kept is not None else np.arange(sum(1 + width for _, width in self.columns.values()))
        result = np.empty((len(outputs), len(kept)))
        places, n_columns = {}, 0
        for path, (labels, width) in self.columns.items():
            places[path] = n_columns, {label: float(code) for code, label in enumerate(labels)}, width
            n_columns += 1 + width
        empty = np.full(n_columns, np.nan)
        empty[[place for place, _, _ in places.values()]] = _MISSING
        for row, output in enumerate(outputs):
            values = empty.copy()
            for path, label, numbers, _ in leaves(output):
                if path not in places:
                    self.missed[path] += 1
                    continue
                place, codes, width = places[path]
                if numbers is not None and len(numbers) > width:
                    self.missed[path] += 1
                values[place] = codes.get(label, _OTHER)
                if numbers is not None:
                    values[place + 1 : place + 1 + min(width, len(numbers))] = numbers[:width]
            result[row] = values[kept]
        return result


def _numeric_table(outputs: np.ndarray) -> FloatArray:
    """(n, columns) of an array of numbers; what float64 leaves out of them stands in columns of its own."""
    rows = outputs.reshape(len(outputs), -1)
    return np.column_stack([as_float(rows), *remainder(rows)])
