"""Which auditors find planted and real defects, each in the same time, and how often they blame an honest mechanism.

    python -m benchmarks.detection --tools-python tools/bin/python --markdown docs/comparison.md

A subject is a pair of data sets and a claim: textbook faults (`benchmarks.planted`), the releases of the tests' museum, and
the defects and fixes of `experiments/refutations`. Our audit has a number of seconds for all that it does. The others get as
many runs as fit into half of that time, and the other half to decide; each sees the numbers of an output, in order, and for
tools that take scores the log odds of a logistic regression, learned on a third of the runs. Claims in another currency
become epsilon at delta 1e-5 for them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from bandana.algorithms.protocol import FloatArray
from bandana.audits.claims import Quantity, parse
from bandana.audits.leaves import leaves
from bandana.audits.outcome import Effort
from bandana.flows.annexes.anything.given_pairs import on_pair
from bandana.flows.annexes.anything.outputs.calls import BrokenSubject, Caller, Outputs, by_signature, inspect_call
from bandana.flows.annexes.anything.pairs.release import draw
from bandana.flows.annexes.anything.pairs.stages import audit_subject
from bandana.flows.annexes.anything.pairs.starts import set_aside
from bandana.flows.annexes.anything.pairs.subject import Subject
from bandana.flows.annexes.anything.refutations.case import Case, Planned, read_all
from bandana.flows.annexes.anything.refutations.playing import python_with
from bandana.flows.annexes.anything.refutations.serving import claim_of, served
from bandana.privacy_core import Guarantee
from benchmarks.comparison_page import write
from benchmarks.comparison_runs import NAME, RUNNER, tools_of
from benchmarks.detectors import RECREATED, logistic_score
from benchmarks.planted import PLANTED
from benchmarks.public_tools import TOOLS

ROOT = Path(__file__).parents[1]
MUSEUM, CASES = ROOT / "tests/flows/annexes/anything/museum/releases", ROOT / "experiments/refutations"
TEXTBOOK, EXHIBIT, REAL = "textbook faults", "museum of releases", "released code"
PUBLIC = ("jax-bonferroni", "jax-split", "estimates-beta", "opake-any", "tensorflow-all")
"""Tools that take scores, by the names of `benchmarks.public_tools`."""
BEGIN, END = "<!-- detection: begin -->", "<!-- detection: end -->"
RECORDER = "recorder"
_RECORDED, _TO_START = 200, 60.0
LEVEL, DELTA, MOST_RUNS, WIDEST = 0.05, 1e-5, 100_000, 200
FOUND, MISSED, NO_ANSWER = "found", "missed", "no answer"


def _nothing() -> None:
    """Ends what needs no end."""


class Opened(NamedTuple):
    """What can be run: a function, both data sets, the claim, and what ends it."""

    function: Any
    data: Any
    neighbor: Any
    stated: Guarantee
    end: Callable[[], None] = _nothing


class Target(NamedTuple):
    """What is audited.

    Attributes:
      group: which of the three.
      name: of the release.
      is_broken: whether it breaks its claim on the pair.
      open: makes it ready to run.
    """

    group: str
    name: str
    is_broken: bool
    open: Callable[[], Opened]


def targets(environments: Path) -> Iterator[Target]:
    """All subjects."""
    pure = on_pair(parse("pure(epsilon=1)", relation="pair")).stated
    for one in PLANTED:
        opened = partial(Opened, one.function, *one.pair, pure)
        yield Target(TEXTBOOK, one.function.__name__, one.is_broken, opened)
    sys.path.insert(0, str(MUSEUM))
    exhibits: Any = __import__("exhibits")
    for file in sorted(MUSEUM.glob("*.py")):
        __import__(file.stem)
    for name, exhibit in exhibits.EXHIBITS.items():
        opened = partial(Opened, exhibit.function, exhibits.DATA, exhibits.NEIGHBOR, pure)
        yield Target(EXHIBIT, name, exhibit.witness is not None, opened)
    for folder, case in read_all(CASES).items():
        for audit in case.planned:
            if audit.role == "search":
                continue

            opened = partial(_served, CASES / folder, case, audit, environments)
            yield Target(REAL, f"{folder}: {audit.name}", audit.role == "defect", opened)


def _served(folder: Path, case: Case, audit: Planned, environments: Path) -> Opened:
    """A case's program, running."""
    python = python_with(case.packages[audit.packages], environments)
    stated = on_pair(parse(claim_of(python, folder, audit), relation="pair")).stated
    ends = ExitStack()
    program = ends.enter_context(served(python, folder, audit, 300.0))
    return Opened(program, audit.data, audit.neighbor, stated, ends.close)


def numbers(outputs: Outputs) -> FloatArray:
    """(n, k) the numbers of outputs in order, at most 200 of each; those that are missing or not finite are 0."""
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf":
        flat = outputs.reshape(len(outputs), -1)[:, :WIDEST].astype(float)
    else:
        rows = []
        for output in outputs:
            row: list[float] = []
            for _, _, values, _ in leaves(output):
                row.extend(values[: WIDEST - len(row)] if values is not None else ())
            rows.append(row)
        flat = np.zeros((len(rows), max(1, max(map(len, rows), default=1))))
        for place, row in enumerate(rows):
            flat[place, : len(row)] = row
    return np.asarray(np.clip(np.nan_to_num(flat, nan=0.0, posinf=1e12, neginf=-1e12), -1e12, 1e12))


class Answer(NamedTuple):
    """What one auditor said of one subject."""

    said: str
    seconds: float


def audited(target: Target, seconds: float, pythons: dict[str, str], seed: int) -> dict[str, Answer]:
    """Auditor -> its answer on one subject; each has the same time."""
    function, data, neighbor, stated, end = target.open()
    try:
        begun = time.monotonic()
        starts = None if target.group == REAL else set_aside(function)
        said = _ours(function, data, neighbor, stated, seconds, seed, starts)
        answers = {NAME: Answer(said, time.monotonic() - begun)}
        begun = time.monotonic()
        try:
            caller = function.caller(data, neighbor, seed) if target.group == REAL else by_signature(function)
            samples = draw(caller, data, neighbor, MOST_RUNS, seed + 1, seconds / 2, least=300)
            sides = numbers(samples.data), numbers(samples.neighbor)
        except BrokenSubject:
            return answers | dict.fromkeys([*RECREATED, *pythons], Answer(NO_ANSWER, seconds))
        drawn = time.monotonic() - begun
    finally:
        end()
    width = max(side.shape[1] for side in sides)
    padded = [np.pad(side, ((0, 0), (0, width - side.shape[1]))) for side in sides]
    is_pure = not Quantity.of(stated).delta and Quantity.of(stated).name == "epsilon"
    delta = 0.0 if is_pure else Quantity.of(stated).delta or DELTA
    epsilon = stated.pure().epsilon if is_pure else stated.epsilon_at(delta)
    left = seconds - min(drawn, seconds / 2)
    if target.group != REAL:
        begun = time.monotonic()
        said = FOUND if noise_differs(caller, data, neighbor) else MISSED
        answers[RECORDER] = Answer(said, time.monotonic() - begun)
    for name, (_, method, needs_pure) in RECREATED.items():
        if needs_pure and not is_pure:
            continue
        begun = time.monotonic()
        is_found = _in_time(partial(method, padded[0], padded[1], epsilon, delta, LEVEL), left)
        answers[name] = Answer(NO_ANSWER if is_found is None else FOUND if is_found else MISSED,
                               drawn + time.monotonic() - begun)  # fmt: skip
    third = len(padded[0]) // 3
    begun = time.monotonic()
    score = logistic_score(padded[0][:third], padded[1][:third])
    scores = score(padded[0][third:]), score(padded[1][third:])
    learned = time.monotonic() - begun
    for name, python in pythons.items():
        if name == "tensorflow-all" and not is_pure:
            continue
        said, taken = _public(name, python, scores, epsilon, delta, max(1.0, left - learned))
        answers[name] = Answer(said, drawn + learned + taken)
    return answers


def noise_differs(caller: Caller, data: Any, neighbor: Any) -> bool:
    """Whether calls of NumPy's generators differ between both sides under one seed, in their number, kind or arguments.

    Source: the idea of Re:cord-play (arXiv 2602.17454), which records what noise is added to and replays it on a neighbor;
    here without the sensitivities that its users declare for each kind of noise. It sees functions in Python alone.
    """
    return any(_noise_calls(caller, data, seed) != _noise_calls(caller, neighbor, seed) for seed in range(_RECORDED))


class _Recorder:
    """A generator that keeps what it is asked for."""

    def __init__(self, generator: np.random.Generator, calls: list[object]) -> None:
        self._generator, self._calls = generator, calls

    def __getattr__(self, name: str) -> Any:
        drawn = getattr(self._generator, name)
        if not callable(drawn):
            return drawn

        def recorded(*given: Any, **named: Any) -> Any:
            self._calls.append((name, repr(given), repr(sorted(named.items()))))
            return drawn(*given, **named)

        return recorded


def _noise_calls(caller: Caller, data: Any, seed: int) -> list[object]:
    calls: list[object] = []
    made = np.random.default_rng
    np.random.default_rng = lambda *given: _Recorder(made(*given), calls)  # type: ignore[assignment]
    try:
        caller.tried(data, seed)
    finally:
        np.random.default_rng = made
    return calls


def _ours(function: Any, data: Any, neighbor: Any, stated: Guarantee, seconds: float, seed: int, starts: Any) -> str:
    """Our verdict, found or missed; an audit that could not have seen its planted faults missed too."""
    try:
        caller: Caller = inspect_call(function, data, neighbor, seed)
        effort = Effort(MOST_RUNS, 1 - LEVEL, DELTA, 1, seed)
        outcome = audit_subject(Subject(caller, data, neighbor), stated, effort, seconds, starts=starts)
    except BrokenSubject:
        return NO_ANSWER
    return FOUND if outcome.verdict == "FAIL" else MISSED


def _in_time(method: Callable[[], bool], seconds: float) -> bool | None:
    """What a method says, in a process that is ended after some seconds; None where it was."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(bool(method())))
    process.start()
    answer = receiver.recv() if receiver.poll(seconds) else None
    process.kill()
    process.join()
    return answer


def _public(
    name: str, python: str, scores: tuple[FloatArray, FloatArray], epsilon: float, delta: float, seconds: float
) -> tuple[str, float]:
    """What a public tool says, with half of the level for either side being the likelier one, and its processor seconds."""
    with tempfile.TemporaryDirectory() as place:
        for side, one, other in (("data", scores[0], scores[1]), ("neighbor", scores[1], scores[0])):
            np.save(Path(place) / f"{side}.npy", np.stack([one, -other]))
        asked = {
            "tool": name, "data": f"{place}/data.npy", "neighbor": f"{place}/neighbor.npy", "delta": delta,
            "level": LEVEL / 2,
        }  # fmt: skip
        try:
            done = subprocess.run(
                [python, str(RUNNER)], input=json.dumps(asked), capture_output=True, text=True, check=False,
                timeout=seconds + _TO_START,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return NO_ANSWER, seconds
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    bounds = [answer["epsilon"] for answer in answers if "epsilon" in answer]
    taken = sum(answer.get("seconds", 0.0) for answer in answers)
    if not bounds or taken > seconds:
        return NO_ANSWER, taken
    return FOUND if max(bounds) > epsilon else MISSED, taken


def measure(
    seconds: float, groups: tuple[str, ...], environments: Path, pythons: dict[str, str], seed: int
) -> dict[str, Any]:
    """Answers of all auditors on all subjects of some groups; plain JSON."""
    rows = []
    for target in targets(environments):
        if target.group not in groups:
            continue
        answers = _apart(target, seconds, pythons, seed)
        rows.append({"group": target.group, "name": target.name, "is_broken": target.is_broken, "answers": answers})
        print(f"{target.name}: {answers.get(NAME, ['crashed'])[0]}, broken: {target.is_broken}", file=sys.stderr, flush=True)
    machine = f"2 cores, Python {platform.python_version()}, NumPy {np.__version__}"
    return {"seconds": seconds, "level": LEVEL, "seed": seed, "machine": machine, "rows": rows}


def _apart(target: Target, seconds: float, pythons: dict[str, str], seed: int) -> dict[str, Any]:
    """The answers on one subject, in a process of its own: a first call is one, and a crash ends nothing else."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        with threadpool_limits(1):
            sender.send({name: list(answer) for name, answer in audited(target, seconds, pythons, seed).items()})

    process = context.Process(target=work)
    process.start()
    sender.close()
    try:
        return dict(receiver.recv()) if receiver.poll(20 * seconds) else {}
    except EOFError:
        return {}
    finally:
        process.kill()
        process.join()


def render(result: dict[str, Any], versions: dict[str, str]) -> str:
    """Markdown: found of broken in each group, honest subjects that were blamed, and the median time."""
    names = {NAME: f"{NAME}, whole audit"}
    names |= {name: f"{words}*" for name, (words, _, _) in RECREATED.items()} | {RECORDER: "recorded noise calls*"}
    names |= {name: f"{TOOLS[name].package} {versions.get(name, '')}: {TOOLS[name].method}" for name in PUBLIC}
    groups = [group for group in (TEXTBOOK, EXHIBIT, REAL) if any(row["group"] == group for row in result["rows"])]
    lines = [
        f"Measured on {result['machine']}; {result['seconds']:g} s for each subject and auditor, at {1 - LEVEL:.0%} "
        "confidence.",
        "",
        "| auditor | " + " | ".join(f"{group}: found" for group in groups) + " | honest ones blamed | median s |",
        "|" + "---|" * (len(groups) + 3),
    ]
    for name, words in names.items():
        cells, blamed, times = [], [0, 0], []
        for group in groups:
            broken = [row["answers"].get(name) for row in result["rows"] if row["group"] == group and row["is_broken"]]
            taken = [answer for answer in broken if answer is not None]
            cells.append(f"{sum(said == FOUND for said, _ in taken)} of {len(broken)}")
            honest = [row["answers"].get(name) for row in result["rows"] if row["group"] == group and not row["is_broken"]]
            blamed[0] += sum(answer is not None and answer[0] == FOUND for answer in honest)
            blamed[1] += sum(answer is not None for answer in honest)
            times += [seconds for _, seconds in taken]
        if times:
            lines.append(f"| {words} | {' | '.join(cells)} | {blamed[0]} of {blamed[1]} | {np.median(times):.1f} |")
    missed = [row["name"] for row in result["rows"] if row["is_broken"] and row["answers"].get(NAME, [""])[0] != FOUND]
    others = [
        row["name"] for row in result["rows"]
        if row["is_broken"] and row["name"] in missed and any(said == FOUND for said, _ in row["answers"].values())
    ]  # fmt: skip
    lines += [
        "",
        f"Ours misses {', '.join(f'`{name}`' for name in missed) or 'none'}; "
        f"found by another auditor: {', '.join(f'`{name}`' for name in others) or 'none of these'}.",
        "",
        "\\* re-created from its paper in `benchmarks/detectors.py`: the code is not on the package index.",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="for each subject and auditor")
    parser.add_argument("--groups", nargs="+", default=[TEXTBOOK, REAL], help="which subjects")
    parser.add_argument(
        "--tools-python", metavar="PATH", default=sys.executable, help="an interpreter that has the public tools"
    )
    parser.add_argument("--environments", type=Path, default=Path("bandana_data/refutations/environments"), metavar="FOLDER",
                        help="where released code is installed")  # fmt: skip
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where every answer is written")
    parser.add_argument("--from-json", type=Path, metavar="FILE", help="show what an earlier run wrote, and run nothing")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="the file whose table is replaced")
    chosen = parser.parse_args(arguments)
    if chosen.from_json:
        result = json.loads(chosen.from_json.read_text(encoding="utf-8"))
    else:
        versions = {name: version for name, version in tools_of(chosen.tools_python).items() if name in PUBLIC}
        pythons = dict.fromkeys(versions, chosen.tools_python)
        result = measure(chosen.seconds, tuple(chosen.groups), chosen.environments, pythons, chosen.seed)
        result["versions"] = versions
    if chosen.json:
        chosen.json.write_text(json.dumps(result) + "\n", encoding="utf-8")
    shown = render(result, result["versions"])
    if chosen.markdown:
        write(chosen.markdown, shown, BEGIN, END)
    else:
        print(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
