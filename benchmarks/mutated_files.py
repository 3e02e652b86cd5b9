"""Files that Bandana reads, each changed at random: specs, tables, logs, tuned values, baselines and evidence."""

from __future__ import annotations

import io
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import taken_as_written as written

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
_SLOW = {"ablation-linear.yaml", "capri-and-gp-ucb.yaml", "capri.yaml", "gp-ucb-table-1.yaml", "renyi-linear.yaml"}
"""Their features or designs take most of a second by themselves."""
_SCALARS = [
    "9" * 5000, "-" + "9" * 400, "0x" + "f" * 5000, "1e" + "9" * 300, "1" + "0" * 19, "1" + "0" * 15, "-1", "0", "1",
    "2", "0.5", "1.0e300", "1.0e-300", "1e-5", "5.0e-324", "1.7976931348623157e308", ".inf", "-.inf", ".nan", "true",
    "false", "yes", "null", "~", "''", "[]", "{}", "[[]]", "[1, 2, 3]", "[0.1, 0.1]", "{a: 1}", "!!int 'abc'",
    "!!float x", "!!bool 3", "!!null 3", "!!timestamp 2001-99-99", "2001-99-99", "2001-12-14", "!!binary '###'",
    "!!python/object/apply:os.system [id]", "!own x", "!!set {a, b}", "!!omap [a: 1]", "*nobody", "&a [*a]", "&a 5",
    "12:30", "017", "0o17", "0b101", "1_000", "500.0", "'500'", "x" * 300, "x" * 100_000, "'a\\nb'", '"\\u0000"',
    '"\\ud800"', "\x00", "\x1b[31m", "é", "\U0001f600", "../../../etc/passwd", "/dev/zero", "[" * 3000 + "]" * 3000,
    "[" * 10_000, "{a: " * 500 + "1" + "}" * 500, ">", "|", "?", "- - - -", "%", "@", "`", "<<: {a: 1}", "printed",
    "tight", "joint", "local", "none", "1000000", "100000000", "10000000000",
]  # fmt: skip
_LAUGHS = "laughs: &l0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 10)
)
_MERGES = "m0: &m0 {a: 1}\n" + "".join(f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 9)}]}}\n" for i in range(1, 9))


@dataclass(frozen=True)
class DataFile:
    """A data file.

    Attributes:
      name: of the file.
      content: its bytes as they should be.
      read: reads it in a folder, and returns what the product took it for.
      differs: the first value that the product took for another than the bytes say, in words; None if there is none.
    """

    name: str
    content: bytes
    read: Callable[[Path], Any]
    differs: Callable[[bytes, Any], str | None]


def specs_read() -> list[Path]:
    """Files of the ready specs."""
    return [path for path in sorted(EXPERIMENTS.glob("*.yaml")) if path.name not in _SLOW]


@cache
def specs() -> tuple[str, ...]:
    """The ready specs, and one for each algorithm of the catalog."""
    from bandana.algorithms.catalog import names
    from bandana.flows.queries.catalog import starter

    ready = [path.read_text("utf-8") for path in specs_read()]
    return (*ready, *(starter(name) for name in names()))


@cache
def data_files() -> tuple[DataFile, ...]:
    """One file of each kind."""
    return _table(), _log("csv"), _log("parquet"), _tuned(), _baseline()


@cache
def evidence() -> bytes:
    """The evidence of an audit of an honest bandit, with scores at two budgets."""
    from bandana.audits.evidence import to_bytes
    from bandana.flows.cells.audits import audit_cell
    from bandana.flows.folder.store import Store
    from bandana.flows.plan.plan import cells_of
    from bandana.flows.spec.spec import parse_spec

    text = (
        "name: small\nseed: 7\nenvironment: {kind: bernoulli, means: [0.8, 0.4]}\nhorizon: 50\nreplications: 1\n"
        "algorithms:\n"
        "  - {algorithm: adar-ucb, calibrations: tight, privacy: {alpha: 2, epsilon: 1}}\n"
        "audit: {rounds: 8, replays: 1000, examples: 5}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        return to_bytes(audit_cell(cells_of(parse_spec(text, "small.yaml", Path(folder)))[0], Store(Path(folder))))


def load(kind: str) -> None:
    """Makes the files of a kind as they should be."""
    {"spec": specs, "data": data_files, "evidence": evidence}[kind]()


def mutated_spec(random: Random) -> str:
    """A spec that was changed in one to three places."""
    text = random.choice(specs())
    for _ in range(random.choice((1, 1, 2, 3))):
        text = random.choice(_SPEC_CHANGES)(text, random)
    return text


def mutated_data(random: Random, folder: Path) -> tuple[DataFile, bytes]:
    """A data file and its changed content."""
    case = random.choice(data_files())
    content = case.content
    for _ in range(random.choice((1, 1, 2, 3))):
        if case.name.endswith(".parquet") or random.random() < 0.3:
            content = _bytes_changed(content, random)
        else:
            content = _text_changed(content.decode("utf-8", "replace"), random).encode("utf-8", "replace")
    return case, content


def mutated_evidence(random: Random) -> bytes:
    """Evidence with changed bytes, or with another description or scores under a hash that is right."""
    return _bytes_changed(evidence(), random) if random.random() < 0.5 else _resealed(evidence(), random)


# --- specs -----------------------------------------------------------------------------------------------------------


def _replaced_value(text: str, random: Random) -> str:
    found = list(re.finditer(r"(?<=[:\[,{] )[^\s,\[\]{}:#]+|(?<=\[)[^\s,\[\]{}:#]+", text))
    if not found:
        return text
    chosen = random.choice(found)
    return text[: chosen.start()] + random.choice(_SCALARS) + text[chosen.end() :]


def _line_changed(text: str, random: Random) -> str:
    lines = text.splitlines(keepends=True) or ["\n"]
    i, j = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(6):
        case 0:
            lines.insert(i, lines[i])
        case 1:
            del lines[i]
        case 2:
            lines[i], lines[j] = lines[j], lines[i]
        case 3:
            lines[i] = " " * random.randrange(1, 5) + lines[i]
        case 4:
            lines.insert(i, f"{random.choice(_SCALARS)}: {random.choice(_SCALARS)}\n")
        case 5:
            lines[i] = re.sub(r":.*", lambda _: f": {random.choice(_SCALARS)}", lines[i], count=1)
    return "".join(lines)


_CHARACTERS: list[str] = ["", *"\t\n:{}[]&*!|>'\"%@`#-0 ", "\x00", "\ufeff", "é"]


def _character_changed(text: str, random: Random) -> str:
    i = random.randrange(len(text) + 1)
    return text[:i] + random.choice(_CHARACTERS) + text[i + random.randrange(3) :]


_SPEC_CHANGES: list[Callable[[str, Random], str]] = [
    _replaced_value, _replaced_value, _replaced_value, _line_changed, _line_changed, _character_changed,
    lambda text, random: text[: random.randrange(len(text) + 1)],
    lambda text, random: random.choice((_LAUGHS, _MERGES)) + text,
]  # fmt: skip


# --- data files ------------------------------------------------------------------------------------------------------


def _table() -> DataFile:
    from bandana.flows.problems.finite_arms import TableSpec, parse_table

    content = "letter,call,visit\n" + "".join(f"{i % 2},{i % 3 / 2},{i / 50}\n" for i in range(50))
    item = TableSpec(kind="table", path=Path("table.csv"))

    def read(folder: Path) -> Any:
        return parse_table(item, (folder / "table.csv").read_bytes()).rewards

    return DataFile("table.csv", content.encode(), read, written.table_differs)


def _log(kind: str) -> DataFile:
    import pandas as pd

    from bandana.flows.problems.logged_data import LoggedSpec, parse_log

    name = f"log.{kind}"
    columns = {
        "age": [i / 40 for i in range(40)],
        "action": ["a", "b"] * 20,
        "propensity": [0.5] * 40,
        "reward": [0, 1, 1, 0] * 10,
    }
    frame, buffer = pd.DataFrame(columns), io.BytesIO()
    frame.to_csv(buffer, index=False) if kind == "csv" else frame.to_parquet(buffer)
    item = LoggedSpec(kind="logged", path=Path(name), actions=["a", "b"], contexts=["age"])

    def read(folder: Path) -> Any:
        log = parse_log(item, (folder / name).read_bytes())
        actions = [item.actions[action] for action in log.actions]
        return {"age": log.contexts[:, 0], "action": actions, "propensity": log.propensities, "reward": log.rewards}

    # A Parquet file is binary, and has no second reading.
    return DataFile(name, buffer.getvalue(), read, written.columns_differ if kind == "csv" else lambda *_: None)


def _tuned() -> DataFile:
    from bandana.flows.plan.plan import cells_of
    from bandana.flows.spec.spec import load_spec, parse_spec

    text = (EXPERIMENTS / "lsvi-ucb.yaml").read_text("utf-8")
    spec = load_spec(EXPERIMENTS / "lsvi-ucb.yaml")
    assert spec.tuning is not None
    name, tuned = spec.place_of_tuned.name, spec.tuning.parameter
    content = (EXPERIMENTS / name).read_bytes()

    def read(folder: Path) -> Any:
        cells = cells_of(parse_spec(text, "spec.yaml", folder))
        return {"chosen": {cell.name: cell.settings.parameters[tuned] for cell in cells}}

    return DataFile(name, content, read, written.chosen_differ)


def _baseline() -> DataFile:
    from bandana.flows.results import baseline

    estimate = baseline.Estimate.of("final regret", 3.5, 0.5, 10)
    cell = baseline.CellFacts(
        label="ucb", regret=baseline.Regret(setting="0" * 32, replications=11, final=estimate), audit=None
    )
    found = baseline.Baseline(schema="bandana/baseline/1", suite="small", code="0" * 64, spec="name: small", cells=[cell])
    content = json.dumps(found.model_dump(mode="json", by_alias=True), indent=1).encode()

    def read(folder: Path) -> Any:
        known = baseline.read(folder / "baseline.json")
        return None if known is None else known.model_dump(mode="json", by_alias=True)

    return DataFile("baseline.json", content, read, written.json_differs)


_CELLS = [
    *(scalar for scalar in _SCALARS if len(scalar) < 400),
    "1e400",
    "nan",
    "inf",
    '"',
    '"a,b"',
    "a" * 200_000,
    ",,,",
    "\r",
    "1,5",
    "12%",
    "$0.12",
    "infinity",
    "１２",
]


def _text_changed(text: str, random: Random) -> str:
    if random.random() < 0.4:
        found = list(re.finditer(r"[^,\n\s:\"{}\[\]]+", text))
        if found:
            chosen = random.choice(found)
            return text[: chosen.start()] + random.choice(_CELLS) + text[chosen.end() :]
    return random.choice((_line_changed, _character_changed))(text, random)


def _bytes_changed(content: bytes, random: Random) -> bytes:
    changed, i = bytearray(content), random.randrange(len(content) + 1)
    match random.randrange(5):
        case 0 | 1 if i < len(changed):
            changed[i] ^= 1 << random.randrange(8)
        case 2:
            del changed[i:]
        case 3:
            changed[i:i] = random.randbytes(random.randrange(1, 40))
        case _:
            del changed[i : i + random.randrange(1, 200)]
    return bytes(changed)


# --- evidence --------------------------------------------------------------------------------------------------------

_LEAVES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 0.5, 1e300, 1e-300, -1e300, 10**19, 10**400, "", "inf", "nan", "-inf", "x", "1",
    "x" * 100_000, [], {}, [[]], [None], {"a": 1}, "PASS", "FAIL", "renyi(alpha=2, epsilon=1)", "gdp(mu=1e300)",
    [1] * 1000,
]  # fmt: skip


def _resealed(content: bytes, random: Random) -> bytes:
    import numpy as np

    from bandana.audits.evidence import seal

    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    nan, inf = (np.full(10, value, np.float32) for value in (np.nan, np.inf))
    description = json.loads(bytes(arrays.pop("description")).decode())
    for _ in range(random.choice((1, 1, 2))):
        if arrays and random.random() < 0.2:
            name = random.choice(sorted(arrays))
            scores = arrays.pop(name)
            changes = (None, scores[:0], scores[:1], nan, scores.astype(np.float64), inf, scores[None], 2 * scores)
            if (new := random.choice(changes)) is not None:
                arrays[name] = new
        else:
            _change_leaf(description, random)
    return seal(description, arrays)


def _change_leaf(tree: Any, random: Random) -> None:
    """Changes one value, or removes one, at a random depth."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not keys:
            return
        key = random.choice(keys)
        if not isinstance(tree[key], dict | list) or not tree[key] or random.random() < 0.1:
            if random.random() < 0.2:
                del tree[key]
            else:
                tree[key] = random.choice(_LEAVES)
            return
        tree = tree[key]
