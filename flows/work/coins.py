"""Public coins of a block: in which order an algorithm meets its actions, and the keys of its own randomization.

Nobody's data enter them, so they cost no privacy. They are drawn once for each replicate, the same for every cell on an
environment: no result hangs on which action is listed first, and replications share no coins.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from bandana.algorithms.entry import Entry, Settings
from bandana.algorithms.problem import CONTEXTUAL, FINITE, KERNEL, LINEAR
from bandana.algorithms.protocol import Algorithm, IntArray

_MOST = 2**62


def with_coins(
    entry: Entry, settings: Settings, seed: np.random.SeedSequence, n_reps: int
) -> tuple[Algorithm, IntArray | None]:
    """The algorithm of a block with its public coins, and the labels under which it meets the stream's actions.

    An algorithm that knows its actions beforehand gets the permutation as its `preference` among ties, if it has that field;
    one that draws from a public stream gets a key for each replicate as `coins`. Any other meets its actions in a
    permuted order, see `bandana.algorithms.run.run`.

    Returns:
      the algorithm; (n_reps, n_actions) permutations, or None where the algorithm knows its actions.
    """
    algorithm = entry.build(settings)
    generator = np.random.Generator(np.random.SFC64(seed))
    order = generator.permuted(np.tile(np.arange(algorithm.n_actions), (n_reps, 1)), axis=1)
    own: dict[str, Any] = {"preference": order, "coins": generator.integers(0, _MOST, n_reps)}
    known: list[str] = [field.name for field in fields(algorithm)] if is_dataclass(algorithm) else []
    taken = {name: own[name] for name in known if name in own}
    if taken:
        algorithm = replace(algorithm, **taken)  # type: ignore[type-var]
    return algorithm, order if is_relabeled(entry, settings) and "preference" not in taken else None


def is_relabeled(entry: Entry, settings: Settings) -> bool:
    """True if an algorithm knows nothing of single actions beforehand, so that any order of them is as good."""
    kind = settings.problem.kind
    return kind in (FINITE, CONTEXTUAL, KERNEL) or (kind == LINEAR and FINITE in entry.plays_on and not entry.knows_actions)
