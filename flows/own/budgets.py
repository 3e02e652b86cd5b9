"""The budget of a private data set, and the book in which every run over it is charged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from bandana.flows.texts.fields import NAME, Delta, Level, Strict
from bandana.privacy_core import ApproxDP, PureDP

_ADDRESS = re.compile(r"postgresql(\+\w+)?://[^#]+#\S+")
_ENDINGS = (".sqlite", ".sqlite3", ".db")


def _place(text: str) -> str:
    """A name, a path, or an address."""
    if "://" in text:
        if not _ADDRESS.fullmatch(text):
            raise ValueError("an address reads postgresql://HOST/DATABASE#NAME")
    elif not re.match(NAME, text) and not text.endswith(_ENDINGS):
        raise ValueError(
            f"a book is a name such as trial-2026, a file ending in {', '.join(_ENDINGS)}, or a database's address"
        )
    return text


class BudgetSpec(Strict):
    """Budget that all runs over a data set may spend together."""

    epsilon: Level = Field(description="Epsilon that no record's runs together may exceed.")
    delta: Delta | None = Field(None, description="Delta of that epsilon; without one, only noise of pure DP is allowed.")

    @property
    def guarantee(self) -> ApproxDP | PureDP:
        """The same as a guarantee."""
        return PureDP(self.epsilon) if self.delta is None else ApproxDP(self.epsilon, self.delta)


class BookSpec(Strict):
    """The book of a private data set."""

    book: Annotated[str, AfterValidator(_place)] = Field(
        description="Name of a book in the data folder, path of a SQLite file relative to the spec, or "
        "postgresql://HOST/DATABASE#NAME."
    )
    budget: BudgetSpec | None = Field(None, description="Budget of the book; needed only by the run that opens it.")

    @property
    def file(self) -> Path | None:
        """The file, where the spec gives one."""
        return Path(self.book) if self.book.endswith(_ENDINGS) and "://" not in self.book else None

    def place(self, root: Path) -> str:
        """Where the book is; `root` is the data folder."""
        if "://" in self.book:
            return self.book
        return str(self.file.absolute() if self.file is not None else root / "books" / f"{self.book}.sqlite")

    def within(self, folder: Path) -> BookSpec:
        """The same, a relative path looked up in the folder."""
        return self if self.file is None else self.model_copy(update={"book": str(folder / self.file)})
