"""Replays on a device beside two cores: `python -m benchmarks.devices DEVICE [--replays N]`.

Entries of each family play their second pair, both sides, by the algorithm's own code and on the device in turn; seconds
are the medians of five turns, carried on to 1e7 replays. Both are compared replay by replay: scores, and bounds on them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from dataclasses import replace
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import ONE_RUN
from bandana.audits.plan import plan_bounds
from bandana.audits.replays.measure import measure as bounded
from bandana.audits.replays.replay import BLOCK, Elsewhere, Replays, played, replay_both
from bandana.audits.subjects import EFFORT, subjects
from bandana.flows.annexes.devices.replays import player

LABELS = ("linucb joint tight", "linucb local tight", "gp-ucb joint tight", "gp-ucb joint printed", "ucb-vi joint tight",
          "dp-ucbvi joint tight")  # fmt: skip
GOAL, RUNS, WORKERS = 10**7, 5, 2


class Row(NamedTuple):
    """One entry of the catalog."""

    label: str
    own: float
    """Seconds of 1e7 replays by the algorithm's own code."""
    on_device: float
    """The same on the device."""
    score: float
    """Largest difference of two scores."""
    bound: float
    """Largest difference of two lower bounds."""


def nowhere(*_: object) -> None:
    """Plays no replays elsewhere."""


def measure(device: str, replays: int, runs: int = RUNS) -> list[Row]:
    """Plays each entry in turn, by its own code and on the device."""
    return [_row(label, player(device), replays, runs) for label in LABELS]


def _row(label: str, device: Elsewhere, replays: int, runs: int) -> Row:
    trial = subjects()[label]().trial
    pair = canary_pairs(trial.table, trial.probes, trial.private_records)[1]
    kept: dict[Elsewhere, tuple[Replays, Replays]] = {}
    seconds: dict[Elsewhere, list[float]] = {nowhere: [], device: []}

    def turn(elsewhere: Elsewhere, n: int) -> float:
        first, second = np.random.SeedSequence(1).spawn(2)
        with played(elsewhere):
            begun = time.perf_counter()
            kept[elsewhere] = replay_both(trial.algorithm, pair, n, (first, second), WORKERS)
            return time.perf_counter() - begun

    for elsewhere in seconds:
        turn(elsewhere, BLOCK)  # compiles
    for _ in range(runs):
        for elsewhere, times in seconds.items():
            times.append(turn(elsewhere, replays))
    score = max(float(np.abs(own.log_ratio - other.log_ratio).max()) for own, other in zip(*kept.values(), strict=True))
    effort = replace(EFFORT, replays=replays)
    plan = tuple(each for each in plan_bounds(trial.claim.stated, effort.delta) if each.view != ONE_RUN)
    lower = []
    for elsewhere in seconds:
        with played(elsewhere):
            lower.append(np.array([bound.lower for bound in bounded(trial.algorithm, [pair], effort, plan).bounds]))
    own, other = (statistics.median(seconds[elsewhere]) * GOAL / (2 * replays) for elsewhere in seconds)
    return Row(label, own, other, score, float(np.abs(lower[0] - lower[1]).max()))


def markdown(rows: list[Row], device: str) -> str:
    """The table of docs/speed.md."""
    lines = [f"| 10,000,000 replays of | two cores, s | `--device {device}`, s | ratio | scores differ by | bounds by |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    for label, own, on_device, score, bound in rows:
        lines.append(f"| {label} | {own:,.0f} | {on_device:,.0f} | {own / on_device:.2g} | {score:.0e} | {bound:.0e} |")
    return "\n".join(lines)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.devices", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("device", help="as torch names it, such as cuda or cpu")
    parser.add_argument("--replays", type=int, default=4 * BLOCK, help="of each side")
    chosen = parser.parse_args()
    print(markdown(measure(chosen.device, chosen.replays), chosen.device))


if __name__ == "__main__":
    main()
