"""How processor time grows: slopes on logarithmic axes, in arms, dimension, rounds, replications, replays and charges.

    python -m benchmarks.growth [--sweeps N] [--json FILE]

A slope of 1 is twice the time for twice the size. All sizes of all sweeps are timed in turn, one thread; each sweep gives a
slope by least squares, and the median is shown with the range of all sweeps. One call before them compiles.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("BANDANA_WORKERS", "1")

import numpy as np

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCBSettings
from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb, ucb
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.environments.sphere import LinearLink, SphereContexts
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.protocol import Algorithm
from bandana.algorithms.run import run
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import Effort
from bandana.audits.plan import plan_bounds
from bandana.audits.replays.measure import measure as measure_privacy
from bandana.privacy_core import (
    ApproxDP,
    Event,
    Gaussian,
    GaussianEvent,
    Interval,
    LaplaceEvent,
    LiveLedger,
    PrivacyCurve,
    RenyiDP,
    ReproducibleNoise,
    Span,
    TrustModel,
)
from benchmarks.peers.__main__ import time_of

UNIT = Interval(0.0, 1.0)
SWEEPS = 5
_fresh = count(1)


class Sweep(NamedTuple):
    """One size that grows while all others stay.

    Attributes:
      work: what is done.
      size: which size grows.
      sizes: increasing.
      play: does the work at a size.
      per: units of work at a size, of which the shown time is one.
      unit: in words.
      expected: what the algorithm says.
    """

    work: str
    size: str
    sizes: tuple[int, ...]
    play: Callable[[int], object]
    per: Callable[[int], int]
    unit: str
    expected: str


def _ledger(n_reps: int) -> LiveLedger:
    return LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(2)))


def _arms(algorithm: Callable[[int], Algorithm], n_arms: int, rounds: int, n_reps: int) -> None:
    stream = BernoulliArms(np.linspace(0.75, 0.25, n_arms), rounds, np.random.SeedSequence(1))
    run(algorithm(n_arms), stream, _ledger(n_reps))


def _ucb(n_arms: int) -> Algorithm:
    return ucb(n_arms, 4.0, UNIT)


def _adar_ucb(n_arms: int) -> Algorithm:
    return adar_ucb(n_arms, 2.0, 1.0, 3.1, UNIT, "tight")


def _linear(n_arms: int, dimension: int, rounds: int, n_reps: int, is_private: bool = False) -> None:
    theta = np.full(dimension, 0.5 / np.sqrt(dimension))
    stream = SphereContexts(theta, n_arms, rounds, np.random.SeedSequence(1), LinearLink(UNIT))
    settings = LinUCBSettings(n_arms, dimension, rounds, UNIT)
    private = settings.private(ApproxDP(1.0, 1e-5), TrustModel.JOINT, "tight") if is_private else settings.twin()
    run(private, stream, _ledger(n_reps))


def _audit(replays: int) -> None:
    generator = np.random.Generator(np.random.SFC64(4))
    table = RewardTable(generator.integers(0, 2, (64, 5)).astype(float), UNIT)
    pairs, plan = canary_pairs(table, (5,))[:1], plan_bounds(RenyiDP(2.0, 1.0), 1e-5)
    measure_privacy(_adar_ucb(5), pairs, Effort(replays, 0.95, 1e-5, 1, 1), plan)


def _curve(releases: int, is_mixed: bool) -> None:
    # The same budget for any number, and noise that differs by 1e-12 each time, so that nothing is remembered.
    noise = 5.0 * releases**0.5 * (1 + next(_fresh) * 1e-12)
    events: dict[Event, int] = {LaplaceEvent(noise): releases} if is_mixed else {GaussianEvent(noise): releases}
    curve = PrivacyCurve.of(events)
    for delta in np.geomspace(1e-8, 1e-2, 20):
        curve.epsilon(float(delta))


def _charges(number: int) -> None:
    """Overlapping charges, a hundred releases of so many replicates, and the worst record of all."""
    generator = np.random.Generator(np.random.SFC64(2))
    n_reps = number // 100
    ledger = _ledger(n_reps)
    for i in range(100):
        start = generator.integers(0, 10**6, n_reps)
        span = Span(start, start + generator.integers(1, 10**5, n_reps))
        ledger.release(Gaussian(1.0, (3.0, 5.0)[i % 2]), np.zeros(n_reps), records=span)
    ledger.worst_record()


SWEEPS_OF = (
    Sweep("UCB1", "arms", (32, 128, 512, 1024), lambda k: _arms(_ucb, k, 2000, 100), lambda k: 200_000,
          "round", "1"),
    Sweep("UCB1", "replications", (256, 1024, 4096), lambda r: _arms(_ucb, 10, 300, r), lambda r: 300 * r, "round",
          "0"),
    Sweep("UCB1", "rounds", (250, 1000, 4000), lambda t: _arms(_ucb, 10, t, 500), lambda t: 1, "run of 500", "1"),
    Sweep("AdaR-UCB, in jumps", "rounds", (10**4, 10**5, 10**6, 10**7), lambda t: _arms(_adar_ucb, 10, t, 500),
          lambda t: 1, "run of 500", "0"),
    Sweep("LinUCB", "dimension", (16, 32, 64, 128), lambda d: _linear(10, d, 100, 32), lambda d: 3200,
          "round", "2 to 3"),
    Sweep("LinUCB", "arms", (64, 256, 1024), lambda k: _linear(k, 8, 100, 32), lambda k: 3200, "round",
          "1"),
    Sweep("LinUCB joint", "rounds", (100, 400, 1600), lambda t: _linear(5, 5, t, 16, True), lambda t: 1,
          "run of 16", "1 to 2"),
    Sweep("audit of AdaR-UCB", "replays", (20_000, 80_000, 320_000), _audit, lambda n: n, "replay",
          "0"),
    Sweep("accounted curve, Gaussian", "releases", (10, 1000, 100_000), lambda n: _curve(n, False), lambda n: 1, "curve",
          "0"),
    Sweep("accounted curve, Laplace", "releases", (10, 100, 1000), lambda n: _curve(n, True), lambda n: 1, "curve",
          "0 to 1"),
    Sweep("ledger", "charges", (10_000, 100_000, 1_000_000), _charges, lambda n: n, "charge",
          "0"),
)  # fmt: skip


def measure(sweeps: int = SWEEPS) -> list[dict[str, Any]]:
    """Seconds of every size of every sweep, in turn, and the slopes."""
    for sweep in SWEEPS_OF:
        sweep.play(sweep.sizes[0])  # compiles
    seconds = [np.zeros((sweeps, len(sweep.sizes))) for sweep in SWEEPS_OF]
    for turn in range(sweeps):
        for sweep, times in zip(SWEEPS_OF, seconds, strict=True):
            for place, size in enumerate(sweep.sizes):
                start = time.process_time()
                sweep.play(size)
                times[turn, place] = (time.process_time() - start) / sweep.per(size)
        print(f"sweep {turn + 1} of {sweeps}", file=sys.stderr, flush=True)
    return [_summary(sweep, times) for sweep, times in zip(SWEEPS_OF, seconds, strict=True)]


def _summary(sweep: Sweep, times: Any) -> dict[str, Any]:
    slopes = np.polyfit(np.log(sweep.sizes), np.log(times).T, 1)[0]
    return {
        "work": sweep.work, "size": sweep.size, "sizes": sweep.sizes, "unit": sweep.unit, "expected": sweep.expected,
        "nanoseconds": (1e9 * np.median(times, axis=0)).tolist(),
        "slope": [float(np.median(slopes)), float(slopes.min()), float(slopes.max())],
    }  # fmt: skip


def markdown(measured: list[dict[str, Any]]) -> str:
    """The table of docs/speed.md."""
    lines = ["| work: unit | size | from | to | slope | in theory |", "|---|---|--:|--:|--:|---|"]
    for row in measured:
        ends = [f"{row['sizes'][i]:,}: {time_of(row['nanoseconds'][i])}" for i in (0, -1)]
        slope = "{:.2f} ({:.2f} to {:.2f})".format(*row["slope"])
        lines.append(
            f"| {row['work']}: {row['unit']} | {row['size']} | {ends[0]} | {ends[1]} | {slope} | {row['expected']} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=SWEEPS, help="how often every size is timed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where every number is written")
    chosen = parser.parse_args()
    measured = measure(chosen.sweeps)
    if chosen.json:
        chosen.json.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    print(markdown(measured))


if __name__ == "__main__":
    main()
