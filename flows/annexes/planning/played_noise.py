"""Results of one live run of a calibration: how much noise each released quantity has, and what the worst record pays.

The ledger's book holds the events, the algorithm's mechanisms the noise. `bandana.algorithms.papers.readings` says what
else a print can mean, as what it changes of such a run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from bandana import privacy_core as core
from bandana.algorithms.coins import Coins
from bandana.algorithms.entry import Claim
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.papers.readings import Reading, Values, attained_share, separate_statistics
from bandana.algorithms.protocol import Algorithm
from bandana.algorithms.rl.linear_mdp.batched_lsvi import BatchedLSVI
from bandana.algorithms.run import run

_WORDS = {"first_sums": "first pull", "matrices": "matrices", "vectors": "vector"}
"""Attributes of algorithms that hold a mechanism, as tables call them; others are all that is released, and need no name."""
_ROUNDING = 1 + 1e-9
"""A claim counts as true if the proved epsilon exceeds it by no more than rounding."""

EACH, RUNNING = "each release", "running sum"
Loss = core.GaussianDP | core.PureDP | core.NoPrivacy
Quantity = tuple[str, str, int | None]
"""`EACH` or `RUNNING`, what the noise falls on, and the step of an episode if it is of one."""


@dataclass(frozen=True)
class Column:
    """One calibration of an algorithm: its noise, and the privacy that it gives.

    Attributes:
      calibration: its name.
      promise: what is claimed, and where.
      noise: quantity -> scale of the noise: of a Laplace release its b, of all else the standard deviation.
      accounted: what the ledger of the run adds up to.
      proved: the smallest loss that is known to hold, which may be below `accounted`.
      at_least: a loss that two data sets attain.
    """

    calibration: str
    promise: Claim
    noise: Mapping[Quantity, float]
    accounted: Loss
    proved: Loss
    at_least: Loss

    @property
    def claim(self) -> Any:
        """The promise in the source's own definition."""
        return self.promise.stated

    @property
    def claimed(self) -> float:
        """The promise's epsilon, or its rho under zCDP: what `epsilon_of` compares with."""
        return float(self.claim.rho if isinstance(self.claim, core.ZCDP) else self.claim.epsilon)

    @property
    def is_true(self) -> bool | None:
        """True if the claim holds; None where it lies between what is proved and what is attained."""
        limit = self.claimed * _ROUNDING
        if epsilon_of(self.proved, self.claim) <= limit:
            return True
        return False if epsilon_of(self.at_least, self.claim) > limit else None

    @property
    def factor(self) -> float | None:
        """The noise over what the claim needs of noise in the same proportions; None where no noise is enough."""
        match self.proved, self.claim:
            case core.PureDP(epsilon=spent), core.PureDP(epsilon=claimed):
                return claimed / spent
            case core.GaussianDP(mu=spent), core.RenyiDP(alpha=alpha, epsilon=epsilon):
                return core.GaussianDP.from_renyi(alpha, epsilon).mu / spent
            case core.GaussianDP(mu=spent), core.ApproxDP(epsilon=epsilon, delta=delta):
                return core.GaussianDP.from_epsilon_delta(epsilon, delta).mu / spent
            case core.GaussianDP(mu=spent), core.ZCDP(rho=rho):
                return core.GaussianDP.from_renyi(2.0, 2 * rho).mu / spent
        return None


def epsilon_of(loss: Loss, claim: core.Guarantee) -> float:
    """The epsilon of a loss in the definition of the claim: at its delta, or at its Renyi order; its rho under zCDP."""
    if isinstance(loss, core.NoPrivacy):
        return math.inf
    if isinstance(claim, core.ApproxDP):
        return loss.epsilon_at(claim.delta)
    if isinstance(claim, core.RenyiDP) and isinstance(loss, core.GaussianDP):
        return loss.rdp(claim.alpha)
    if isinstance(claim, core.ZCDP) and isinstance(loss, core.GaussianDP):
        return loss.zcdp().rho
    return loss.epsilon if isinstance(loss, core.PureDP) else math.inf


def played(
    calibration: str, algorithm: Algorithm, data: Table, claim: Claim, reading: Reading | None, values: Values
) -> Column:
    """Plays one calibration and reads its ledger.

    Args:
      calibration: its name.
      algorithm: as it is built.
      data: what it plays on.
      claim: what is promised.
      reading: how the calibration is read, if it is the print; None: as built.
      values: the parameters, for the reading.

    Raises:
      ValueError: nothing is released.
    """
    seed = np.random.SeedSequence(0)
    ledger = core.LiveLedger(1, core.ReproducibleNoise(seed), n_records=data.n_users)
    run(algorithm.most_costly() if isinstance(algorithm, BatchedLSVI) else algorithm, data, ledger, coins=Coins(seed, 1))
    paid = ledger.worst_record()
    if not paid:
        raise ValueError(f"horizon is too short: nothing is released within {data.n_users}, ask for more")
    factors = 1.0 if reading is None else reading.noise(values)
    loss = 1.0 if reading is None else reading.loss(values)
    noise: dict[Quantity, float] = {}
    events: Counter[core.Event] = Counter()
    held: dict[str, list[core.Mechanism]] = {}
    for name, holder, mechanism in _mechanisms(algorithm):
        factor = factors if isinstance(factors, float) else factors.get(name, 1.0)
        held.setdefault(name, []).append(mechanism.scaled(factor))
        events[held[name][-1].event] += paid.pop(mechanism.event, 0)
        step = len(held[name]) if name == "vectors" else None
        for part, size, at in _parts(mechanism, values.get("episode_length", 0) - 1):
            what = " ".join(word for word in (_WORDS.get(name, ""), part) if word)
            noise[EACH, what, at or step] = size * factor
            if (running := _running(algorithm, holder, data.n_users)) is not None:
                noise[RUNNING, what, at or step] = running * size / mechanism.scale * factor
    assert not paid, f"{calibration} released through a mechanism that no attribute holds: {paid}"
    accounted = core.account({event: count for event, count in events.items() if count})
    if isinstance(accounted, core.PrivacyCurve) and isinstance(stated := claim.stated, core.ApproxDP):
        # Gaussian but for a slack: shown as the GDP that has the same epsilon at the claim's delta.
        accounted = core.GaussianDP.from_epsilon_delta(accounted.epsilon(stated.delta), stated.delta)
    proved = attained = accounted
    if "vectors" in held:
        updates = sum(events[event] for event in {m.event for m in held["vectors"]}) // len(held["vectors"])
        matrices = held["matrices"][0]
        both = separate_statistics(matrices, tuple(held["vectors"]), events[matrices.event], updates, values["dimension"])
        proved, attained = (core.PureDP(x) if isinstance(accounted, core.PureDP) else core.GaussianDP(x) for x in both)
    elif isinstance(accounted, core.PureDP):
        attained = core.PureDP(accounted.epsilon * max(attained_share(m) for ms in held.values() for m in ms))
    return Column(calibration, claim, noise, *(_times(each, loss) for each in (accounted, proved, attained)))


def _times(loss: Any, factor: float) -> Loss:
    if math.isinf(factor):
        return core.NoPrivacy()
    return core.PureDP(loss.epsilon * factor) if isinstance(loss, core.PureDP) else core.GaussianDP(loss.mu * factor)


def _mechanisms(algorithm: Algorithm) -> Iterable[tuple[str, Any, Any]]:
    """Mechanisms that an algorithm releases through: name of the attribute, what stands there, and the mechanism."""
    for field in fields(algorithm):  # type: ignore[arg-type]
        value = getattr(algorithm, field.name)
        for each in value if isinstance(value, tuple) else (value,):
            mechanism = getattr(each, "mechanism", each)
            if hasattr(mechanism, "noise_multiplier"):
                yield field.name, each, mechanism


def _parts(mechanism: Any, n_steps: int) -> Iterable[tuple[str, float, int | None]]:
    """Parts that the noise falls on, its scale there, and the step of an episode."""
    if isinstance(mechanism, core.JointGaussian):
        yield "matrix", mechanism.scale, None
        yield "vector", mechanism.vector_scale, None
    elif isinstance(mechanism, core.StackedGaussian | core.StackedLaplace):
        families = ("weighted ", "squares' ") if len(mechanism.shares) > n_steps else ("",)
        for i, share in enumerate(mechanism.shares):
            for part, size in (("matrix", 1.0), ("vector", mechanism.vector_ratio)):
                yield f"{families[i // n_steps]}{part}", mechanism.scale * share * size, i % n_steps + 1
    else:
        yield "", mechanism.scale, None


def _running(algorithm: Any, holder: Any, n_users: int) -> float | None:
    """The largest deviation of a running sum's noise; None where nothing runs."""
    if isinstance(holder, core.PhaseTotal):
        last = algorithm.most_updates
    elif (last := n_users if isinstance(holder, core.LocalSum) else getattr(holder, "n_steps", 0)) == 0:
        return None
    most_digits = (1 << (last + 1).bit_length() - 1) - 1
    return float(max(holder.noise_deviation(step) for step in {max(1, most_digits), last}))
