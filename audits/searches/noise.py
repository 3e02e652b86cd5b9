r"""The noise audit: does every released number carry noise of its own, of the declared size?

The deterministic audit (`bandana.audits.searches.deterministic`) looks at exact values, schedules and charges. It takes it
on trust that each release adds fresh noise of the law that its mechanism declares; a node that shares its noise with another
one, or noise of half the size, passes. Here a run is recorded live, exact values beside outputs, which shows what was added.

Let w be what a release added, `whiten(output - value)`: under the declared law its coordinates are independent of each
other and of everything before, also where the algorithm decided from earlier outputs what to release next. Each coordinate
is brought to N(0, 1) by its declared distribution function. Column z_c, c = 1, 2, ..., holds the c-th such number of each
of the N replicates that got that far, which the columns before it decide. In the QR decomposition of (1, z_1, z_2, ...),

    R[0, c] and R[j, c], 1 <= j < c, are N(0, 1),      R[c, c]^2 is chi-square with N - c degrees of freedom,

exactly and for every N (Bartlett 1933): given the columns before, z_c is a standard Gaussian vector, and its coordinates in
any orthonormal basis that they determine are independent standard Gaussians. So each entry is a test of known false-alarm
probability: R[0, c] of the mean, R[j, c] of the correlation with what was released before, R[c, c] of the variance; where
it is 0 the noise is a linear combination of earlier noise, and that combination of the outputs is exact. The replicates are
run in two halves of different seeds, and a column of one is compared with that of the other: noise that an algorithm draws
from a seed of its own repeats.

A selection (`bandana.privacy_core.noise.selections`) adds nothing to its value; what is looked at is its outcome, whose
declared probabilities given the value and everything before are known: a uniform draw within the outcome's share of [0, 1]
is uniform.

What a clean result proves: together with the deterministic audit, the hypotheses of the composition theorem for the
runs that were looked at. Each exact value moves within its sensitivity; each noise is fresh and as large as declared, up to
correlations of about z/sqrt(N) and relative errors of z sqrt(2/N) in the variance, z = 6 or so. What it cannot see: noise
that depends on earlier noise and is uncorrelated with it, a wrong shape with the right variance, noise that depends on the
data, and whether `value` is the true one.

An alarm is no proof in the strict sense unless the noise is exactly zero or exactly dependent; its probability for an honest
algorithm is `false_alarm`, over all tests together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri, gammaincinv, ndtri

from bandana.algorithms.coins import Coins
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray
from bandana.algorithms.run import run
from bandana.audits.outcome import NOISE
from bandana.audits.searches.request import Finding, Request
from bandana.privacy_core import (
    ConcentratedEvent,
    GaussianEvent,
    LaplaceEvent,
    LiveLedger,
    Mechanism,
    NearlyGaussianEvent,
    Release,
    ReproducibleNoise,
    is_selection,
)
from bandana.privacy_core.checks import at_least, probability
from bandana.privacy_core.noise.shuffled import ones_below

_EXACT = 1e-9
_BITS = 2.0**-53
_REGULAR, _FINE = 1e-6, 1e5
_LEAST_ROWS = 32
"""Columns that fewer replicates reach are not looked at: the tests would be exact, and blind."""


@dataclass(frozen=True)
class NoiseFinding:
    """Noise that is not what was declared.

    Attributes:
      releases: of a replicate's releases the first that is at fault, after the earlier one that it depends on, if any.
      reason: what is wrong, in words with the numbers.
    """

    releases: tuple[int, ...]
    reason: str

    def __str__(self) -> str:
        return f"release {' and '.join(str(i) for i in self.releases)}: {self.reason}"


class TooFewReplicatesError(ValueError):
    """More coordinates were released than the tests can tell apart; `n_needed` replicates are the fewest that can."""

    def __init__(self, width: int, n_reps: int) -> None:
        self.n_needed = 4 * (width + 1)
        super().__init__(f"{width} released coordinates need n_reps of at least {self.n_needed}, got {n_reps}")


@dataclass
class _Columns:
    """The added noise in order, standardized.

    Attributes:
      z: (n_reps, n_columns), NaN beyond a replicate's end.
      release: (n_columns,) to which release of its replicate a column belongs.
    """

    z: FloatArray
    release: IntArray


def examine(
    algorithm: Algorithm, table: Table, *, n_reps: int = 4096, seed: int = 0, false_alarm: float = 1e-6
) -> NoiseFinding | None:
    """Runs the algorithm and looks at its noise.

    Args:
      algorithm: what to audit.
      table: the data set; which one does not matter as long as all releases are reached.
      n_reps: replicates, at least 64; half of them in each of two runs. More than twice the number of released coordinates.
      seed: root of both runs' seeds.
      false_alarm: probability of a finding about an honest algorithm, at most.

    Raises:
      TooFewReplicatesError: for the number of released coordinates.
    """
    at_least("n_reps", n_reps, 64)
    probability("false_alarm", false_alarm)
    halves: list[_Columns] = []
    for child in np.random.SeedSequence(seed).spawn(2):
        noise, randomizer = child.spawn(2)
        live = LiveLedger(n_reps // 2, ReproducibleNoise(noise), keeps_transcript=True, n_records=table.n_users)
        run(algorithm, table, live, coins=Coins(noise, n_reps // 2))
        half = _collect(live.transcript, n_reps // 2, np.random.default_rng(randomizer))
        if isinstance(half, NoiseFinding):
            return half
        halves.append(half)
        width = max(half.z.shape[1] for half in halves)
        if n_reps // 2 < 2 * (width + 1):
            raise TooFewReplicatesError(width, n_reps)
    level = false_alarm / max(1, width * (width + 5))  # both halves: mean, variance, correlations; and the two together
    findings = [*_dependence(halves[0], level), *_dependence(halves[1], level), *_repetition(halves[0], halves[1], level)]
    return min(findings, key=lambda finding: finding.releases[-1], default=None)


def _collect(transcript: list[Release], n_reps: int, coin: np.random.Generator) -> _Columns | NoiseFinding:
    """Standardizes what every release added, or says at once what no test is needed for."""
    n_done, width = np.zeros(n_reps, dtype=np.int64), np.zeros(n_reps, dtype=np.int64)
    parts: list[tuple[IntArray, IntArray, FloatArray]] = []
    turns: list[IntArray] = []
    for release in transcript:
        rows = np.arange(n_reps) if release.reps is None else release.reps
        turn = int(n_done[rows].max(initial=0))
        if is_selection(release.mechanism):
            parts.append((rows, width[rows], _standardize_selection(release, coin)))
            turns.append(n_done[rows])
            n_done[rows] += 1
            width[rows] += 1
            continue
        added = release.output - release.value
        whitened = release.mechanism.whiten(added)
        if release.mechanism.scale == 0 or (whitened == 0).all(axis=0).any():
            return NoiseFinding((turn,), "a coordinate left without noise")
        rounding = _EXACT * (1 + float(np.abs(added).max()))
        if np.abs(release.mechanism.color(whitened, added.shape) - added).max() > rounding:
            return NoiseFinding((turn,), "the entries that the mechanism takes for copies of others carry other noise")
        parts.append((rows, width[rows], _standardize(release.mechanism, whitened, coin)))
        turns.append(n_done[rows])
        n_done[rows] += 1
        width[rows] += whitened.shape[1]
    z = np.full((n_reps, int(width.max(initial=0))), np.nan)
    owner = np.zeros(z.shape[1], dtype=np.int64)
    for (rows, first, part), turn_of in zip(parts, turns, strict=True):
        columns = first[:, None] + np.arange(part.shape[1])
        z[rows[:, None], columns] = part
        owner[columns] = turn_of[:, None]
    return _Columns(z, owner)


def _standardize_selection(release: Release, coin: np.random.Generator) -> FloatArray:
    """(n_rows, 1) N(0, 1) if outcomes have the declared probabilities: a uniform draw within the outcome's share.

    Outcomes are ordered by their probability, the likeliest first, so that a selection with too little noise has a mean
    below 0, and one with too much above, whatever the scores are.
    """
    mechanism: Any = release.mechanism
    probabilities = np.exp(mechanism.log_probabilities(release.value))
    order = np.argsort(-probabilities, axis=1, kind="stable")
    ordered = np.take_along_axis(probabilities, order, axis=1)
    place = np.argmax(order == np.asarray(release.output, dtype=np.int64)[:, None], axis=1)[:, None]
    own = np.take_along_axis(ordered, place, axis=1)
    share = np.take_along_axis(np.cumsum(ordered, axis=1), place, axis=1) - own * coin.random(own.shape)
    return np.asarray(ndtri(np.clip(share, _BITS, 1 - _BITS)))


def _standardize(mechanism: Mechanism, whitened: FloatArray, coin: np.random.Generator) -> FloatArray:
    """N(0, 1) if the noise has the declared law, by its distribution function; TypeError for an unknown mechanism."""
    event = mechanism.event
    if isinstance(event, NearlyGaussianEvent):
        # Ones among fair bits, by a uniform draw within the jump of the distribution function.
        n_bits = round(4 * mechanism.scale**2)
        ones = np.rint(whitened + n_bits / 2)
        below, upto = ones_below(ones, n_bits), ones_below(ones + 1, n_bits)
        return np.asarray(ndtri(np.clip(below + coin.random(ones.shape) * (upto - below), _BITS, 1 - _BITS)))
    if isinstance(event, GaussianEvent):
        return np.asarray(whitened / mechanism.scale)
    if isinstance(event, LaplaceEvent):
        tail = 0.5 * np.exp(-np.abs(whitened) / mechanism.scale)
        return np.asarray(-np.sign(whitened) * ndtri(tail))
    if isinstance(event, ConcentratedEvent) and hasattr(mechanism, "grid"):
        # A discrete law by a uniform draw within the jump of its distribution function.
        steps, ratio = np.rint(whitened / mechanism.grid).astype(np.int64), mechanism.scale / mechanism.grid
        if ratio > _FINE:  # with a uniform draw within the step, Gaussian up to 1 / ratio^2
            return np.asarray((steps + coin.random(steps.shape) - 0.5) / ratio)
        reach = max(math.ceil(12 * ratio), int(np.abs(steps).max(initial=0))) + 1
        weight = np.exp(-0.5 * (np.arange(-reach, reach + 1) / ratio) ** 2)
        below = np.concatenate([[0.0], np.cumsum(weight)]) / weight.sum()
        place = steps + reach
        share = below[place] + coin.random(steps.shape) * (below[place + 1] - below[place])
        return np.asarray(ndtri(np.clip(share, _BITS, 1 - _BITS)))
    raise TypeError(f"the law of {mechanism} is not known to the noise audit")


def _dependence(columns: _Columns, level: float) -> Iterator[NoiseFinding]:
    """Findings from one run, each test at the given level."""
    z, owner = columns.z, columns.release
    reached = ~np.isnan(z)
    n_rows = reached.sum(axis=0)
    limit = float(-ndtri(level / 2))
    for size in np.unique(n_rows):
        mine = np.flatnonzero(n_rows == size)
        last = int(mine[-1]) + 1
        rows = np.flatnonzero(reached[:, last - 1])
        if len(rows) < max(_LEAST_ROWS, 2 * (last + 1)):
            continue
        factor = _triangle(np.column_stack([np.ones(len(rows)), z[rows, :last]]))
        degrees = len(rows) - 1 - mine
        smallest, largest = 2 * gammaincinv(degrees / 2, level / 2), chdtri(degrees, level / 2)
        for c, free, least, most in zip(mine.tolist(), degrees.tolist(), smallest, largest, strict=True):
            mean, square, past = abs(factor[0, c + 1]), float(factor[c + 1, c + 1] ** 2), np.abs(factor[1 : c + 1, c + 1])
            size_squared = mean**2 + float(past @ past) + square
            worst = int(past.argmax()) if c else c
            releases = tuple(dict.fromkeys((int(owner[worst]), int(owner[c]))))
            if square < _EXACT**2 * len(rows) and mean**2 > 0.99 * size_squared:
                yield NoiseFinding(releases[-1:], "the noise is one number for all replicates of a run")
            elif square < _EXACT**2 * len(rows):
                yield NoiseFinding(
                    releases, "the noise is a linear combination of earlier noise: the outputs combine to exact values"
                )
            elif c and past[worst] > limit:
                share = past[worst] / math.sqrt(size_squared)
                yield NoiseFinding(
                    releases, f"the noise is correlated, {share:.3g} in absolute value, with what was released before"
                )
            elif mean > limit:
                share = mean / math.sqrt(len(rows))
                yield NoiseFinding(releases[-1:], f"the noise has a mean of {share:.3g} of its declared deviations")
            elif not least <= square <= most:
                ratio = math.sqrt(square / free)
                yield NoiseFinding(releases[-1:], f"the noise's deviation is {ratio:.3g} times the declared one")


def _triangle(matrix: FloatArray) -> FloatArray:
    """R of the QR decomposition, up to the rows' signs: from the cross products, which is fast, unless they are singular."""
    try:
        factor = np.asarray(np.linalg.cholesky(matrix.T @ matrix)).T
        if float((np.diagonal(factor) ** 2).min()) > _REGULAR * len(matrix):
            return factor
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def _repetition(first: _Columns, second: _Columns, level: float) -> Iterator[NoiseFinding]:
    """Columns that agree between two runs of different seeds."""
    limit = float(-ndtri(level / 2))
    for c in range(min(first.z.shape[1], second.z.shape[1])):
        rows = np.flatnonzero(~np.isnan(first.z[:, c]) & ~np.isnan(second.z[:, c]))
        if len(rows) < _LEAST_ROWS:
            continue
        mine, theirs = first.z[rows, c], second.z[rows, c]
        if abs(float(mine @ theirs)) > limit * math.sqrt(float(mine @ mine)):
            yield NoiseFinding(
                (int(first.release[c]),), "the noise repeats in a run of another seed: it has a seed of its own"
            )


_REPLICATES, _MOST_REPLICATES = 4096, 1 << 16


def examine_noise(algorithm: Algorithm, table: Table, seed: int) -> str | None:
    """Audits the noise; returns the finding in words; a quarter more replicates than its coordinates need, at least 4096."""
    n_reps = _REPLICATES
    while True:
        try:
            finding = examine(algorithm, table, n_reps=n_reps, seed=seed)
            return None if finding is None else str(finding)
        except TooFewReplicatesError as few:
            if few.n_needed > _MOST_REPLICATES:
                raise
            n_reps = min(_MOST_REPLICATES, few.n_needed * 5 // 4)


class Noise:
    """The search for noise that differs from its declaration."""

    name = NOISE

    def examine(self, request: Request) -> Finding:
        """Tests all noise that the algorithm adds."""
        finding = examine_noise(request.trial.algorithm, request.trial.table, request.effort.seed)
        return Finding(finding is not None, noise_finding=finding)
