"""The cases, the rows and the runs of the comparison with public tools."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.audits.bounds import error_rates, evalues
from bandana.audits.bounds.methods import bound
from bandana.audits.bounds.samples import split
from bandana.privacy_core import GaussianDP
from benchmarks import public_tools
from benchmarks.raw_outputs import score_outputs

LEVEL = 0.05
NAME = "Bandana"
RECORDED = Path(__file__).parent / "data" / "public_tools.json"
RUNNER = Path(public_tools.__file__)
ORDER, RATIO, OUTPUTS = "order", "ratio", "outputs"
"""What a row knows of the scores: their order, that they are log-likelihood ratios, or raw outputs and nothing else."""
_CLOSEST = 40.0
"""Stands for an infinite log ratio: some tools refuse infinity."""

Sides = tuple[FloatArray, FloatArray]


class Cell(NamedTuple):
    """What one row gave on one case at one size, repeat by repeat."""

    epsilon: list[float]
    seconds: list[float]
    error: str = ""


# --- cases ------------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A pair of output laws whose epsilon at delta is known.

    Attributes:
      name: short.
      words: what it is.
      delta: at which epsilon is bounded; 0 for pure DP.
      truth: that epsilon.
      draw: (n, generator) -> raw outputs of both sides.
      score: raw outputs -> scores.
      is_gdp: whether the pair is mu-GDP for some mu.
      is_pure: whether `truth` is its epsilon at delta 0 too.
      knows: for which rows it is.
    """

    name: str
    words: str
    delta: float
    truth: float
    draw: Callable[[int, np.random.Generator], Sides]
    score: Callable[[FloatArray], FloatArray]
    is_gdp: bool = False
    is_pure: bool = False
    knows: tuple[str, ...] = (ORDER, RATIO, OUTPUTS)


def _gaussian(name: str, words: str, delta: float, *, is_leaking: bool = True) -> Case:
    mu = GaussianDP.from_epsilon_delta(1.0, delta).mu

    def draw(n: int, generator: np.random.Generator) -> Sides:
        return generator.normal(0.0, 1.0, n), generator.normal(mu if is_leaking else 0.0, 1.0, n)

    return Case(
        name, words, delta, float(is_leaking), draw, lambda x: mu * x - mu**2 / 2, is_gdp=True, is_pure=not is_leaking
    )


def _laplace(n: int, generator: np.random.Generator) -> Sides:
    return generator.laplace(0.0, 1.0, n), generator.laplace(1.0, 1.0, n)


def _closest(n: int, generator: np.random.Generator) -> Sides:
    """The pair that all (1, 0.01)-DP pairs are coarser views of."""
    sides = []
    for sign in (-1.0, 1.0):
        coin = np.where(generator.random(n) < 1 / (1 + math.exp(-1.0)), sign, -sign)
        sides.append(np.where(generator.random(n) < 0.01, sign * _CLOSEST, coin))
    return sides[0], sides[1]


def _itself(x: FloatArray) -> FloatArray:
    return x


CASES = (
    _gaussian("a1", "Gaussian noise, exactly (1, 1e-5)-DP", 1e-5),
    _gaussian("a2", "Gaussian noise, exactly (1, 0.01)-DP", 1e-2),
    Case(
        "b", "Laplace noise, exactly 1-DP", 0.0, 1.0, _laplace, lambda x: np.asarray(np.clip(2 * x - 1, -1, 1)), is_pure=True
    ),
    Case("b'", "as b, but the noisy value itself is the score", 0.0, 1.0, _laplace, _itself, is_pure=True, knows=(ORDER,)),
)
TESTS = (
    _gaussian("no leak", "both sides are alike, delta 1e-5: epsilon is 0", 1e-5, is_leaking=False),
    CASES[0],
    CASES[1],
    CASES[2],
    CASES[3]._replace(knows=(ORDER, RATIO, OUTPUTS)),
    Case("closest pair", "the pair that all (1, 0.01)-DP pairs are coarser views of", 1e-2, 1.0, _closest, _itself),
)
"""Where false bounds are counted. On b' a row that takes scores for log-likelihood ratios is misled on purpose."""


def draw(case: Case, n: int, repeats: int) -> tuple[Sides, Sides]:
    """Raw outputs and scores, each (repeats, n) of the data and of the neighbor."""
    sides = [case.draw(n, np.random.default_rng([n, repeat, *case.name.encode()])) for repeat in range(repeats)]
    raw = np.stack([data for data, _ in sides]), np.stack([neighbor for _, neighbor in sides])
    return raw, (case.score(raw[0]), case.score(raw[1]))


# --- rows -------------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """One way to a lower bound on epsilon.

    Attributes:
      key: of the tool in `public_tools.TOOLS`; of ours, any name.
      tool: whose it is; ours is `NAME`.
      method: in words.
      knows: ORDER, RATIO or OUTPUTS.
      is_gdp: whether it bounds mu, which assumes a GDP mechanism, and states the epsilon that follows.
      is_pure: whether it takes no delta.
      lower: ours only: (data, neighbor, delta) -> epsilon.
    """

    key: str
    tool: str
    method: str
    knows: str
    is_gdp: bool = False
    is_pure: bool = False
    lower: Callable[[FloatArray, FloatArray, float], float] | None = None

    def takes(self, case: Case) -> bool:
        """Whether the row's assumptions hold in this case."""
        return (
            self.knows in case.knows
            and (case.is_gdp or not self.is_gdp)
            and (case.is_pure or not self.is_pure)
            and not (self.is_gdp and case.delta == 0)
        )


def _epsilon_of_mu(mu: float, delta: float) -> float:
    return GaussianDP(mu).epsilon(delta) if mu > 0 else 0.0


def _one_threshold(data: FloatArray, neighbor: FloatArray, delta: float) -> float:
    """Half of the scores choose the threshold; a bound at delta 1e-12 is one at delta 0 too."""
    delta = max(delta, 1e-12)
    train, test = split(data, neighbor, 0.5)
    return error_rates.epsilon_lower(
        error_rates.Errors.count(*test, error_rates.choose_threshold(*train, LEVEL, delta)), delta, LEVEL
    )


def _from_outputs(method: str) -> Callable[[FloatArray, FloatArray, float], float]:
    def lower(data: FloatArray, neighbor: FloatArray, delta: float) -> float:
        (train, train_n), (test, test_n) = split(data, neighbor, 0.1)
        score = score_outputs(train, train_n)
        return bound(method, score(test), score(test_n), LEVEL, delta=delta, is_learned=True)

    return lower


STOPPED = "stopped"
"""The error of a tool that was given its time and answered nothing, or not all."""
COINS, PROCESS = "Neyman-Pearson with coins", "e-process (anytime)"
OURS = (
    Row(
        "coins-learned", NAME, COINS, ORDER,
        lower=lambda x, y, delta: bound("epsilon-coins", x, y, LEVEL, delta=delta, is_learned=True),
    ),
    Row(
        "e-process-learned", NAME, PROCESS, ORDER,
        lower=lambda x, y, delta: bound("epsilon-e-process", x, y, LEVEL, delta=delta, is_learned=True),
    ),
    Row("threshold", NAME, "one threshold from half, Clopper-Pearson", ORDER, lower=_one_threshold),
    Row(
        "event", NAME, "one event, its share of both sides", ORDER, is_pure=True,
        lower=lambda x, y, delta: bound("pure-event", x, y, LEVEL),
    ),
    Row(
        "mu-curve", NAME, "mu over the whole curve", ORDER, is_gdp=True,
        lower=lambda x, y, delta: _epsilon_of_mu(bound("mu-curve", x, y, LEVEL), delta),
    ),
    Row(
        "mu-e-process", NAME, "mu, e-process (anytime)", ORDER, is_gdp=True,
        lower=lambda x, y, delta: _epsilon_of_mu(evalues.mu_lower(x, y, LEVEL, is_learned=True), delta),
    ),
    Row(
        "mu-threshold", NAME, "mu at one threshold from half, Clopper-Pearson", ORDER, is_gdp=True,
        lower=lambda x, y, delta: _epsilon_of_mu(bound("mu-threshold", x, y, LEVEL), delta),
    ),
    Row(
        "coins", NAME, COINS, RATIO,
        lower=lambda x, y, delta: bound("epsilon-coins", x, y, LEVEL, delta=delta),
    ),
    Row(
        "e-process", NAME, PROCESS, RATIO,
        lower=lambda x, y, delta: bound("epsilon-e-process", x, y, LEVEL, delta=delta),
    ),
    Row("coins-outputs", NAME, f"boosted stumps, then {COINS}", OUTPUTS, lower=_from_outputs("epsilon-coins")),
    Row("e-process-outputs", NAME, f"boosted stumps, then {PROCESS}", OUTPUTS,
        lower=_from_outputs("epsilon-e-process")),
)  # fmt: skip
PUBLIC = tuple(Row(k, t.package, t.method, ORDER, t.is_gdp, t.is_pure) for k, t in public_tools.TOOLS.items())


# --- running ----------------------------------------------------------------------------------------------------------


class NoInterpreter(Exception):  # noqa: N818  (what it says is the condition)
    """The interpreter that should run the public tools cannot."""


def tools_of(python: str) -> dict[str, str]:
    """Public tool -> version, of those that an interpreter can import.

    Raises:
      NoInterpreter: it is not there, or it cannot run `public_tools.py`, which needs NumPy.
    """
    try:
        done = subprocess.run([python, str(RUNNER), "--list"], capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoInterpreter(f"no interpreter answers at {python!r}: {error}") from error
    if done.returncode:
        raise NoInterpreter(
            f"{python!r} cannot run {RUNNER.name}; it must be a Python with NumPy: {done.stderr[-500:].strip()}"
        )
    return dict(json.loads(done.stdout))


def run_public(row: Row, python: str, folder: Path, case: Case, limit: float) -> Cell:
    """Runs a public tool on the samples in a folder, one process for all repeats, for at most `limit` seconds."""
    request = {
        "tool": row.key, "data": str(folder / "data.npy"), "neighbor": str(folder / "neighbor.npy"),
        "delta": case.delta, "level": LEVEL,
    }  # fmt: skip
    process = subprocess.Popen(
        [python, str(RUNNER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    error = ""
    try:
        out, log = process.communicate(json.dumps(request), timeout=limit)
        if process.returncode:
            error = log.strip().splitlines()[-1][:200]
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
        error = STOPPED
    answers = [json.loads(line) for line in out.splitlines() if line.endswith("}")]
    errors = [a["error"] for a in answers if "error" in a]
    found = [a for a in answers if "error" not in a]
    return Cell([a["epsilon"] for a in found], [a["seconds"] for a in found], errors[0][:200] if errors else error)


def run_ours(row: Row, data: FloatArray, neighbor: FloatArray, case: Case) -> Cell:
    """Runs one of our rows on samples of shape (repeats, n)."""
    assert row.lower is not None
    cell = Cell([], [])
    for first, second in zip(data, neighbor, strict=True):
        start = time.process_time()
        cell.epsilon.append(float(row.lower(first, second, case.delta)))
        cell.seconds.append(time.process_time() - start)
    return cell


def fill(case: Case, n: int, repeats: int, pythons: dict[str, str], limit: float) -> Iterator[tuple[str, Cell]]:
    """(row, cell) of every row that takes the case and can be run; all get the same samples."""
    raw, scores = draw(case, n, repeats)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side, values in zip(("data", "neighbor"), scores, strict=True):
            np.save(folder / f"{side}.npy", values)
        for row in OURS + PUBLIC:
            if not row.takes(case):
                continue
            if row.lower:
                yield row.key, run_ours(row, *(raw if row.knows == OUTPUTS else scores), case)
            elif row.key in pythons:
                yield row.key, run_public(row, pythons[row.key], folder, case, limit)


class Plan(NamedTuple):
    """How much is run.

    Attributes:
      sizes: samples a side -> repeats.
      n_test: samples a side where false bounds are counted.
      tests: repeats there; 0 leaves it out.
      limit: seconds for one public tool on one case at one size, all repeats together.
    """

    sizes: dict[int, int]
    n_test: int
    tests: int
    limit: float


FULL = Plan({100_000: 20, 1_000_000: 5}, 1000, 400, 60.0)
QUICK = Plan({2000: 2}, 1000, 5, 5.0)


def measure(
    plan: Plan,
    interpreters: tuple[str, ...] = (),
    on_progress: Callable[[str], None] = lambda what: None,
    earlier: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Runs everything.

    Args:
      plan: how much.
      interpreters: where public tools are looked for, in this order.
      on_progress: called with each case and size that is done.
      earlier: the result of an earlier run by the same plan; public tools that no interpreter has are taken from it.

    Returns:
      what `render` takes; plain JSON.

    Raises:
      NoInterpreter: an interpreter cannot be run.
      ValueError: the earlier run went by another plan, so that it saw other samples.
    """
    versions: dict[str, str] = {}
    pythons: dict[str, str] = {}
    for python in interpreters:
        for key, version in tools_of(python).items():
            versions.setdefault(key, version)
            pythons.setdefault(key, python)
    result: dict[str, Any] = {
        "sizes": {str(n): repeats for n, repeats in plan.sizes.items()},
        "n_test": plan.n_test,
        "limit": plan.limit,
        "level": LEVEL,
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}, BLAS threads: "
        + os.environ.get("OPENBLAS_NUM_THREADS", "not set"),
        "versions": versions,
        "cells": {},
        "tests": {},
    }
    if earlier:
        if any(earlier[name] != result[name] for name in ("sizes", "n_test", "level")):
            raise ValueError("the earlier run went by another plan: its samples were others")
        for key in sorted(earlier["versions"].keys() - pythons.keys()):
            versions[key] = earlier["versions"][key]
            for part in ("cells", "tests"):
                if key in earlier[part]:
                    result[part][key] = earlier[part][key]
    for case in CASES:
        for n, repeats in plan.sizes.items():
            for key, cell in fill(case, n, repeats, pythons, plan.limit):
                found = {**cell._asdict(), "epsilon": _short(cell.epsilon), "seconds": _short(cell.seconds)}
                result["cells"].setdefault(key, {}).setdefault(case.name, {})[str(n)] = found
            on_progress(f"{case.name}, N = {n}")
    for case in TESTS if plan.tests else ():
        for key, cell in fill(case, plan.n_test, plan.tests, pythons, plan.limit):
            false = sum(epsilon > case.truth + 1e-9 for epsilon in cell.epsilon)
            counted = {"false": false, "repeats": len(cell.epsilon), "error": cell.error}
            result["tests"].setdefault(key, {})[case.name] = counted
        on_progress(f"false bounds, {case.name}")
    return result


def _short(values: list[float]) -> list[float]:
    return [float(f"{value:.5g}") for value in values]
