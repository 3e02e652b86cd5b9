"""A user's own algorithm as an entry of a spec: what is loaded, what is refused and where, and what its key depends on."""

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from jsonschema import Draft202012Validator
from small_spec import SMALL, SMALL_LINEAR, SMALL_SPHERE
from typer.testing import CliRunner

from bandana.flows.cells.audits import audit_cell, audit_key
from bandana.flows.cells.play import benchmark_block
from bandana.flows.cli import app
from bandana.flows.folder.store import Store
from bandana.flows.own import trial as own_trial
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.plan.roles import Role
from bandana.flows.queries.explain import explain
from bandana.flows.results import report_document
from bandana.flows.spec.schema import json_schema
from bandana.flows.spec.spec import load_spec, parse_spec, standing_alone
from bandana.flows.texts.mistakes import SpecError

EXAMPLES = Path(__file__).parents[3] / "examples"
CLAIM = "gdp(mu={mu}, relation=reward)"
ITEM = {"file": "mine.py:Follow", "claim": CLAIM, "parameters": {"mu": 1}}
MINE = """\
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import half
from bandana.privacy_core import Gaussian, Interval, PhaseSum, Relation


class Released(NamedTuple):
    total: np.ndarray
    clock: np.ndarray


@dataclass(frozen=True)
class Follow:
    n_actions: int
    reward_range: Interval
    mu: float = 1.0
    context_dimension: int | None = None
    episode_length: int | None = None
    n_states: int | None = None

    @property
    def sums(self):
        width = self.reward_range.width * (self.episode_length or 1)
        relation = Relation.REPLACE_REWARD if self.episode_length is None else Relation.REPLACE_TRAJECTORY
        return PhaseSum(Gaussian(width, 1 / self.mu, relation))

    def init(self, n_reps):
        return self.sums.init(n_reps), Released(np.zeros(n_reps), np.zeros(n_reps, dtype=int))

    def act(self, released, context, step):
        liked = released.total > half.HALF * released.clock
        last = np.full(len(liked), self.n_actions - 1)
        return np.where(liked, 0, released.clock % self.n_actions if context is None else last)

    def hold(self, released, actions):
        return np.ones(len(actions), dtype=int)

    def absorb(self, sensitive, released, record, ledger):
        phase = self.sums.add(sensitive, record.rewards.sum(axis=1), record.n_records)
        phase, noisy, _ = self.sums.close(phase, ledger)
        return phase, Released(released.total + noisy, released.clock + record.n_records)


def refuses(n_actions):
    return 1 / 0


no_algorithm = 7
broken = Follow(5, Interval(0.0, 1.0))
"""
EPISODES = """\
name: episodes
seed: 7
environment: {kind: patients}
horizon: 60
replications: 2
algorithms: [{algorithm: ucrl-vtr}]
audit: {rounds: 8, replays: 2000, examples: 5}
"""
KERNEL = """\
name: kernel
seed: 7
environment: {kind: rkhs-gap}
horizon: 32
replications: 2
algorithms: [{algorithm: gp-ucb}]
audit: {rounds: 8, replays: 2000, examples: 5}
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "half.py").write_text("HALF = 0.5\n")
    return tmp_path


def spec_of(folder, *items, text=SMALL, **changes):
    tree = {**yaml.safe_load(text), "algorithms": list(items or [ITEM]), **changes}
    return parse_spec(yaml.safe_dump(tree, sort_keys=False), "spec.yaml", folder)


def line_of(item, field):
    lines = yaml.safe_dump({**yaml.safe_load(SMALL), "algorithms": [item]}, sort_keys=False).splitlines()
    return next(i for i, line in enumerate(lines, start=1) if line.lstrip("- ").startswith(f"{field}:"))


def test_parameters_are_a_grid_and_the_claim_may_name_them(mine):
    item = ITEM | {"parameters": {"mu": [0.1, 1]}}
    spec = spec_of(mine, item)
    cells = cells_of(spec)
    assert [cell.name for cell in cells] == ["mine.py:Follow mu=0.1", "mine.py:Follow mu=1"]
    assert [cell.claim().gaussian.mu for cell in cells] == [0.1, 1.0]
    assert [cell.algorithm().mu for cell in cells] == [0.1, 1.0]
    assert [cell.algorithm().n_actions for cell in cells] == [2, 2], "it is given what the environment says"
    roles = [cell.role for cell in Plan.of(spec).played]
    assert [roles.count(role) for role in Role] == [2, 2, 2], "its twins, uniform play and greedy stand beside it"


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("gdp(mu=0.5, relation=reward)", "0.5-GDP allows mu = 0.5, and the ledger of 40 rounds composes to mu = 1"),
        ("gdp(mu=1, relation=reward)", None),
        ("rdp(alpha=2, epsilon=0.9, relation=reward)", "composes to .* = 1"),
        ("zcdp(rho=0.5, relation=reward)", None),
        ("approx(epsilon=1, delta=1e-5, relation=reward)", r"\(1, 1e-05\)-DP allows mu = 0.268.*composes to mu = 1"),
    ],
)
def test_a_claim_that_its_ledger_exceeds_is_refused_before_anything_runs(mine, claim, words):
    """Noise of multiplier 1 on each round: mu = 1, a divergence of 1 at order 2, rho = 1/2; 0.268-GDP is (1, 1e-5)-DP."""
    plan = Plan.of(spec_of(mine, ITEM | {"claim": claim}, horizon=40))
    if words is None:
        assert explain(plan, ["benchmark"], None)["cells"]
        return
    where = r"^spec\.yaml:\d+: algorithms\[0\]: mine\.py:Follow: claim: "
    with pytest.raises(SpecError, match=rf"{where}.*{words}: claim that, or add noise"):
        explain(plan, ["benchmark"], None)


def test_reports_know_its_level(mine):
    private, bare, pure = cells_of(
        spec_of(
            mine, ITEM | {"parameters": {"mu": 0.5}}, {"file": "mine.py:Follow", "label": "bare"},
            ITEM | {"label": "pure", "claim": "pure(epsilon=2, relation=reward)"},
        )
    )  # fmt: skip
    stated = private.claim()
    assert report_document._epsilon(stated, 1e-5) == pytest.approx(stated.gaussian.epsilon(1e-5))
    assert (bare.is_private, report_document._epsilon(pure.claim(), 1e-5)) == (False, 2.0)


def test_it_is_played_and_audited_like_an_entry_of_the_catalog(mine, tmp_path):
    (cell,) = cells_of(spec_of(mine, ITEM | {"label": "follow"}))
    store = Store(tmp_path / "results")
    arrays, described = benchmark_block(cell.blocks()[0], store)
    assert arrays["regret"].shape[0] == 4
    assert described["mu"] == pytest.approx(1.0)
    twin = next(each for each in Plan.of(cell.spec).played if each.role is Role.TWIN)
    assert benchmark_block(twin.blocks()[0], store)[1]["mu"] is None
    outcome = audit_cell(cell, store)
    assert outcome.verdict.value != "FAIL"
    assert outcome.numbers[outcome.main].accounted == pytest.approx(1.0)
    assert audit_cell(cell, store) is not outcome, "the second one is read from the store"


@pytest.mark.parametrize(
    "text", [SMALL_LINEAR, SMALL_SPHERE, KERNEL, EPISODES], ids=["linear", "contextual", "kernel", "episodes"]
)
def test_it_plays_in_every_protocol(mine, tmp_path, text):
    claim = CLAIM.replace("reward", "trajectory") if text is EPISODES else CLAIM
    (cell,) = cells_of(spec_of(mine, ITEM | {"claim": claim}, text=text))
    arrays, described = benchmark_block(cell.blocks()[0], Store(tmp_path))
    assert np.isfinite(arrays["regret"]).all()
    assert described["mu"] == pytest.approx(1.0)


def test_without_a_claim_nothing_is_accounted_or_audited(mine, tmp_path):
    (cell,) = cells_of(spec_of(mine, {"file": "mine.py:Follow"}))
    assert not cell.is_private
    assert benchmark_block(cell.blocks()[0], Store(tmp_path))[1]["mu"] is None


def test_only_the_cells_of_an_edited_file_have_new_keys(mine):
    other = {"algorithm": "adar-ucb", "calibrations": "tight", "privacy": {"alpha": 2, "epsilon": 1}}

    def keys():
        return [(cell.key, cell.blocks()[0].key, audit_key(cell)) for cell in cells_of(spec_of(mine, ITEM, other))]

    own, catalog = keys()
    (mine / "mine.py").write_text("# a comment\n" + MINE)
    (mine / "unrelated.py").write_text("x = 1\n")
    assert keys() == [own, catalog]
    for name, text in (
        ("half.py", "HALF = 0.25\n"),
        ("mine.py", MINE.replace("released.clock %", "(released.clock + 1) %")),
    ):
        (mine / name).write_text(text)
        edited, same = keys()
        assert same == catalog
        assert not set(edited) & set(own)
        assert [key.partition("-")[0] for key in edited] == [key.partition("-")[0] for key in own], "the same question"
        own = edited


def test_the_edited_file_is_what_runs_and_modules_of_one_name_do_not_meet(mine, tmp_path):
    follow = cells_of(spec_of(mine))[0].algorithm()
    other = tmp_path / "other"
    shutil.copytree(mine, other, ignore=shutil.ignore_patterns("other"))
    (other / "half.py").write_text("HALF = -1.0\n")
    assert cells_of(spec_of(other))[0].algorithm().act.__globals__["half"].HALF == -1.0
    assert follow.act.__globals__["half"].HALF == 0.5
    (mine / "half.py").write_text("HALF = 0.75\n")
    assert cells_of(spec_of(mine))[0].algorithm().act.__globals__["half"].HALF == 0.75


def test_the_folder_is_no_part_of_a_key(mine, tmp_path):
    first = cells_of(spec_of(mine))[0].blocks()[0].key
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("mine.py", "half.py"):
        shutil.move(mine / name, moved / name)
    assert cells_of(spec_of(moved))[0].blocks()[0].key == first


def test_a_worker_loads_it_from_its_file(mine):
    cell = cells_of(spec_of(mine))[0]
    assert b"Follow(" not in pickle.dumps(cell)
    again = pickle.loads(pickle.dumps(cell))
    assert again.algorithm() == cell.algorithm()
    assert again.blocks()[0].key == cell.blocks()[0].key
    assert again.claim() == cell.claim()


@pytest.mark.parametrize(
    ("item", "field", "message"),
    [
        ({"file": "absent.py:Follow"}, "file", r"algorithms\[0\].file: .*absent.py: cannot be read: No such file"),
        ({"file": "mine.py"}, "file", "must be FILE.py:NAME"),
        ({"file": "mine.py:absent"}, "file", "mine.py defines no 'absent'; it defines Released, Follow, refuses"),
        ({"file": "mine.py:no_algorithm"}, "file", "is no algorithm"),
        ({"file": "syntax.py:x"}, "file", "syntax.py:2: "),
        ({"file": "raises.py:x"}, "file", "raises.py:1: ZeroDivisionError: division by zero"),
        ({"file": "exits.py:x"}, "file", "exits.py:2: SystemExit: 0"),
        ({"file": "random_one.py:x"}, "file", "random_one.py:1: import random: it draws its own randomness"),
        ({"file": "late.py:x"}, "file", "late.py:2: imports the local module half inside a function"),
        (ITEM | {"claim": "gdp(mu=1)"}, "claim", r"algorithms\[0\].claim: .*does not say which data sets are neighbors"),
        (ITEM | {"claim": "gdp(mu={nu}, relation=reward)"}, "claim", "is none of the parameters"),
        (ITEM | {"parameters": {"mu": 1, "nu": 2}}, "nu", "nu: no parameter of mine.py:Follow; it takes n_actions"),
        (ITEM | {"model": "central"}, "model", "model: unknown field"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_the_line_of_the_spec(mine, item, field, message):
    for name, text in (
        ("syntax", "x = 1\ndef f(:\n"), ("raises", "x = 1 / 0\n"), ("exits", "import sys\nsys.exit(0)\n"),
        ("random_one", "import random\n\n\ndef x():\n    pass\n"), ("late", "def x():\n    import half\n"),
    ):  # fmt: skip
        (mine / f"{name}.py").write_text(text)
    with pytest.raises(SpecError, match=message) as found:
        spec_of(mine, item)
    assert str(found.value).startswith(f"spec.yaml:{line_of(item, field)}: ")
    assert str(found.value).count("\n") == 0


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"file": "mine.py:refuses"}, "mine.py:48: ZeroDivisionError"),
        ({"file": "mine.py:broken"}, "it has 5 actions, the environment 2: name its class"),
        (ITEM | {"claim": "gdp(mu=1, relation=record)"}, "claim of mine.py:Follow on bernoulli: .*give both one relation"),
    ],
)
def test_what_breaks_the_protocol_is_refused_before_any_work(mine, item, message):
    spec = spec_of(mine, item)
    with pytest.raises(SpecError, match=message) as found:
        cells_of(spec)
    assert str(found.value).startswith(f"spec.yaml:{line_of(item, 'file')}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import os\nos._exit(0)\n", "quits.py, while it was loaded, ended its process with exit code 0"),
        ("import os\nos.abort()\n", r"quits.py, while it was loaded, crashed its process \(SIGABRT\)"),
        ("while True:\n    pass\n", "quits.py, while it was loaded, did not end within 0.5 s"),
        (MINE.replace("return phase, Released", "import os; os._exit(0)\n        return phase, Released"),
         "quits.py:Follow, while it was checked, ended its process with exit code 0"),
    ],
    ids=["exit", "crash", "hang", "exit in a method"],
)  # fmt: skip
def test_code_that_ends_its_process_is_one_line(mine, monkeypatch, text, message):
    monkeypatch.setattr(own_trial.threading, "active_count", lambda: 1)
    if "while True" in text:
        monkeypatch.setattr(own_trial, "SECONDS", 0.5)
    (mine / "quits.py").write_text(text)
    with pytest.raises(SpecError, match=message) as found:
        cells_of(spec_of(mine, {"file": "quits.py:Follow"}))
    assert "\n" not in str(found.value)


def test_a_spec_that_stands_alone_finds_the_file_from_anywhere(mine, tmp_path, monkeypatch):
    text = yaml.safe_dump(yaml.safe_load(SMALL) | {"algorithms": [ITEM]})
    spec = parse_spec(text, "spec.yaml", mine)
    alone = standing_alone(spec, text)
    monkeypatch.chdir("/")
    (cell,) = cells_of(parse_spec(alone, "spec.yaml", Path("/")))
    assert cell.blocks()[0].key == cells_of(spec)[0].blocks()[0].key


def test_editors_know_its_fields():
    validator = Draft202012Validator(json_schema())
    tree = yaml.safe_load(SMALL) | {"algorithms": [ITEM, ITEM | {"parameters": {"mu": [0.1, 1]}}]}
    assert not list(validator.iter_errors(tree))
    assert list(validator.iter_errors(tree | {"algorithms": [ITEM | {"clam": "x"}]}))


def test_the_example_is_checked_and_its_two_levels_are_listed():
    done = CliRunner().invoke(app, ["check", str(EXAMPLES / "own_benchmark.yaml")])
    assert done.exit_code == 0, done.output
    assert "episodic-greedy mu=0.3" in done.output
    cells = cells_of(load_spec(EXAMPLES / "own_benchmark.yaml"))
    assert [cell.name for cell in cells] == ["episodic-greedy mu=0.3", "episodic-greedy mu=1", "adar-ucb tight eps=1"]
