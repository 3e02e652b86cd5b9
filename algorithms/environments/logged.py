"""Real logged data as bandit environments: a randomized trial of cash incentives in HIV testing.

Thornton (2008), "The demand for, and impact of, learning HIV status": after a door-to-door HIV test in rural Malawi,
people drew a voucher at random (tinc, in US dollars, up to about 3) that was paid if they came to learn their result. The
reward is 1 if the person came (`got`). That is a medical fact about a person, and a reward that must stay private. The
data are those of the package `causaldata` (MIT). The voucher was randomized, so within an arm people are exchangeable, and
an arm's mean is the causal response to it.

Two uses, for two purposes:

`resampled_arms` draws, for each pull of an arm, one of that arm's people uniformly *with replacement*. It is exactly the
bandit whose arms are the empirical distributions: an episode's sum is Binomial(n, share who came), the mean reward of a
pull of arm a is unbiased for the arm's empirical mean, and the expected regret of an algorithm is that of the bandit with
these means, at any horizon. It is chosen for regret because 2901 people are too few for a long run, and rejection replay
(Li et al. 2011) would keep about one in five of them. One round is one simulated participant: it is a benchmark on public
data, and no claim that protects the 2901.

`people_table` lays the people themselves out, *without replacement*: column a holds the people of arm a in a random order,
so that each person stands in one cell, each round reads one person, and replacing one record is replacing one person. It
ends with the smallest arm. Audits run on it: what they protect is a person.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from algorithms.environments.bandits import BernoulliArms
from algorithms.environments.tables import RewardTable
from privacy_core import Interval

ARM_NAMES = ("no incentive", "up to $0.70", "up to $1.40", "up to $2.10", "more")
_EDGES = (0.0, 0.7, 1.4, 2.1)


@cache
def thornton_hiv() -> tuple[np.ndarray, ...]:
    """The outcomes (0 or 1) of each arm's people, in the order of the file.

    People without a voucher amount were not offered any, and people without an outcome cannot be rewarded: both are
    left out.

    Raises:
      RuntimeError: the data file is missing or is not what it was; the message says what to do.
    """
    try:
        from causaldata import thornton_hiv as dataset

        frame = dataset.load_pandas().data
    except (ImportError, OSError, ValueError) as error:
        raise RuntimeError(
            f"the data set thornton_hiv of the package causaldata cannot be read ({error}); "
            "reinstall it with: pip install --force-reinstall causaldata"
        ) from error
    missing = {"got", "tinc"} - set(frame.columns)
    if missing:
        raise RuntimeError(f"the data set thornton_hiv lacks the columns {sorted(missing)}; reinstall causaldata")
    frame = frame.dropna(subset=["got", "tinc"])
    outcomes = frame["got"].to_numpy(dtype=float)
    if not len(frame) or not np.isin(outcomes, (0.0, 1.0)).all():
        raise RuntimeError("the column got of thornton_hiv must hold 0 and 1 only; reinstall causaldata")
    arm = np.searchsorted(_EDGES, frame["tinc"].to_numpy(dtype=float), side="left")
    return tuple(outcomes[arm == a] for a in range(len(ARM_NAMES)))


def resampled_arms(n_users: int, seed: np.random.SeedSequence) -> BernoulliArms:
    """Each pull draws one of the arm's people with replacement; see the module's text."""
    return BernoulliArms([float(group.mean()) for group in thornton_hiv()], n_users, seed, ARM_NAMES)


def people_table(seed: np.random.SeedSequence, n_users: int | None = None) -> RewardTable:
    """(n_users, 5), one person a cell; at most as many rows as the smallest arm has people.

    Raises:
      ValueError: more rows are asked for than the smallest arm has people.
    """
    groups = thornton_hiv()
    available = min(len(group) for group in groups)
    if n_users is not None and not 1 <= n_users <= available:
        raise ValueError(
            f"thornton_hiv has {available} people in its smallest arm; n_users must be 1 to {available}, got {n_users}"
        )
    generator = np.random.Generator(np.random.SFC64(seed))
    columns = [generator.permutation(group)[: n_users or available] for group in groups]
    return RewardTable(np.stack(columns, axis=1), Interval(0.0, 1.0), ARM_NAMES)
