"""What must not depend on the processor, as JSON: `python -m tests.processor_results`, or a few seconds of it with `few`.

`exact` must be equal to the last character on every machine, `close` up to rounding.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from bandana.algorithms.bandits.linear.designs import optimal_design, reduced_support
from bandana.algorithms.catalog import CATALOG, find
from bandana.algorithms.coins import Coins
from bandana.algorithms.entry import Entry, Settings
from bandana.algorithms.environments.benchmark_functions import michalewicz
from bandana.algorithms.environments.linear import random_arms
from bandana.algorithms.mdp.models import LinearModel
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.rkhs.features import quadrature_fourier
from bandana.algorithms.rkhs.kernels import Matern, SquaredExponential
from bandana.algorithms.rl.linear_mdp.forms import LSVI
from bandana.algorithms.run import run
from bandana.audits.audit import audit
from bandana.audits.claims import parse
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import SAMPLING, Effort, Outcome, Setup
from bandana.audits.testbeds.catalog import bed_of, bed_settings
from bandana.audits.trial import Trial
from bandana.flows.annex import NAMES
from bandana.flows.cells.audits import audit_key
from bandana.flows.plan.plan import cells_of
from bandana.flows.problems.finite_arms import TableSpec
from bandana.flows.spec.spec import load_spec
from bandana.privacy_core import (
    ApproxDP,
    Factorized,
    FactorizedSum,
    Gaussian,
    Interval,
    LiveLedger,
    PureDP,
    RenyiDP,
    ReproducibleNoise,
    calibrate,
)

SPECS = Path(__file__).parents[1] / "experiments"
UNIT = Interval(0.0, 1.0)
USERS, REPLICATES = 32, 2
AUDITED = {"adar-ucb": "printed", "adap-ucb": "printed", "linucb local": "tight", "capri joint": "printed"}
"""One audit for each kind of noise and of view: Gaussian and Laplace sums, messages of users, projections of a kernel."""
FEW = ("adar-ucb", "linucb joint", "gp-ucb joint")
"""Sums, solved systems, and features of a kernel."""
EFFORT = Effort(replays=1000, confidence=0.95, delta=1e-5, examples=5, seed=3)


def keys(specs: str = "*.yaml") -> dict[str, Any]:
    """Keys of specs that ship: cells, their audits, their first blocks, and what these draw from."""
    found = {}
    for path in sorted(SPECS.glob(specs)):
        for cell in cells_of(load_spec(path)):
            block = cell.blocks()[0]
            seeds = [seed.generate_state(4).tolist() for seed in (block.noise_seed, block.reward_seed)]
            named = [cell.key, audit_key(cell) if cell.is_private else "", block.key]
            is_secret = isinstance(cell.environment.item, TableSpec) and not cell.environment.shows("values")
            found[f"{path.stem}: {cell.name}"] = seeds if is_secret else [*named, *seeds]  # a secret's keys differ by folder
    return found


def play(
    entry: Entry, calibration: str | None, n_users: int, n_reps: int, n_actions: int | None = None
) -> tuple[Settings, ActionLog, LiveLedger]:
    """(settings, actions, and what was released) of a short run on the bed of audits."""
    problem, table = bed_of(entry, n_users, 0, n_actions)
    settings, log = bed_settings(entry, problem, calibration), ActionLog()
    ledger = LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(7)), keeps_transcript=True)
    run(entry.build(settings), table, ledger, observers=[log], coins=Coins(np.random.SeedSequence(7), n_reps))
    return settings, log, ledger


def transcript(entry: Entry, calibration: str | None) -> tuple[str, list[float]]:
    """(digest of actions and of the releases' sizes, some numbers of every release) of a short run."""
    _, log, ledger = play(entry, calibration, USERS, REPLICATES)
    shapes = [(release.value.shape, release.mechanism.event.__class__.__name__) for release in ledger.transcript]
    actions = [actions.tolist() for actions in log.actions]
    numbers = [float(part.ravel()[k]) for r in ledger.transcript for part in (r.value, r.output) for k in (0, -1)]
    return sha256(json.dumps([actions, str(shapes)]).encode()).hexdigest(), numbers


def _told(outcome: Outcome) -> tuple[list[Any], list[float]]:
    """(verdict, the faults that were caught and what was bounded how; the bounds)."""
    bounds = [(b.view, b.attack, str(b.neighbor), str(b.quantity), b.method) for b in outcome.bounds]
    caught = [(control.name, sorted(control.caught_by)) for control in outcome.controls]
    return [outcome.verdict.value, outcome.noise_finding, bounds, caught], [b.lower for b in outcome.bounds]


def trial_of(name: str, calibration: str) -> Trial:
    """An entry of the catalog on a bed of sixteen users."""
    entry = find(name)
    problem, table = bed_of(entry, 16, 0)
    settings = bed_settings(entry, problem, calibration)
    assert entry.promise is not None
    assert entry.probes is not None
    return Trial(entry.build(settings), entry.promise(settings), table, entry.probes(problem.n_actions))


def white_box(name: str, calibration: str) -> tuple[list[Any], list[float]]:
    """A small audit of a catalog entry, with one planted fault."""
    fault = next(control for control in CONTROLS[name] if SAMPLING in control.caught_by)
    return _told(audit(trial_of(name, calibration), (fault,), EFFORT))


def _function(rewards: np.ndarray, seed: int) -> np.ndarray:
    """Plays the coin of which a noisy first reward says that it is better."""
    generator = np.random.default_rng(seed)
    first = rewards[:, 0, 0] + generator.normal(0, 2.0, len(rewards))
    return np.where(np.arange(rewards.shape[1]) == 0, 0, (first[:, None] > 0.5).astype(int))


def black_box() -> tuple[list[Any], list[float]]:
    """A small audit of a function, with scores learned from its actions."""
    from bandana.flows.annexes.anything.functions.black_box import examine
    from bandana.flows.annexes.anything.functions.drawn import Menu
    from bandana.flows.annexes.anything.functions.drawn_bounds import screened_by
    from bandana.flows.annexes.anything.functions.plays import even_table

    table = even_table(6, 2, UNIT)
    pair = canary_pairs(table, (0,), False)[0]
    claim = parse("rdp(alpha=2, epsilon=1, relation=reward)")
    effort, menu = Effort(4000, 0.95, 1e-5, 1, 3), Menu.of(UNIT)
    screened = screened_by(_function, menu, (6, 2), claim, effort)
    return _told(examine(_function, claim, (pair,), effort, {"kind": "function"}, Setup(), screened, menu))


def calibrations() -> list[float]:
    """Noise multipliers, and the deviations of factorized sums."""
    budgets = (ApproxDP(1.0, 1e-5), ApproxDP(0.1, 1e-9), RenyiDP(8.0, 0.3), PureDP(0.7))
    found = [calibrate(budget, Factorized(50)) for budget in budgets[:3]] + [calibrate(budget) for budget in budgets]
    for n_steps in (20, 1000, 4000):
        sums = FactorizedSum(Gaussian(1.0, 2.0), n_steps)
        found += [sums.noise_deviation(step) for step in (1, n_steps // 2, n_steps)]
    return found


def designs() -> tuple[list[list[int]], list[float]]:
    """Which arms carry optimal designs, and how much: arms at random, and symmetric ones with many equal choices."""
    lattice = np.array([p for p in itertools.product((-1.0, 0.0, 1.0), repeat=3) if any(p)])
    arms = [lattice, *(random_arms(200, d, np.random.SeedSequence(d)) for d in (3, 5, 8))]
    found = [optimal_design(features).weights for features in arms]
    found += [reduced_support(features, np.full(len(features), 1 / len(features)), 6) for features in arms[:2]]
    return [np.flatnonzero(weights).tolist() for weights in found], np.concatenate(found).tolist()


def optimized() -> list[float]:
    """Frequencies whose step is optimized, places of optima, and shares of a budget."""
    rules = [
        quadrature_fourier(kernel, 1, 8, rule="equally-spaced") for kernel in (SquaredExponential(0.5), Matern(2.5, 0.3))
    ]
    found = [*(float(x) for rule in rules for x in rule.frequencies.ravel()), *michalewicz(3).best.tolist()]
    model = LinearModel(np.eye(4).reshape(2, 2, 4), 3)
    found += [float(x) for x in LSVI(model, 400, batches="static").private(ApproxDP(2.0, 1e-5), "tight").vector_norms]
    return found


def few() -> dict[str, dict[str, Any]]:
    """The first of `results`: one spec's keys, calibrations, and runs of a few entries."""
    exact: dict[str, Any] = {"keys": keys("smoke.yaml")}
    return _with_runs(exact, {"calibrations": calibrations()}, map(find, FEW))


def _with_runs(exact: dict[str, Any], close: dict[str, Any], entries: Iterable[Entry]) -> dict[str, dict[str, Any]]:
    exact["designs"], close["designs"] = designs()
    close["optimized"] = optimized()
    for entry in entries:
        name = f"run of {entry.label}"
        exact[name], close[name] = transcript(entry, entry.calibrations[-1] if entry.calibrations else None)
    return {"exact": exact, "close": close}


def results() -> dict[str, dict[str, Any]]:
    found = _with_runs({"keys": keys()}, {"calibrations": calibrations()}, CATALOG)
    exact, close = found["exact"], found["close"]
    for entry, calibration in AUDITED.items():
        name = f"audit of {entry}"
        exact[name], close[name] = white_box(entry, calibration)
    if "anything" in NAMES:
        exact["audit of a function"], close["audit of a function"] = black_box()
    return found


if __name__ == "__main__":
    json.dump(few() if sys.argv[1:] == ["few"] else results(), sys.stdout)
