"""Tightness, time and validity of our bounds beside public tools, on the same samples.

    python -m benchmarks.comparison --tools-python PATH --markdown docs/comparison.md

Public tools run in whichever interpreter has them: this one, or the one that is named. A tool that neither has is shown with
the values in benchmarks/data/public_tools.json, marked as recorded.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

from bandana.algorithms.protocol import FloatArray
from bandana.audits.bounds import error_rates, evalues
from bandana.audits.bounds.methods import bound
from bandana.audits.bounds.samples import split
from bandana.audits.replays.classifiers import score_outputs
from bandana.privacy_core import GaussianDP
from benchmarks import public_tools

LEVEL = 0.05
NAME = "Bandana"
RECORDED = Path(__file__).parent / "data" / "public_tools.json"
RUNNER = Path(public_tools.__file__)
BEGIN, END = "<!-- comparison: begin -->", "<!-- comparison: end -->"
ORDER, RATIO, OUTPUTS = "order", "ratio", "outputs"
"""What a row knows of the scores: their order, that they are log-likelihood ratios, or raw outputs and nothing else."""
_SURE = 1e-3
"""A tool whose bounds were false so often that a valid one would be with at most this probability is called invalid."""
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


# --- showing ----------------------------------------------------------------------------------------------------------


GROUPS: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("Any mechanism; a tool sees scores and uses their order", lambda row: row.knows == ORDER and not row.is_gdp),
    ("GDP mechanisms; a tool sees scores and uses their order", lambda row: row.knows == ORDER and row.is_gdp),
    ("Any mechanism; the scores are known to be log-likelihood ratios", lambda row: row.knows == RATIO),
    ("Any mechanism; a tool sees raw outputs and nothing else", lambda row: row.knows == OUTPUTS),
)


def recorded_rows() -> tuple[str, list[dict[str, Any]]]:
    """Provenance and rows of the recorded values."""
    found = json.loads(RECORDED.read_text(encoding="utf-8"))
    return str(found["provenance"]), list(found["rows"])


def is_invalid(false: int, repeats: int) -> bool:
    """Whether so many false bounds of so many cannot come from bounds at the level."""
    return repeats > 0 and float(binom.sf(false - 1, repeats, LEVEL)) < _SURE


def _size(n: str | int) -> str:
    return f"{float(n):.0e}".replace("e+0", "e") if float(n) >= 1e4 else str(n)


def _time(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


class Page:
    """The tables of a result: every figure, and what follows from it.

    Args:
      result: of `measure`.

    Attributes:
      rows: those that have something to show; recorded ones only where the tool was not run.
      invalid: keys of rows whose bounds were above the truth too often, in a test or at a size.
    """

    def __init__(self, result: dict[str, Any]) -> None:
        self.result = result
        self.sizes = list(result["sizes"])
        self.recorded = {
            r["key"]: r
            for r in recorded_rows()[1]
            if r["key"] not in result["cells"] and any(n in sizes for sizes in r["cells"].values() for n in self.sizes[-1:])
        }
        self.rows = tuple(row for row in OURS + PUBLIC if row.key in result["cells"]) + tuple(
            Row(r["key"], r["tool"], r["method"], r["knows"], r["is_gdp"]) for r in self.recorded.values()
        )
        self.invalid = {row.key for row in self.rows if self._is_invalid(row)}

    def _is_invalid(self, row: Row) -> bool:
        counts = [(found["false"], found["repeats"]) for found in self.result["tests"].get(row.key, {}).values()]
        for case in CASES:
            for n in self.sizes:
                stated = self._cell(row, case, n).get("epsilon", [])
                counts.append((sum(epsilon > case.truth + 1e-9 for epsilon in stated), len(stated)))
        return any(is_invalid(*count) for count in counts)

    def _cell(self, row: Row, case: Case, n: str) -> dict[str, Any]:
        return dict(self.result["cells"].get(row.key, {}).get(case.name, {}).get(n, {}))

    def _value(self, row: Row, case: Case, n: str) -> float | None:
        if row.key in self.recorded:
            found = self.recorded[row.key]["cells"].get(case.name, {}).get(n)
            return None if found is None else float(found)
        stated = self._cell(row, case, n).get("epsilon")
        return float(np.median(stated)) if stated else None

    def _bound(self, row: Row, case: Case, n: str) -> float | None:
        """The median bound, unless the tool failed on some of the samples: the others are a selection."""
        return None if self._cell(row, case, n).get("error") not in (None, "", STOPPED) else self._value(row, case, n)

    def _seconds(self, row: Row) -> float | None:
        """The median over the repeats of the slowest case, at the largest size."""
        if row.key in self.recorded:
            return float(self.recorded[row.key]["seconds"])
        times = [self._cell(row, case, self.sizes[-1]).get("seconds") for case in CASES]
        return max((float(np.median(found)) for found in times if found), default=None)

    def _shown(self, row: Row, case: Case, n: str, best: float | None) -> str:
        value = self._value(row, case, n)
        if value is None:
            error = self._cell(row, case, n).get("error")
            return "" if not error else STOPPED if error == STOPPED else "fails"
        shown = f"{value:.3f}"
        if self._bound(row, case, n) is None:
            return f"({shown})"
        return f"**{shown}**" if best is not None and row.key not in self.invalid and shown == f"{best:.3f}" else shown

    def _name(self, row: Row) -> str:
        version = self.result["versions"].get(row.key, "")
        return f"{row.tool} {version}".strip() + "*" * (row.key in self.recorded) + "†" * (row.key in self.invalid)

    def render(self) -> str:
        """Markdown."""
        repeats = " and ".join(f"{repeats} repeats at N = {_size(n)}" for n, repeats in self.result["sizes"].items())
        lines = [
            f"Measured on {self.result['machine']}; 95 % confidence. Medians over {repeats}; fewer where a public tool was "
            f"stopped after {self.result['limit']:g} s. In brackets: it failed on some of the samples. Time is processor "
            "time, of the slowest case.",
            "",
        ]
        for title, is_in in GROUPS:
            lines += self._group(title, [row for row in self.rows if is_in(row)])
        if self.recorded:
            lines += [f"\\* {recorded_rows()[0]}; not run here: the tool was not there.", ""]
        if self.invalid:
            lines += ["† no lower confidence bound: it stated more than the truth more often than 5 % allow.", ""]
        return "\n".join(lines + self._validity()).rstrip() + "\n"

    def _group(self, title: str, group: list[Row]) -> list[str]:
        columns = [
            (case, n) for case in CASES for n in self.sizes if any(self._value(row, case, n) is not None for row in group)
        ]
        if not columns:
            return []
        valid = [row for row in group if row.key not in self.invalid]
        best = [
            max((v for row in valid if (v := self._bound(row, case, n)) is not None), default=None) for case, n in columns
        ]
        head = ["tool", "method", *(f"{case.name}, {_size(n)}" for case, n in columns), f"s at {_size(self.sizes[-1])}"]
        rows = [
            [
                self._name(row), row.method,
                *(self._shown(row, case, n, top) for (case, n), top in zip(columns, best, strict=True)),
                _time(self._seconds(row)),
            ]
            for row in group
        ]  # fmt: skip
        return [f"### {title}", "", *_table(head, rows), "", *self._standing(valid, columns), ""]

    def _standing(self, valid: list[Row], columns: list[tuple[Case, str]]) -> list[str]:
        """Where public tools that keep their confidence state more, or answer sooner, than our best."""
        ours, theirs = [row for row in valid if row.tool == NAME], [row for row in valid if row.tool != NAME]
        if not ours:
            return []
        if not theirs:
            return ["No public tool that keeps its confidence does this."]
        compared = []
        for case, n in columns:
            mine = [(v, row) for row in ours if (v := self._bound(row, case, n)) is not None]
            other = [(v, row) for row in theirs if (v := self._bound(row, case, n)) is not None]
            if mine and other:
                compared.append((case, n, max(mine, key=_first), max(other, key=_first)))
        if not compared:
            return []
        wins = [mine[1].key for _, _, mine, _ in compared]
        tightest = max(ours, key=lambda row: wins.count(row.key))
        takes = self._seconds(tightest)
        sooner = [
            f"{row.tool} ({row.method}; {_time(seconds)} s)"
            for row in theirs
            if takes is not None and (seconds := self._seconds(row)) is not None and seconds < takes
        ]
        behind = [
            f"on {case.name} at N = {_size(n)} {row.tool} ({row.method}) states {value:.3f}, our best row {mine[0]:.3f}"
            for case, n, mine, (value, row) in compared
            if value > mine[0]
        ]
        alone = [
            f"{case.name} at N = {_size(n)} ({'none' if own is None else f'{own:.3f}'} against {value:.3f})"
            for case, n, _, (value, _) in compared
            if (own := self._bound(tightest, case, n)) is None or value > own
        ]
        said = (
            f"Our best row is ahead of every public tool that keeps its confidence in {len(compared) - len(behind)} of "
            f"{len(compared)} columns{''.join(f'; {words}' for words in behind)}. "
            f'Whoever always takes "{tightest.method}" is behind the best of them on {", ".join(alone) or "none"}. '
            f"It takes {_time(takes)} s; sooner: {', '.join(sooner) or 'none'}."
        )
        return [said]

    def _validity(self) -> list[str]:
        if not self.result["tests"]:
            return []
        rows = []
        for row in self.rows:
            if row.key not in self.result["tests"]:
                continue
            cells = []
            for case in TESTS:
                found = self.result["tests"][row.key].get(case.name)
                if found is None or not found["repeats"]:
                    cells.append("" if found is None else STOPPED if found["error"] == STOPPED else "fails")
                    continue
                shown = f"{found['false']}/{found['repeats']}"
                cells.append(f"**{shown}**" if is_invalid(found["false"], found["repeats"]) else shown)
            claim = "GDP" if row.is_gdp else "pure" if row.is_pure else "any"
            rows.append([self._name(row), row.method, row.knows, claim, *cells])
        return [
            "### How often a bound is above the truth",
            "",
            f"N = {_size(self.result['n_test'])}, nominal 5 %: false bounds / repeats, bold where a bound at 5 % would be "
            f"false so often with probability below {_SURE}.",
            "",
            *_table(["tool", "method", "knows", "claim", *(case.name for case in TESTS)], rows),
        ]


def _first(pair: tuple[float, Row]) -> float:
    return pair[0]


def render(result: dict[str, Any]) -> str:
    """The tables as Markdown; see `Page`."""
    return Page(result).render()


def write(path: Path, shown: str) -> None:
    """Puts the tables between the markers of a Markdown file.

    Raises:
      ValueError: the file has no such markers.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else f"{BEGIN}\n{END}\n"
    start, stop = text.find(BEGIN), text.find(END)
    if not 0 <= start < stop:
        raise ValueError(f"{path} must hold the lines {BEGIN} and {END}, in this order; the tables go between them")
    path.write_text(f"{text[: start + len(BEGIN)]}\n\n{shown}\n{text[stop:]}", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small samples and few repeats: to see that it works")
    parser.add_argument("--tools-python", metavar="PATH", help="an interpreter that has the public tools installed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where every single value is written")
    parser.add_argument("--from-json", type=Path, metavar="FILE", help="show what an earlier run wrote, and run nothing")
    parser.add_argument("--public-from", type=Path, metavar="FILE", help="take tools that are not here from an earlier run")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="the file whose tables are replaced")
    chosen = parser.parse_args(arguments)
    if chosen.from_json:
        result = json.loads(chosen.from_json.read_text(encoding="utf-8"))
    else:
        interpreters = (sys.executable, *([chosen.tools_python] if chosen.tools_python else []))
        earlier = json.loads(chosen.public_from.read_text(encoding="utf-8")) if chosen.public_from else None
        plan = QUICK if chosen.quick else FULL
        try:
            result = measure(plan, interpreters, lambda what: print(what, file=sys.stderr, flush=True), earlier)
        except NoInterpreter as error:
            parser.error(f"--tools-python: {error}")
        except ValueError as error:
            parser.error(f"--public-from: {error}")
    if chosen.json:
        chosen.json.write_text(json.dumps(result) + "\n", encoding="utf-8")
    shown = render(result)
    if chosen.markdown:
        write(chosen.markdown, shown)
    else:
        print(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
