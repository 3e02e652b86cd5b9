r"""A running sum through a matrix factorization: nearly the least noise that any linear mechanism allows.

What is released at step t is not the sum but row t of C x + z, x the steps' exact sums, z fresh Gaussian noise; the
running sum is decoded from all rows so far, row t of B (C x + z) with B C = A, which is post-processing. The noise of
the answers is correlated, that of the releases is not.

Privacy, in one step of algebra: let a record contribute v, |v| <= D, to step s, and v' in the neighboring data set. C x
changes by C[:, s] (v - v')^T, whose norm is |C[:, s]| |v - v'| <= D', D' the sensitivity of one contribution, as the
columns have norm 1. Gaussian noise of deviation D' m on every entry makes the whole sequence (1/m)-GDP for that record:
one event, charged once, to the records of the step that they enter with. Later rows read them again (`Carried`) and
cost nothing more. The records of another step pay by themselves: disjoint spans, in parallel. That holds for streams
chosen adaptively, where x_t depends on earlier rows, because C is lower triangular: given the rows before, row t has a
Gaussian law whose means under the two data sets differ by C[t, s] (v - v'), so the privacy losses add up to that of the
vector (Denisov et al. 2022, Theorem 2.1; with GDP, mu^2 adds over t). A record must lie in one step only.

Secure noise puts rows on a grid of step g. They are computed in fixed point, floor by floor: two data sets differ by
C'[t, s] (v - v') + e_t, where the columns of C' have norm 1 up to 1e-8, and |e_t| < 2^-20 g a coordinate, whatever the data
are. By Minkowski n rows of d coordinates move by at most D (1 + 1e-8) + (1 + 2^-12) g sqrt(n d) after rounding.
`SecureNoise.spread` takes g smaller by sqrt n, and its factor on the noise pays for all rows as for one release: mu is exact
(`docs/privacy.md`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import daxpy, dgemv, dger

from bandana.privacy_core.accounting.events import GaussianEvent, NonPrivateEvent
from bandana.privacy_core.accounting.factorization import BufferedFactorization, DenseFactorization, Factorization, factorize
from bandana.privacy_core.accounting.structures import Factorized
from bandana.privacy_core.arrays import FloatArray, IntArray
from bandana.privacy_core.checks import at_least
from bandana.privacy_core.ledger import Carried, Ledger, Span
from bandana.privacy_core.noise.matrices import PackedGaussian
from bandana.privacy_core.noise.mechanisms import Gaussian, Mechanism
from bandana.privacy_core.sums import RunningSum, count

Door = Callable[[FloatArray], FloatArray]
"""Row -> the row with noise."""
_BITS = 96
"""Binary places of fixed point: of weights, and of values in units of the noise."""


class Rows(NamedTuple):
    """Memory of the encoder and the decoder, in whitened values (`Mechanism.whiten`).

    Dense: row s of x, and of the released rows, stands at [s]. Buffered: the buffers, b <- theta b + input, of which the
    encoder's input is x and its output x + omega . b, the decoder's output (released row - omega . b) its own input; kept in
    the scale of `BufferedFactorization.read_weights`.
    """

    n_steps: IntArray
    """(n_reps,) steps taken."""
    start: IntArray
    """(n_reps,) first record of the sequence."""
    encoder: FloatArray
    """(n_steps or n_buffers, n_reps, n_free), of the exact steps: sensitive."""
    decoder: FloatArray
    """The same of what was released."""
    total: FloatArray
    """(n_reps, n_free) the noisy running sum; buffered only."""
    fixed: list[Any]
    """The encoder's memory once more, not scaled, as whole numbers [row][replicate][entry]; empty without secure noise."""


@dataclass(frozen=True)
class FactorizedSum(RunningSum[Rows]):
    """The running sum of `n_steps` steps through a column-normalized factorization (`accounting.factorization`).

    At T = 1024 the largest noise variance is 9.5 in units of one release, against 110 for a tree of 11 nodes at equal mu;
    no factorization has less than 8.5.

    Memory: O(n_buffers) times the statistic, up to 32 steps O(n_steps). Cost: two small matrix products a step.

    Attributes:
      mechanism: what adds the noise of one row, with the sensitivity of one record: Gaussian, or `Exact` for the twin.
      n_steps: number of steps; fixed in advance, as the columns' norms depend on it.
      n_buffers: see `factorize`.
      label: tells factorized sums in one ledger apart.
    """

    mechanism: Mechanism
    n_steps: int
    n_buffers: int | None = None
    label: str = ""

    def __post_init__(self) -> None:
        at_least("n_steps", self.n_steps, 1)
        if not isinstance(self.mechanism.event, GaussianEvent | NonPrivateEvent):
            raise ValueError(
                f"a factorized sum takes continuous Gaussian noise, got {self.mechanism}; for other noise use TreeSum"
            )

    @property
    def structure(self) -> Factorized:
        """Structure of how its releases touch a record, for `calibrate`."""
        return Factorized(self.n_steps, self.n_buffers)

    @property
    def factorization(self) -> Factorization:
        """The decoder B and the encoder C."""
        return factorize(self.n_steps, self.n_buffers)

    @cached_property
    def _row_mechanism(self) -> Mechanism:
        """The same noise on whitened values."""
        if isinstance(self.mechanism, PackedGaussian):
            return Gaussian(self.mechanism.sensitivity, self.mechanism.noise_multiplier, self.mechanism.relation)
        return self.mechanism

    def remember_nothing(self, n_reps: int, shape: tuple[int, ...]) -> Rows:
        """The memory before the first step."""
        factors = self.factorization
        n_free = self.mechanism.whiten(np.zeros((1, *shape))).shape[1]
        n_rows = self.n_steps if isinstance(factors, DenseFactorization) else len(factors.theta)
        counts = np.zeros(n_reps, dtype=np.int64)
        encoder, decoder = np.zeros((2, n_rows, n_reps, n_free))
        return Rows(counts, counts.copy(), encoder, decoder, np.zeros((n_reps, n_free)), [])

    def push(self, memory: Rows, value: FloatArray, records: Span, ledger: Ledger, reps: IntArray | None) -> FloatArray:
        """Takes in one step, releases its row, and answers the noisy running sum decoded from all rows."""
        rows = slice(None) if reps is None else reps
        step = memory.n_steps[rows]
        now = int(step[0]) if len(step) else 0
        is_lockstep = len(step) == 1 or bool((step == now).all())
        last = now if is_lockstep else int(step.max())
        if last >= self.n_steps:
            raise ValueError(f"the sum was built for {self.n_steps} steps, this is step {last + 1}; use DoublingSum")
        begins = now == 0 or not is_lockstep
        start = np.where(step == 0, records.start, memory.start[rows]) if begins else memory.start[rows]
        fixed: list[Any] = []

        def release(row: FloatArray) -> FloatArray:
            rest = partial(self._rest, row, memory, value, step, rows, fixed)
            carried = Carried(self.label, start, self.factorization, rest)
            noisy = ledger.release(self._row_mechanism, row, records=records, reps=reps, carried=carried)
            memory.fixed[:] = fixed
            return noisy

        factors, whitened = self.factorization, self.mechanism.whiten(value)
        if isinstance(factors, DenseFactorization):
            places: Any = now if reps is None and is_lockstep else (step, np.arange(len(memory.n_steps))[rows])
            memory.encoder[places] = whitened
            try:
                noisy = release(_row_product(factors.encoder, memory.encoder, step, rows))
            except BaseException:
                memory.encoder[places] = 0.0  # as before: a step is entered once
                raise
            memory.decoder[places] = noisy
            answer = _row_product(factors.decoder, memory.decoder, step, rows)
        elif reps is None and is_lockstep and whitened.size:
            answer = _buffered(factors, memory, whitened, now, release)
        else:
            answer = _buffered_rows(factors, memory, whitened, step, rows, release)
        if begins:
            memory.start[rows] = start
        count(memory.n_steps, reps)
        return self.mechanism.color(answer, value.shape)

    def _rest(
        self, row: FloatArray, memory: Rows, value: FloatArray, step: IntArray, rows: slice | IntArray, after: list[Any]
    ) -> FloatArray:
        """Computes what the row lost in floating point; `after` becomes the memory of fixed point, see the module."""
        factors, scale = self.factorization, self._row_mechanism.scale
        if not (np.abs(row) < 2.0**_BITS * scale).all():
            return np.zeros_like(row)  # the source refuses a row that no grid holds
        bits = _BITS - math.frexp(scale)[1]
        past = np.array(memory.fixed or np.zeros(memory.encoder.shape, dtype=np.int64).tolist(), dtype=object)
        entering = _whole(self.mechanism.whiten(value), bits)
        if isinstance(factors, BufferedFactorization):
            entering = entering * _whole(1 / factors.column_norms[step][:, None]) >> _BITS
            exact = (entering << _BITS) + np.einsum("b,brn->rn", _whole(np.array(factors.omega)), past[:, rows])
            past[:, rows] = (_whole(np.array(factors.theta))[:, None, None] * past[:, rows] >> _BITS) + entering
        else:
            past[step, np.arange(len(memory.n_steps))[rows]] = entering
            exact = _row_product(_whole(factors.encoder), past, step, rows)
        after[:] = past.tolist()
        return np.asarray(np.ldexp(((exact >> _BITS) - _whole(row, bits)).astype(float), -bits))

    def noise_variance(self, step: int) -> float:
        """Squared norm of a row of B."""
        if at_least("step", step, 1) > self.n_steps:
            raise ValueError(f"step must be at most n_steps = {self.n_steps}, got {step}")
        return float(self.factorization.variances[step - 1])


def _buffered(factors: BufferedFactorization, memory: Rows, value: FloatArray, step: int, release: Door) -> FloatArray:
    """One step of all replicates, in place, `value` too: two passes over the buffers of each side, by BLAS."""
    turn, norm = step % factors.cycle, float(factors.column_norms[step])
    read, write = factors.read_weights[turn], factors.write_weights[turn]
    encoder, decoder = (kept.reshape(len(read), -1).T for kept in (memory.encoder, memory.decoder))
    entering = value.reshape(-1)
    entering /= norm
    noisy = release(dgemv(1.0, encoder, read, beta=1.0, y=entering).reshape(value.shape))
    decoded = dgemv(-1.0, decoder, read, beta=1.0, y=noisy.reshape(-1))
    dger(1.0, entering, write, a=encoder, overwrite_a=True)
    dger(1.0, decoded, write, a=decoder, overwrite_a=True)
    if turn == factors.cycle - 1:
        encoder *= factors.cycle_decays
        decoder *= factors.cycle_decays
    daxpy(decoded, memory.total.reshape(-1), a=norm)
    return memory.total


def _buffered_rows(
    factors: BufferedFactorization, memory: Rows, value: FloatArray, step: IntArray, rows: slice | IntArray, release: Door
) -> FloatArray:
    """The same where each replicate has its own step."""
    turn, norm = step % factors.cycle, factors.column_norms[step][:, None]
    read, write = factors.read_weights[turn], factors.write_weights[turn]
    decays = np.where(turn[:, None] == factors.cycle - 1, factors.cycle_decays, 1.0)
    entering = value / norm
    noisy = release(np.einsum("rb,brn->rn", read, memory.encoder[:, rows]) + entering)
    decoded = noisy - np.einsum("rb,brn->rn", read, memory.decoder[:, rows])
    for kept, added in ((memory.encoder, entering), (memory.decoder, decoded)):
        kept[:, rows] = (kept[:, rows] + write.T[:, :, None] * added) * decays.T[:, :, None]
    memory.total[rows] += norm * decoded
    return np.asarray(memory.total[rows])


def _row_product(matrix: FloatArray, history: FloatArray, step: IntArray, rows: slice | IntArray) -> FloatArray:
    """(n_rows, n_free): row step[r] of the lower-triangular matrix times the history of replicate r."""
    t = int(step.max()) + 1 if len(step) else 0
    past = history[:t] if isinstance(rows, slice) else history[:t].take(rows, axis=1)
    if len(step) and (step == step[0]).all():
        return np.asarray((matrix[t - 1, :t] @ past.reshape(t, -1)).reshape(past.shape[1:]))
    return np.asarray(np.einsum("rs,srn->rn", matrix[step, :t], past))


def _whole(value: FloatArray, bits: int = _BITS) -> Any:
    """floor(value 2^bits), as Python's integers."""
    return np.frompyfunc(lambda x: math.floor(math.ldexp(x, bits)), 1, 1)(value)
