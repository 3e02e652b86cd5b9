"""Noise three times as large in one release: how the walk meets events that noise of its own size hardly ever shows.

An algorithm that looks at the exact value only where noise is extreme breaks its promise in runs that no number of plain
replays meets. Its argument must hold for whatever noise is drawn, so any noise in the support may be tried. One release of a
replicate is drawn with `WIDER` times its scale, and where noise of the declared scale is at most t with probability 1 - q,
the wide noise passes t with the far larger probability of passing t / `WIDER` under the declared scale: a Gaussian tail of
1e-9, six deviations, becomes one of 0.02. Against what was declared, an outcome of the wide draw is weighted by the ratio of
the densities, at most `WIDER` for each number released; the walk asks whether a violation exists, and needs no weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

import numpy as np
from scipy.special import ndtr, ndtri

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import DiscreteGaussian, LiveLedger, Mechanism, NoiseSource, is_selection
from bandana.privacy_core.ledger import Reads
from bandana.privacy_core.noise.mechanisms import GaussianLaw, Scaled

WIDER = 3.0
NEVER, FIRST_READER = -1, -2
"""No release is widened; the first that reads the record that differs is."""


class WideningLedger:
    """A live ledger that draws one release of each replicate with a larger scale.

    Attributes:
      n_reps: number of replicates.
      widened: (n_reps,) which release of the replicate was widened, from 0; `NEVER` where none was.
    """

    def __init__(self, ledger: LiveLedger, noise: NoiseSource, record: IntArray, wanted: IntArray) -> None:
        """Widens the releases of a ledger.

        Args:
          ledger: draws all noise first, and keeps the transcript.
          noise: draws the wide noise.
          record: (n_reps,) the record that differs.
          wanted: (n_reps,) which release to widen, from 0; or `NEVER`, or `FIRST_READER`.
        """
        self.n_reps = ledger.n_reps
        self.widened = np.full(self.n_reps, NEVER)
        self._ledger, self._noise, self._record, self._wanted = ledger, noise, record, wanted
        self._made, self._widens = np.zeros(self.n_reps, dtype=np.int64), bool((wanted != NEVER).any())

    def release(self, mechanism: Mechanism, value: FloatArray, **reads: Unpack[Reads]) -> FloatArray:
        """Releases through the ledger, and draws again where this release is to be widened; see `Ledger.release`."""
        output = self._ledger.release(mechanism, value, **reads)
        if not self._widens:
            return output
        reps = reads.get("reps")
        ids = np.arange(self.n_reps) if reps is None else reps
        turn = self._made[ids]
        self._made[ids] += 1
        wanted, entry = self._wanted[ids], self._ledger.transcript[-1]
        reads_first = (wanted == FIRST_READER) & (self.widened[ids] < 0) & entry.reads(self._record[ids])
        chosen = np.flatnonzero((wanted == turn) | reads_first)
        if chosen.size and isinstance(mechanism, Scaled):
            output[chosen] = mechanism.scaled(WIDER).draw(self._noise, value[chosen])
            self.widened[ids[chosen]] = turn[chosen]
            self._ledger.transcript[-1] = entry._replace(output=output.copy())
        return output


def rarest_tail(mechanisms: Iterable[Mechanism], chance: float) -> float:
    """The probability, under the declared scale, of a tail that wide noise enters with a given probability.

    A tail beyond t on one side has probability q = sf(t); wide noise enters it with probability sf(t / WIDER).

    Args:
      mechanisms: those of the run; with none but Gaussian noise the tail is Gaussian, else the larger one of Laplace noise.
      chance: the probability for wide noise, in (0, 1].

    Returns:
      1 where no release adds noise to a number, or where the chance is a half or more.
    """
    additive = {mechanism for mechanism in mechanisms if isinstance(mechanism, Scaled) and not is_selection(mechanism)}
    if not additive or chance >= 0.5:
        return 1.0
    if all(isinstance(mechanism, GaussianLaw | DiscreteGaussian) for mechanism in additive):
        return float(ndtr(WIDER * ndtri(chance)))
    return float((2 * chance) ** WIDER / 2)  # Laplace noise exceeds x scales with probability exp(-x) / 2
