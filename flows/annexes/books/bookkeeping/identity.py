"""The rows of a data set whatever file holds them: a re-export of a file that has a budget book is found by its rows.

Cells are parsed: `1`, `1.0` and `1e0` are one value, and line ends, quotes, blanks and a byte order mark are none. Each cell
becomes a keyed hash, and a row the sum of those of its cells, so that neither names nor the order of columns matter. Columns
of a single value are left out of it. Two data sets are taken for one if one of these holds:

- They begin with the same rows, at least a tenth of the known ones; the other may have more columns.
- Both have the same rows, in whatever order, also if one of them has one more column.
- Both have each kind of row so nearly equally often that two samples of one law hardly would.
- They share more than `SHARED` of the rows of the smaller one, in whatever order, also if one of them has one more column.
- They share as many stretches of a column, forwards or backwards: rows of few values, such as two rewards of 0 or 1, are
  alike by accident, and long sequences of them are not. Stretches are so long that the known column hardly repeats itself.

The last two are counted beyond what accident explains. By the estimate of Good and Turing a stranger's row is one of the
known ones with the probability that a known row is not the only one of its kind.
"""

from __future__ import annotations

import hmac
import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b, sha256
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr

from bandana.flows.folder.store import write_whole
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import BookError

SHARED = 0.1
"""Share of the rows of the smaller of two data sets from which on both are taken for one, beyond what accident explains."""
FOLDER = "books/rows"
"""Place in a data folder, one file for each data set."""
_DEVIATIONS = 3.0
"""Distance above its mean that an accident may lie, in standard deviations."""
_CHANCE = 1e-6
"""Probability with which two samples of one law may agree so well that they are taken for one."""
_REPEATS = 0.01
"""Share of a column's stretches that may be there twice; else longer ones are compared."""
_STRETCHES = tuple(2**i for i in range(3, 13))
_MOST_HASHES = 2**20
"""Hashes of one note; of a larger data set each sketch keeps the smallest, which are a random sample."""
_FACTOR = 0x9E3779B97F4A7C15
_PLAIN = ("check", "n_rows", "ordered", "begins", "likeness", "wholes")
"""Fields of a note that are no sketches."""
_NAMED = (".parquet", ".pq")
Hashes = NDArray[np.uint64]


def mac_of(key: bytes, content: bytes) -> bytes:
    """8 bytes that nobody without the key can compute."""
    return blake2b(content, key=key, digest_size=8).digest()


@dataclass(frozen=True)
class Table:
    """Parsed rows.

    Attributes:
      names: of the columns.
      codes: (n_rows,) of each column, which of its values each row has.
      values: of each column, its distinct values: finite numbers or texts.
    """

    names: tuple[str, ...]
    codes: tuple[NDArray[np.int64], ...]
    values: tuple[tuple[float | str, ...], ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes[0]) if self.codes else 0

    def hashed(self, key: bytes) -> Hashes:
        """(n_columns, n_rows) keyed hash of each cell."""
        hashes = np.empty((len(self.names), self.n_rows), np.uint64)
        for place, (codes, values) in enumerate(zip(self.codes, self.values, strict=True)):
            macs = b"".join(mac_of(key, repr(value).encode("utf-8", "surrogatepass")) for value in values)
            hashes[place] = np.frombuffer(macs, np.uint64)[codes]
        return hashes


def read(content: bytes, name: str) -> Table:
    """The rows that a file's bytes hold.

    Args:
      content: of a CSV file with a header, or of a Parquet file. Lines of any other file are rows of one text.
      name: of the file, whose ending tells which it is.
    """
    import pandas as pd

    try:
        if Path(name).suffix in _NAMED:
            frame = pd.read_parquet(io.BytesIO(content))
        else:
            frame = pd.read_csv(
                io.BytesIO(content),
                header=None,
                dtype=str,
                keep_default_na=False,
                encoding="utf-8-sig",
                skipinitialspace=True,
            )
            frame = frame.set_axis(frame.iloc[0], axis=1).iloc[1:]
    except Exception:  # pandas and its engines raise errors of many kinds
        frame = pd.DataFrame({"": content.decode("utf-8", "replace").splitlines()})
    codes, values = [], []
    for place in range(frame.shape[1]):
        column, texts = pd.factorize(frame.iloc[:, place], use_na_sentinel=False)
        merged: dict[float | str, int] = {}
        ranks = np.array([merged.setdefault(_value(text), len(merged)) for text in texts], np.int64)
        codes.append(ranks[column])
        values.append(tuple(merged))
    return Table(tuple(str(name).strip() for name in frame.columns), tuple(codes), tuple(values))


def _value(cell: object) -> float | str:
    """A cell as a number, where it is one, or else its text without blanks around it."""
    text = str(cell).strip()
    try:
        number = float(text)
    except ValueError:
        return text
    return number + 0.0 if math.isfinite(number) else text  # -0.0 is 0.0


def ordered(table: Table, key: bytes, n_rows: int) -> str:
    """Code by which a book knows the first rows: their values in their order, columns by name.

    Args:
      table: the rows.
      key: the book's salt.
      n_rows: how many of them.
    """
    cells = table.hashed(key)
    places = sorted(range(len(table.names)), key=lambda place: table.names[place])
    names = repr([table.names[place] for place in places]).encode("utf-8", "surrogatepass")
    return hmac.new(key, names + cells[places, :n_rows].tobytes(), sha256).hexdigest()


class Sketch(NamedTuple):
    """Some hashes of a data set, and how often each occurs."""

    hashes: Hashes
    """Sorted and distinct: all, or the smallest of them."""
    counts: NDArray[np.int64]
    n: int
    """Number of all."""
    singles: int
    """Number of those kept that occur once."""
    stretch: int = 1
    """Rows of one hash."""

    @classmethod
    def of(cls, values: Hashes, most: int, stretch: int = 1) -> Sketch:
        """A sketch with at most so many distinct hashes."""
        hashes, counts = np.unique(values, return_counts=True)
        hashes, counts = hashes[:most], counts[:most]
        return cls(hashes, counts, len(values), int((counts == 1).sum()), stretch)

    @property
    def repeats(self) -> float:
        """Share of hashes that are there more than once: what a stranger of the same habits has in common."""
        return 1 - self.singles / max(1, int(self.counts.sum()))

    def is_shared(self, values: Hashes) -> bool:
        """True if other hashes have more in common with these than accident explains."""
        if not self.n or not len(values):
            return False
        seen, counts = np.unique(values[values <= self.hashes[-1]], return_counts=True)
        _, here, there = np.intersect1d(self.hashes, seen, assume_unique=True, return_indices=True)
        if self._agrees_too_well(int(counts.sum()), self.counts[here], counts[there], len(self.counts) + len(counts)):
            return True
        common = int(np.minimum(self.counts[here], counts[there]).sum())
        smaller = int(self.counts.sum() if self.n < len(values) else counts.sum())
        accident = min(1.0, self.repeats * max(1.0, len(values) / self.n))
        spread = math.sqrt(accident * (1 - accident) * (1 / self.n + 1 / len(values)))
        return common > smaller * (SHARED + accident + _DEVIATIONS * spread)

    def _agrees_too_well(self, n: int, mine: NDArray[np.int64], others: NDArray[np.int64], n_kinds: int) -> bool:
        """True if both have each kind of row so nearly equally often that two samples of one law hardly would.

        By the lower tail of the two-sample chi-square statistic; a difference of one row of each kind is always granted.

        Args:
          n: how many others there are.
          mine: of each kind that both have, how many are here.
          others: how many are there.
          n_kinds: kinds here and there, those of both counted twice.
        """
        m = int(self.counts.sum())
        n_alone = n_kinds - 2 * len(mine)
        ratio = math.sqrt(n / m)
        apart = float((((mine * ratio - others / ratio) ** 2 + 1) / (mine + others)).sum()) + n_alone
        return bool(chdtr(len(mine) + n_alone - 1, apart) < _CHANCE)


class Note(NamedTuple):
    """Facts by which a data folder knows a data set."""

    check: str
    """A MAC that tells whether the key is the same."""
    n_rows: int
    ordered: str
    """A MAC of its rows in their order, in which columns have no names."""
    begins: tuple[str, ...]
    """MACs of the columns, of the first tenth of the rows, of two, and so on."""
    likeness: float
    """The chance that two rows are alike, if columns do not depend on each other."""
    wholes: tuple[str, ...]
    """MACs of all rows in any order, and of all rows without each column."""
    rows: tuple[Sketch, ...]
    """Sketches of all rows, and of all rows without each column."""
    columns: tuple[Sketch, ...]
    """Stretches of each column in which it hardly repeats itself."""


class Rows:
    """A data set's rows under a data folder's key."""

    def __init__(self, table: Table, key: bytes) -> None:
        every = list(range(len(table.names)))
        varied = [place for place in every if len(table.values[place]) > 1] or every
        self._key, self.n_rows = key, table.n_rows
        self._all = table.hashed(key)
        self._cells = self._all[varied]
        self._is_sorted = [_is_sorted(table.codes[place], table.values[place]) for place in varied]
        self._alike = [_chance_of_likeness(column) for column in self._cells]

    @cached_property
    def _sums(self) -> Hashes:
        return np.asarray(self._cells.sum(axis=0, dtype=np.uint64))

    def _row_sets(self) -> Iterator[tuple[Hashes, list[int]]]:
        """Hashes of all rows, and of all rows without each column; and the columns that are in them."""
        places = list(range(len(self._cells)))
        yield self._sums, places
        for left_out in places if len(places) > 2 else ():
            yield self._sums - self._cells[left_out], [place for place in places if place != left_out]

    @cached_property
    def wholes(self) -> tuple[str, ...]:
        """MACs of all rows in any order, with their columns, and of all rows without each column."""
        columns = [mac_of(self._key, np.sort(column).tobytes()) for column in self._cells]
        return tuple(
            mac_of(self._key, np.sort(rows).tobytes() + b"".join(sorted(columns[place] for place in places))).hex()
            for rows, places in self._row_sets()
        )

    @property
    def _check(self) -> str:
        return mac_of(self._key, b"key").hex()

    def begins_with(self, known: Note) -> bool:
        """True if its first rows are those of a known data set, so that records have the same numbers."""
        return known.n_rows <= self.n_rows and self.ordered(known.n_rows) == known.ordered

    def ordered(self, n_rows: int) -> str:
        """A MAC of the first rows in their order."""
        return mac_of(self._key, self._sums[:n_rows].tobytes()).hex()

    @cached_property
    def note(self) -> Note:
        """Note that is kept of it."""
        alike = math.prod(1.0 if skip else one for one, skip in zip(self._alike, self._is_sorted, strict=True))
        most = _MOST_HASHES // (2 * len(self._cells) + 1)
        rows = tuple(Sketch.of(rows, most) for rows, _ in self._row_sets())
        columns = (self._sketch_of(place, most) for place in range(len(self._cells)))
        begins = tuple(" ".join(sorted(self._begins(n_rows))) for n_rows in _tenths(self.n_rows))
        n_rows = self.n_rows
        return Note(
            self._check, n_rows, self.ordered(n_rows), begins, alike, self.wholes, rows, tuple(filter(None, columns))
        )

    def _begins(self, n_rows: int) -> set[str]:
        """A MAC of the first rows of each column."""
        return {mac_of(self._key, column[:n_rows].tobytes()).hex() for column in self._all}

    def _sketch_of(self, place: int, most: int) -> Sketch | None:
        """Stretches of a column; None if it repeats itself, or is sorted, as numbers of rows are."""
        if self._is_sorted[place]:
            return None
        for length in _STRETCHES:
            if length > 0.8 * self.n_rows:
                break
            if self.n_rows * self._alike[place] ** length > _REPEATS / 10:  # a stranger may have many more rows
                continue
            sketch = Sketch.of(stretches(self._cells[place], length), most, length)
            if sketch.repeats <= _REPEATS:
                return sketch
        return None

    def is_same(self, known: Note) -> bool:
        """True if they are taken for the rows of a data set that is known; see the module.

        Raises:
          ValueError: the note was written under another key.
        """
        if known.check != self._check:
            raise ValueError("it was written under another secret than that of this data folder")
        for n_rows, begins in zip(_tenths(known.n_rows), known.begins, strict=True):
            is_telling = n_rows <= self.n_rows and known.likeness**n_rows < _CHANCE
            if is_telling and set(begins.split()) <= self._begins(n_rows):
                return True
        if known.n_rows == self.n_rows and {self.wholes[0], known.wholes[0]} & set(self.wholes) & set(known.wholes):
            return True
        if known.rows[0].is_shared(self._sums):
            return True
        if any(known.rows[0].is_shared(rows) for rows, _ in self._row_sets()):
            return True
        if any(sketch.is_shared(self._sums) for sketch in known.rows[1:]):
            return True
        of_length = {
            length: [stretches(column, length) for column in self._cells]
            for length in {sketch.stretch for sketch in known.columns}
        }
        return any(sketch.is_shared(column) for sketch in known.columns for column in of_length[sketch.stretch])


def _tenths(n_rows: int) -> list[int]:
    return [n_rows * part // 10 for part in range(1, 11)]


def _chance_of_likeness(cells: Hashes) -> float:
    """The chance that two cells of a column are alike."""
    _, counts = np.unique(cells, return_counts=True)
    return float(((counts / max(1, len(cells))) ** 2).sum())


def _is_sorted(codes: NDArray[np.int64], values: tuple[float | str, ...]) -> bool:
    """True if a column of at least two values is in ascending or descending order."""
    if (np.diff(codes) < 0).any():  # codes count values as they come
        return False
    kinds: tuple[Callable[[float | str], bool], ...] = (lambda v: isinstance(v, float), lambda v: isinstance(v, str))
    if not any(all(map(kind, values)) for kind in kinds):
        return False
    return any(all(sign(a, b) for a, b in pairwise(values)) for sign in (_is_before, lambda a, b: _is_before(b, a)))


def _is_before(one: float | str, other: float | str) -> bool:
    return one < other  # type: ignore[operator]


def stretches(values: Hashes, length: int) -> Hashes:
    """(n - length + 1,) hash of each stretch of a sequence, the same for a stretch and its mirror image.

    Args:
      values: (n,) hashes.
      length: a power of two.
    """
    forwards = backwards = values
    reach, power = 1, _FACTOR
    while reach < length:
        factor = np.uint64(power)
        forwards, backwards = (
            forwards[:-reach] + factor * forwards[reach:], factor * backwards[:-reach] + backwards[reach:],
        )  # fmt: skip
        reach, power = 2 * reach, power * power % 2**64
    return np.minimum(forwards, backwards)


@lru_cache(maxsize=2)
def table_of(content: bytes, name: str) -> Table:
    """`read`, of the files that are in use."""
    return read(content, name)


@lru_cache(maxsize=2)
def rows_of(content: bytes, name: str, key: bytes) -> Rows:
    """The rows of the files that are in use."""
    return Rows(table_of(content, name), key)


def note(folder: Path, digest: str, rows: Callable[[], Rows]) -> None:
    """Keeps what a data set is known by, whole, readable by its owner alone; what is there stays."""
    if (folder / f"{digest}.npz").exists():
        return
    kept = rows().note
    plain = {field: np.asarray(getattr(kept, field)) for field in _PLAIN}
    sketches = {"rows": kept.rows, "columns": kept.columns}
    arrays = {
        f"{kind} {place} {field}": np.asarray(value)
        for kind, each in sketches.items()
        for place, sketch in enumerate(each)
        for field, value in sketch._asdict().items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **plain, **arrays)
    write_whole(folder / f"{digest}.npz", buffer.getvalue())  # of mode 0600


@lru_cache(maxsize=64)
def read_note(path: Path) -> Note:
    """Reads what `note` kept.

    Raises:
      BookError: the file is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as kept:
            sketches: dict[str, list[Sketch]] = {"rows": [], "columns": []}
            for kind, each in sketches.items():
                while f"{kind} {len(each)} n" in kept.files:
                    arrays = (kept[f"{kind} {len(each)} {field}"] for field in Sketch._fields)
                    each.append(Sketch._make(array if array.ndim else int(array) for array in arrays))
            plain: JsonObject = {
                field: tuple(map(str, kept[field])) if kept[field].ndim else kept[field].item() for field in _PLAIN
            }
            return Note(**plain, rows=tuple(sketches["rows"]), columns=tuple(sketches["columns"]))
    except Exception as error:  # zip files and NumPy raise errors of many kinds
        raise BookError(f"{path}: the note of a data set's rows cannot be read: {error}; restore it from a copy") from error


@lru_cache(maxsize=256)
def is_noted(path: Path, content: bytes, name: str, key: bytes) -> bool:
    """True if the note at a place is of the rows of a file.

    Raises:
      BookError: the note is damaged, or was written under another secret.
    """
    try:
        return rows_of(content, name, key).is_same(read_note(path))
    except ValueError as error:
        raise BookError(f"{path}: the note of a data set's rows: {error}; restore the secret from a copy") from error
