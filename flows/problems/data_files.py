"""Environments on a file of a user's data, of which only what the field `public` names may be shown."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from bandana.flows.own import data as own_data
from bandana.flows.own.data import Pin
from bandana.flows.problems.environment import Environment, EnvironmentFields, Item
from bandana.flows.texts.fields import distinct, ordered
from bandana.privacy_core import Interval


class DataFileSpec(EnvironmentFields):
    """A file of data; it is private: of what it holds, only what `public` names is ever logged, tracked or reported."""

    whose_data: ClassVar[str] = "private"
    is_shipped: ClassVar[bool] = False
    path: Path = Field(description="Path of the file, relative to the spec.")
    low: float = Field(0.0, description="Lower end of the declared reward range.")
    high: float = Field(1.0, description="Upper end of the declared reward range.")
    public: Annotated[list[Literal["values", "means", "regret"]], AfterValidator(distinct)] = Field(
        [],
        description="What may be shown: `values` (the rows; audits replay them), `means` of the arms, `regret` curves. "
        "Nothing, if the file is about people who did not agree.",
    )
    not_the_data_of: Annotated[list[str], AfterValidator(distinct)] = Field(
        [],
        description="Budget books of other people, whose rows are like those of the file by accident; reports show this "
        "declaration.",
    )
    _pin: Pin | None = PrivateAttr(None)

    @property
    def data_file(self) -> Path:
        """The file."""
        return self.path

    @property
    def shows_values(self) -> bool:
        """True if its rows are public."""
        return "values" in self.public

    @property
    def pin(self) -> Pin | None:
        """The content that this run plays on; None before it began."""
        return self._pin

    def with_pin(self, pin: Pin) -> Self:
        """The same, bound to a content."""
        pinned = self.model_copy()
        pinned._pin = pin
        return pinned

    def pinned(self, secret: Path, *, makes_secret: bool) -> Self:
        """The same, bound to the present content of its file."""
        return own_data.bound(self, secret, makes_secret=makes_secret)

    _is_ordered = model_validator(mode="after")(ordered)


class DataFile(Environment[Item]):
    """A user's file. Of a private one only what its field `public` names may be shown.

    Regret and means are computed from the rows, and no claim covers them; whoever shows the rows shows the rest too.
    """

    is_drawn = False
    item: Any

    @property
    @abstractmethod
    def digest(self) -> str:
        """The digest of the bytes that were read."""

    @property
    def reward_range(self) -> Interval:
        """The declared range."""
        return Interval(self.item.low, self.item.high)

    def facts(self) -> dict[str, object]:
        """The file is known by its content, wherever it lies: a public one by a hash, a private one by an HMAC."""
        pin = self.item.pin
        digest = self.digest if pin is None else pin.digest
        private = {"path": "private", "content": digest}
        facts = super().facts()
        del facts["not_the_data_of"]
        return facts | ({"path": digest} if self.shows("values") else private)

    def check_unchanged(self) -> None:
        """Checks that the file is what keys know."""
        own_data.check_unchanged(self.item)

    def describe(self) -> Any:
        """Description of the environment for the report, with the books that its rows are declared to have nothing of."""
        return super().describe() | {"not_the_data_of": list(self.item.not_the_data_of)}

    def shows(self, what: str) -> bool:
        """True if the spec declares it public."""
        return what in self.item.public or "values" in self.item.public
