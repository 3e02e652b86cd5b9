"""A data set as a data folder knows it: the books that its rows have, and the runs over them that no book was charged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bandana.flows.annexes.books.bookkeeping import identity, witness
from bandana.flows.annexes.books.bookkeeping.identity import Rows, Table
from bandana.flows.annexes.books.bookkeeping.seeds import append
from bandana.flows.annexes.books.bookkeeping.spending import Charge
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import BookError


class Earlier(NamedTuple):
    """Runs over a data set that no book was charged."""

    charges: tuple[Charge, ...] = ()
    unprotected: tuple[str, ...] = ()
    """Keys of the results that were computed without noise, or with rows that were public: no budget covers them."""


@dataclass(frozen=True)
class DataSet:
    """Whose records a book protects.

    Attributes:
      content: the file's bytes; the book keeps an HMAC of them.
      name: what messages call it.
      digest: what the data folder knows the file by.
      heads: where the data folder keeps what it saw of books; None if it keeps nothing.
      key: the data folder's key for hashes of rows.
      apart: books of other people, whose rows are alike by accident, as the spec declares.
      earlier: finds the runs over the data set that no book was charged.
    """

    content: bytes
    name: str
    digest: str = ""
    heads: Path | None = None
    key: bytes = b""
    apart: tuple[str, ...] = ()
    earlier: Callable[[], Earlier] = field(default=Earlier, compare=False)

    @property
    def table(self) -> Table:
        """Its parsed rows."""
        return identity.table_of(self.content, self.name)

    @property
    def rows(self) -> Rows:
        """Its rows under the data folder's key."""
        return identity.rows_of(self.content, self.name, self.key)

    @property
    def _notes(self) -> Path:
        assert self.heads is not None
        return self.heads.parents[1] / identity.FOLDER

    def note(self) -> None:
        """Lets the data folder know the rows, whatever file holds them next time."""
        if self.heads is not None:
            identity.note(self._notes, self.digest, lambda: self.rows)

    def is_same(self, digest: str) -> bool:
        """True if a data set that the folder knows by a digest has the same rows, or a part of them.

        Of a data set with a book the spec may declare that it is of others; not of the very same file.

        Raises:
          BookError: the note of its rows is damaged, or was written under another secret.
        """
        if digest == self.digest:
            return True
        assert self.heads is not None
        seen = witness.read(self.heads, digest) if self.apart else None
        if seen is not None and {seen.place, Path(seen.place).stem} & set(self.apart):
            return False
        note = self._notes / f"{digest}.npz"
        return note.exists() and identity.is_noted(note, self.content, self.name, self.key)

    def span_in(self, digest: str, start: int, stop: int | None) -> tuple[int, int]:
        """Where the records of a run over a known data set are in this one; all records, if rows have other places.

        Args:
          digest: of the known data set.
          start: first record of the run.
          stop: one past its last; None: not known.
        """
        n_rows, note = self.table.n_rows, self._notes / f"{digest}.npz"
        is_in_place = digest == self.digest or (note.exists() and self.rows.begins_with(identity.read_note(note)))
        return (start, stop) if is_in_place and stop is not None else (0, n_rows)

    def books(self) -> dict[str, bool]:
        """Places of the books that its rows have, but for those that are declared to be of others and hold another file.

        Returns:
          place -> whether the book knows this very file.
        """
        if self.heads is None:
            return {}
        books: dict[str, bool] = {}
        for path in sorted(self.heads.glob("*.json")):
            seen, is_exact = witness.read(self.heads, path.stem), path.stem == self.digest
            if seen is None:
                continue
            if self.is_same(path.stem):
                books[seen.place] = books.get(seen.place, False) or is_exact
        return books

    # --- runs without a book ---------------------------------------------------------------------------------------

    def note_run(self, body: JsonObject) -> None:
        """Writes down a run that no book is charged for, before it draws noise: a book that is opened later is.

        Args:
          body: as of a charge; `events` is null for a run without noise.
        """
        if self.heads is None:
            return
        self.note()
        append(self._notes / f"{self.digest}.jsonl", dict(body))

    def noted_runs(self) -> Iterator[tuple[str, JsonObject]]:
        """Runs over the same rows that `note_run` wrote down, each with the digest of the file that it played.

        Raises:
          BookError: a line cannot be read.
        """
        if self.heads is None:
            return
        for path in sorted(self._notes.glob("*.jsonl")):
            if self.is_same(path.stem):
                for line in path.read_text(encoding="utf-8").splitlines():
                    try:
                        yield path.stem, json.loads(line)
                    except ValueError as error:
                        raise BookError(
                            f"{path}: a note of a run cannot be read: {error}; restore it from a copy"
                        ) from error
