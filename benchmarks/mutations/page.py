"""The page that says what was caught, made from the stored findings and the reasons given for survivors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "benchmarks" / "data" / "mutations.json"
REASONS = ROOT / "benchmarks" / "data" / "mutation_survivors.json"
PAGE = ROOT / "docs" / "mutations.md"


class Planted(NamedTuple):
    """One mutation and what became of it.

    Attributes:
      kind: of its line.
      name: of the mutation.
      operator: what was done.
      test: what `make test` said: caught or survived.
      test_all: what `make test-all` said; empty if that was not measured.
      by: the test that caught it.
      how: "failed", "endless", or why nothing ran.
    """

    kind: str
    name: str
    operator: str
    test: str
    test_all: str
    by: str
    how: str


class Reason(NamedTuple):
    """Why a survivor may stay.

    Attributes:
      mutation: its name.
      is_equivalent: whether no behavior changes, so that no test could catch it.
      why: in a sentence.
    """

    mutation: str
    is_equivalent: bool
    why: str


class Score(NamedTuple):
    """Counts of some mutations; those that change no behavior are left out of `changing` and of what is caught."""

    planted: int
    equivalent: int
    test: int
    test_all: int | None

    @property
    def changing(self) -> int:
        return self.planted - self.equivalent


def read_reasons(path: Path = REASONS) -> dict[str, Reason]:
    """Reasons by mutation."""
    if not path.exists():
        return {}
    return {item["mutation"]: Reason(**item) for item in json.loads(path.read_text(encoding="utf-8"))}


def score(planted: Sequence[Planted], reasons: Mapping[str, Reason]) -> Score:
    """Counts; a mutation that a test caught is not equivalent, whatever its reason says."""
    caught = [item for item in planted if item.test == "caught"]
    later = [item for item in planted if item.test != "caught" and item.test_all == "caught"]
    left = [item for item in planted if "caught" not in (item.test, item.test_all)]
    same = sum(item.name in reasons and reasons[item.name].is_equivalent for item in left)
    is_measured = all(item.test == "caught" or item.test_all for item in planted)
    return Score(len(planted), same, len(caught), len(caught) + len(later) if is_measured else None)


def _share(part: int | None, whole: int) -> str:
    return "not measured" if part is None else "-" if not whole else f"{part} of {whole} ({100 * part / whole:.1f} %)"


def markdown(tree: Mapping[str, Any], reasons: Mapping[str, Reason]) -> str:
    """The page.

    Args:
      tree: what `benchmarks/data/mutations.json` holds.
      reasons: of survivors, by mutation.
    """
    planted = [Planted(**item) for item in tree["mutations"]]
    kinds = list(dict.fromkeys(item.kind for item in planted))
    whole = score(planted, reasons)
    rows = []
    for kind in kinds:
        part = score([item for item in planted if item.kind == kind], reasons)
        later = "not measured" if part.test_all is None else str(part.test_all)
        rows.append(f"| {kind} | {part.planted} | {part.equivalent} | {part.changing} | {part.test} | {later} |")
    later = "not measured" if whole.test_all is None else str(whole.test_all)
    rows.append(f"| **all** | {whole.planted} | {whole.equivalent} | {whole.changing} | {whole.test} | {later} |")
    left = [item for item in planted if item.test != "caught"]
    text = _TEXT.format(
        n=whole.planted, seed=tree["seed"], next_seed=tree["seed"] + 1, date=tree["date"], machine=tree["machine"],
        minutes=tree["processor_minutes"],
        test=_share(whole.test, whole.changing), test_all=_share(whole.test_all, whole.changing), rows="\n".join(rows),
        at_first=_share(tree["caught_at_first"], whole.changing),
        endless=sum(item.how == "endless" for item in planted),
    )  # fmt: skip
    return text + ("\n".join(_survivor(item, reasons.get(item.name)) for item in left) if left else "None.\n")


def _survivor(item: Planted, reason: Reason | None) -> str:
    path, _, change = item.name.partition("::")
    function, _, lines = change.partition(": ")
    before, _, after = lines.partition(" => ")
    why = reason.why if reason else "No reason is known: a test is missing."
    about = [item.kind, item.operator]
    about += ["changes no behavior"] if reason and reason.is_equivalent else []
    about += ["caught by `make test-all`"] if item.test_all == "caught" else []
    where = f"`{path}`, `{function}`" if function else f"`{path}`"
    return f"{where} ({'; '.join(about)})\n\n```diff\n- {before}\n+ {after}\n```\n\n{why}\n"


_TEXT = """# What the tests catch

A test suite is worth what it catches. `python -m benchmarks.mutations --seed {seed}` plants {n} one-line mistakes, one at
a time, in lines that carry privacy or correctness, and runs the tests that reach the line.

| tests | mutations caught, of those that change behavior |
|---|---|
| `make test` | {test} |
| `make test-all` | {test_all} |
| `make test`, before survivors of this sample got tests | {at_first} |

Measured on {date} on {machine}, in {minutes} processor minutes. What survived got a test, unless a reason
is given below, and that test was seen to fail with the mistake. So the last row is what to expect of mistakes that were
never tried; its goal is 95 %. A new sample, `--seed {next_seed}`, measures it anew.

## How it is measured

- **Which mistakes.** Fourteen operators on the syntax tree: a comparison or an arithmetic sign turned, off by one, a power,
  a root, a clip, a keyword, a sign or a check dropped, `min` for `max`, `and` for `or`, a condition negated, a constant
  changed, arguments swapped, a slice turned. Docstrings, messages, annotations and functions that only write text are left
  alone.
- **Where.** A table of rules (`benchmarks/mutations/kinds.py`) sorts lines by file, function and words. Of each kind the
  candidates with the smallest hash of seed and text are planted, with limits for one function, file and operator.
- **Which tests.** A recording in an instrumented copy says which tests reach each statement, also in processes that tests
  start, through caches and through shared fixtures. Constants are seen where functions name them. All tests that import the
  file run for other statements at import, and for compiled functions whose callers cannot be told. Tests that fail without
  a mutation count for nothing.
- **What counts as caught.** A test fails, or outlasts its limit of twenty seconds and eight times its usual processor time
  ({endless} of those below did so). Each mutation runs in a copy of the checkout, and compiled functions are compiled anew.

A sample has an error: of 140 mutations, a suite that catches 95 % of all mutations catches between 91 % and 98 % in nineteen
samples of twenty.

## By kind

| lines that carry | planted | change nothing | change behavior | `make test` | `make test-all` |
|---|---:|---:|---:|---:|---:|
{rows}

## Survivors of `make test`, and why

"""
