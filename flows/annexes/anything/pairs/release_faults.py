"""Faults planted in the outputs of a release: they take the way of its own outputs, through caller, encoder and learners.

Each shows the data set beside an output that was drawn already, without a new run. If one is missed, silence says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np

from bandana.audits.outcome import SAMPLING, TriedControl
from bandana.audits.plan import plan_release
from bandana.flows.annexes.anything.outputs.bounds import rarest_event, reach_of
from bandana.flows.annexes.anything.outputs.calls import BrokenSubject, Caller
from bandana.flows.annexes.anything.outputs.deadline import Deadline, TimeIsUpError
from bandana.flows.annexes.anything.outputs.scores import SLOWEST
from bandana.flows.annexes.anything.pairs.release import Samples, draw, examine
from bandana.privacy_core import Guarantee

_SIZES = (2000, 8000, 32_000)
_ROOM = 10.0
"""Times as often as the rarest event that refutes the claim."""


_KEYS = {f"key {place}": 0 for place in range(600)}


@dataclass
class _Holder:
    """An object with an attribute that its text does not show."""

    output: object
    side: int

    def __repr__(self) -> str:
        return "output"


Planted = tuple[tuple[TriedControl, ...], tuple[str, ...]]
Fault = Callable[[object, int, np.random.Generator, float], object]
"""(output, side, coins, probability of a rare label) -> the output with the fault."""


def _share(output: object, side: int, rng: np.random.Generator, rarest: float) -> object:
    share = float(rng.normal(0, 1000))
    return [output, share, side - share]


def _rare(output: object, side: int, rng: np.random.Generator, rarest: float) -> object:
    return output, "rare" if side and rng.random() < rarest else "common"


def _typed(output: object, side: int, rng: np.random.Generator, rarest: float) -> object:
    return [output, np.zeros(2, ("<f8", "<f4")[side])]


def _key(output: object, side: int, rng: np.random.Generator, rarest: float) -> object:
    return [output, _KEYS | {"key 579": side}]


def _attribute(output: object, side: int, rng: np.random.Generator, rarest: float) -> object:
    return _Holder(output, side)


SLOW: tuple[tuple[str, str, Fault], ...] = (
    ("planted-attribute", "an attribute that no text shows holds the data set", _attribute),
    ("planted-key", "one of 600 keys holds the data set", _key),
)
"""Faults that take as long to find as the others together."""
QUICK: tuple[tuple[str, str, Fault], ...] = (
    ("planted-type", "numbers of the neighbor have another type", _typed),
    ("planted-shares", "two random numbers sum up to the data set", _share),
    ("planted-rare-label", "a label comes from the neighbor alone, and seldom", _rare),
)


def planted_in(
    samples: Samples,
    stated: Guarantee,
    confidence: float,
    seed: int,
    deadline: Deadline,
    share: float,
    faults: tuple[tuple[str, str, Fault], ...] = (*SLOW, *QUICK),
) -> Planted:
    """Each planted fault, and whether the audit catches it; and the names of those that the time did not suffice for.

    Args: as in `bandana.flows.annexes.anything.pairs.release.examine`, and
      samples: outputs of both sides, of which each is used once.
      deadline: at which all ends.
      share: of the failure probability, as for the release itself.
      faults: to be planted: names, words, and what changes an output.
    """
    quantity, part = list(plan_release(stated).items())[-1]
    limit, n_all, level = quantity.limit(stated), len(samples.data), part * share * (1 - confidence)
    sizes = [size for size in _SIZES if size < n_all and reach_of(quantity, seed, level, size // 2) > limit]
    n = sizes[0] if sizes else n_all
    rarest = rarest_event(quantity, limit, seed, level, n, n // 2)
    tried, left_out = [], []
    for name, words, fault in faults:
        rng, often = np.random.default_rng([seed, 17, *name.encode()]), min(1.0, _ROOM * (rarest or 1.0))
        try:
            # What few runs and the quicker learners miss by bad luck, more of both must find.
            for n_runs, without in ((n, SLOWEST), (min(4 * n, n_all), ())):
                places = count(), count()

                def run(
                    side: int,
                    places: tuple[count[int], count[int]] = places,
                    fault: Fault = fault,
                    rng: np.random.Generator = rng,
                    often: float = often,
                ) -> object:
                    return fault((samples.data, samples.neighbor)[side][next(places[side])], side, rng, often)

                with deadline.enforced():
                    made = draw(Caller(run), 0, 1, n_runs, seed, deadline.left, least=n_runs)
                    result = examine(made, stated, confidence=confidence, seed=seed, share=share, without=without)
                if result.is_refuted:
                    break
        except (TimeIsUpError, BrokenSubject):
            left_out.append(f"the planted fault {name}")
            continue
        caught = (SAMPLING,) if result.is_refuted else ()
        tried.append(TriedControl(name, words, (SAMPLING,), caught, _finite(result.measured), result.limit))
    return tuple(tried), tuple(left_out)


def _finite(bound: float) -> float:
    return bound if math.isfinite(bound) else 0.0
