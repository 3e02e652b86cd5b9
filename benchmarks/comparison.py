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

from algorithms.protocol import FloatArray
from audits import bounds, evalues
from audits.classifiers import score_outputs
from audits.methods import bound
from audits.samples import split
from benchmarks import public_tools
from privacy_core import GaussianDP

LEVEL = 0.05
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
      tool: whose it is; ours is "Bandana".
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
    return bounds.epsilon_lower(bounds.Errors.count(*test, bounds.choose_threshold(*train, LEVEL, delta)), delta, LEVEL)


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
        "coins-learned", "Bandana", COINS, ORDER,
        lower=lambda x, y, delta: bound("epsilon-coins", x, y, LEVEL, delta=delta, is_learned=True),
    ),
    Row(
        "e-process-learned", "Bandana", PROCESS, ORDER,
        lower=lambda x, y, delta: bound("epsilon-e-process", x, y, LEVEL, delta=delta, is_learned=True),
    ),
    Row("threshold", "Bandana", "one threshold from half, Clopper-Pearson", ORDER, lower=_one_threshold),
    Row(
        "event", "Bandana", "one event, its share of both sides", ORDER, is_pure=True,
        lower=lambda x, y, delta: bound("pure-event", x, y, LEVEL),
    ),
    Row(
        "mu-curve", "Bandana", "mu over the whole curve", ORDER, is_gdp=True,
        lower=lambda x, y, delta: _epsilon_of_mu(bound("mu-curve", x, y, LEVEL), delta),
    ),
    Row(
        "mu-e-process", "Bandana", "mu, e-process (anytime)", ORDER, is_gdp=True,
        lower=lambda x, y, delta: _epsilon_of_mu(evalues.mu_lower(x, y, LEVEL, is_learned=True), delta),
    ),
    Row(
        "mu-threshold", "Bandana", "mu at one threshold from half, Clopper-Pearson", ORDER, is_gdp=True,
        lower=lambda x, y, delta: _epsilon_of_mu(bound("mu-threshold", x, y, LEVEL), delta),
    ),
    Row(
        "coins", "Bandana", COINS, RATIO,
        lower=lambda x, y, delta: bound("epsilon-coins", x, y, LEVEL, delta=delta),
    ),
    Row(
        "e-process", "Bandana", PROCESS, RATIO,
        lower=lambda x, y, delta: bound("epsilon-e-process", x, y, LEVEL, delta=delta),
    ),
    Row("coins-outputs", "Bandana", f"boosted stumps, then {COINS}", OUTPUTS, lower=_from_outputs("epsilon-coins")),
    Row("e-process-outputs", "Bandana", f"boosted stumps, then {PROCESS}", OUTPUTS,
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


def _rows_of(result: dict[str, Any]) -> tuple[tuple[Row, ...], dict[str, dict[str, Any]]]:
    """Every row that has something to show; recorded ones only where the tool was not run."""
    run = tuple(row for row in OURS + PUBLIC if row.key in result["cells"])
    kept = {r["key"]: r for r in recorded_rows()[1] if r["key"] not in result["cells"]}
    return run + tuple(Row(r["key"], r["tool"], r["method"], r["knows"], r["is_gdp"]) for r in kept.values()), kept


def is_invalid(counted: dict[str, Any]) -> bool:
    """Whether a bound with this count of false statements cannot be one at the level."""
    return counted["repeats"] > 0 and float(binom.sf(counted["false"] - 1, counted["repeats"], LEVEL)) < _SURE


def invalid_rows(result: dict[str, Any]) -> set[str]:
    """Keys of rows that stated more than the truth too often, in any of the tests."""
    return {key for key, found in result["tests"].items() if any(is_invalid(counted) for counted in found.values())}


def _median(result: dict[str, Any], key: str, case: str, n: str, what: str = "epsilon") -> float | None:
    values = result["cells"].get(key, {}).get(case, {}).get(n, {}).get(what, [])
    return float(np.median(values)) if values else None


def _seconds(result: dict[str, Any], key: str) -> float | None:
    """The median over the repeats of the slowest case, at the largest size."""
    largest = list(result["sizes"])[-1]
    found = [_median(result, key, case.name, largest, "seconds") for case in CASES]
    return max((s for s in found if s is not None), default=None)


def _bounds(result: dict[str, Any], row: Row, kept: dict[str, dict[str, Any]]) -> dict[tuple[str, str], float]:
    """(case, size) -> median bound of a row."""
    found = {}
    for case in CASES:
        for n in result["sizes"]:
            value = (
                kept[row.key]["cells"].get(case.name, {}).get(n)
                if row.key in kept
                else _median(result, row.key, case.name, n)
            )
            if value is not None:
                found[case.name, n] = float(value)
    return found


def _size(n: str) -> str:
    return f"{float(n):.0e}".replace("e+0", "e") if float(n) >= 1e4 else n


def _time(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"


def _name(row: Row, result: dict[str, Any], kept: dict[str, dict[str, Any]], marks: set[str]) -> str:
    version = result["versions"].get(row.key)
    return f"{row.tool}{f' {version}' if version else ''}{'*' if row.key in kept else ''}{'†' if row.key in marks else ''}"


def _cell(result: dict[str, Any], row: Row, case: Case, n: str, value: float | None, best: float | None) -> str:
    if value is None:
        error = result["cells"].get(row.key, {}).get(case.name, {}).get(n, {}).get("error")
        return "" if not error else STOPPED if error == STOPPED else "fails"
    shown = f"{value:.3f}"
    return f"**{shown}**" if best is not None and shown == f"{best:.3f}" else shown


def render(result: dict[str, Any]) -> str:
    """The tables as Markdown, with every figure of a result and what follows from it."""
    rows, kept = _rows_of(result)
    marks = invalid_rows(result)
    sizes = list(result["sizes"])
    lines = [
        f"Measured on {result['machine']}; 95 % confidence. Medians over "
        + " and ".join(f"{repeats} repeats at N = {_size(n)}" for n, repeats in result["sizes"].items())
        + ". Time is processor time, of the slowest case.",
        "",
    ]
    for title, is_in in GROUPS:
        group = [row for row in rows if is_in(row)]
        values = {row.key: _bounds(result, row, kept) for row in group}
        columns = [(case, n) for case in CASES for n in sizes if any((case.name, n) in v for v in values.values())]
        if not columns:
            continue
        best = {
            (case.name, n): max(
                (v[case.name, n] for k, v in values.items() if k not in marks and (case.name, n) in v), default=None
            )
            for case, n in columns
        }
        head = ["tool", "method", *(f"{case.name}, {_size(n)}" for case, n in columns), f"s at {_size(sizes[-1])}"]
        lines += [f"### {title}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
        for row in group:
            cells = [
                _cell(
                    result,
                    row,
                    case,
                    n,
                    values[row.key].get((case.name, n)),
                    best[case.name, n] if row.key not in marks else None,
                )
                for case, n in columns
            ]
            seconds = kept[row.key]["seconds"] if row.key in kept else _seconds(result, row.key)
            lines.append(f"| {' | '.join([_name(row, result, kept, marks), row.method, *cells, _time(seconds)])} |")
        lines += ["", *_standing(result, group, values, columns, kept, marks), ""]
    if kept:
        lines += [f"\\* {recorded_rows()[0]}; not run here: the tool was not there.", ""]
    if marks:
        lines += [
            "† no lower confidence bound: it stated more than the truth more often than 5 % allow, see the next table.",
            "",
        ]
    return "\n".join(lines + _validity(result, rows, kept, marks)).rstrip() + "\n"


def _standing(
    result: dict[str, Any], group: list[Row], values: dict[str, dict[tuple[str, str], float]],
    columns: list[tuple[Case, str]], kept: dict[str, dict[str, Any]], marks: set[str],
) -> list[str]:  # fmt: skip
    """Where public tools that keep their confidence state more, or answer sooner, than our best."""
    ours = [row for row in group if row.tool == "Bandana" and row.key not in marks]
    theirs = [row for row in group if row.tool != "Bandana" and row.key not in marks]
    if not ours:
        return []
    if not theirs:
        return ["No public tool that keeps its confidence does this."]
    found, ahead = [], 0
    for case, n in columns:
        at = (case.name, n)
        mine = max((values[row.key][at] for row in ours if at in values[row.key]), default=None)
        public = [(values[row.key][at], row) for row in theirs if at in values[row.key]]
        if mine is None or not public:
            continue
        value, row = max(public, key=lambda pair: pair[0])
        if value > mine:
            found.append(
                f"On {case.name} at N = {_size(n)} {row.tool} ({row.method}) states {value:.3f}, our best row {mine:.3f}."
            )
        else:
            ahead += 1
    if not ahead + len(found):
        return []
    first = (
        f"Our best row is ahead of every public tool that keeps its confidence in {ahead} of {ahead + len(found)} columns."
    )
    times = {
        row.key: seconds
        for row in ours + theirs
        if (seconds := kept[row.key]["seconds"] if row.key in kept else _seconds(result, row.key)) is not None
    }
    fastest = min((times[row.key] for row in ours if row.key in times), default=0.0)
    sooner = [f"{row.tool} ({row.method})" for row in theirs if times.get(row.key, math.inf) < fastest]
    last = f"Sooner than our fastest row: {', '.join(sooner)}." if sooner else "None of them is sooner than our fastest row."
    return [" ".join([first, *found, last])]


def _validity(result: dict[str, Any], rows: tuple[Row, ...], kept: dict[str, dict[str, Any]], marks: set[str]) -> list[str]:
    if not result["tests"]:
        return []
    head = ["tool", "method", "knows", "claim", *(case.name for case in TESTS)]
    lines = [
        "### How often a bound is above the truth",
        "",
        f"N = {_size(str(result['n_test']))}, nominal 5 %: false bounds / repeats, bold where a bound at 5 % would be false "
        f"so often with probability below {_SURE}. A tool is stopped after {result['limit']:g} s for all repeats of a case.",
        "",
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
    ]
    for row in rows:
        if row.key not in result["tests"]:
            continue
        cells = []
        for case in TESTS:
            counted = result["tests"][row.key].get(case.name)
            if counted is None:
                shown = ""
            elif counted["repeats"]:
                shown = f"{counted['false']}/{counted['repeats']}"
            else:
                shown = STOPPED if counted["error"] == STOPPED else "fails"
            cells.append(f"**{shown}**" if counted and is_invalid(counted) else shown)
        claim = "GDP" if row.is_gdp else "pure" if row.is_pure else "any"
        lines.append(f"| {' | '.join([_name(row, result, kept, marks), row.method, row.knows, claim, *cells])} |")
    return lines


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
