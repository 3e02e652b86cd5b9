"""Audits run again from their seeds: searches and planted faults always, blocks of replays drawn with `--replay`."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from forger import remember
from scores_alone import assert_partly_compared, left_out
from typer.testing import CliRunner
from whole_catalog import audited

from bandana.audits.evidence import recompute, write
from bandana.audits.neighbors.neighbor import Given
from bandana.audits.outcome import Effort, Verdict
from bandana.audits.subjects import subjects
from bandana.flows.annex import DEVICE
from bandana.flows.annexes.compliance.evidence.lines import Verification
from bandana.flows.annexes.compliance.evidence.recompute import verify
from bandana.flows.annexes.compliance.evidence.replayed import Replay, drawn, n_differing, probability_caught, units_of
from bandana.flows.annexes.compliance.evidence.standalone import exit_code
from bandana.flows.annexes.compliance.replay import _is_same_machine, replayed
from bandana.flows.annexes.compliance.verify import Request, check
from bandana.flows.cells.audits import audit_cell
from bandana.flows.cells.replays import audited_subject
from bandana.flows.cli import app
from bandana.flows.commands.options import DIFFERS, FAILURE
from bandana.flows.folder.store import Store
from bandana.flows.keys import identity
from bandana.flows.keys.provenance import Making, about_audits
from bandana.flows.plan.made_by import subject_roots
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.mistakes import SpecError

EXAMPLES = Path(__file__).parents[4] / "examples"
LABEL = "block phases"
EFFORT = Effort(replays=8_400, confidence=0.95, delta=1e-5, examples=10, seed=3)
"""Two blocks a side of the least favorable pair, one of the others."""


@pytest.fixture(scope="module", autouse=True)
def _remembering():
    """What the first test of this module finds by running it again, the others find there."""
    with pytest.MonkeyPatch.context() as patch:
        remember(patch)
        yield


@pytest.fixture(scope="module")
def honest():
    outcome = audited(LABEL, EFFORT)
    assert outcome.verdict is Verdict.PASS, outcome.reasons
    return outcome


@pytest.fixture
def file(honest, tmp_path):
    write(tmp_path / "e.npz", honest)
    return tmp_path / "e.npz"


def with_scores(outcome, scores):
    """The outcome with other scores, and every bound taken anew from them: a forger who leaves no loose end."""
    bounds = [replace(bound, lower=recompute(bound, scores[bound.scores])) for bound in outcome.bounds]
    return replace(outcome, scores=scores, bounds=tuple(bounds))


def made_up(outcome, names, side=0):
    """Scores of the same law, drawn by the forger's own generator: no bound shows that they are none of the algorithm's."""
    rng = np.random.default_rng(8)
    scores = dict(outcome.scores)
    for name in names:
        pair = list(scores[name])
        pair[side] = rng.permutation(pair[side]) + np.float64(np.float32(0.01))
        scores[name] = tuple(np.float32(each).astype(float) for each in pair)
    return with_scores(outcome, scores)


def _named(found):
    return _differing(found.lines)


def _differing(lines):
    return [line.what for line in lines if line.is_ok is False]


@pytest.fixture(scope="module")
def subject(honest):
    """What was audited, with the words that the evidence says of it."""
    about = partial(about_audits, made=identity.made_by(subject_roots(LABEL)))
    return audited_subject(subjects()[LABEL](), EFFORT, about)


def _again(outcome, subject, kind):
    """Lines of the units of one kind, the first four of them, run again."""
    units = [unit for unit in units_of(outcome) if unit.kind == kind][:4]
    return _differing(Replay(outcome, subject, is_same_machine=True).lines(units))


def _first(sides, n):
    return tuple(side[:n] for side in sides)


N_BLOCKS = 2 * (1 + 1 + 2)
"""Sides, and blocks of each pair."""


def test_every_unit_of_an_honest_audit_comes_out_the_same(honest):
    found = replayed([honest], "100%")
    assert not _named(found), _named(found)
    assert not [line.what for line in found.lines if line.is_ok is None]
    assert found.n_drawn == found.n_units == N_BLOCKS
    whats = " ".join(line.what for line in found.lines)
    for words in ("pair 2, neighbor, block 1, transcript", "pair 0, actions, data", "planted fault first-release-exact",
                  "searches, counterexample", "ledger", "code", "request", "subject", "about"):  # fmt: skip
        assert words in whats
    assert found.words == f"replayed  all {N_BLOCKS} blocks: no made-up scores are left"


def test_searches_and_all_planted_faults_are_run_again_where_no_block_is(honest):
    found = replayed([honest])
    assert not _named(found), _named(found)
    assert (found.n_drawn, found.n_units, found.words) == (0, N_BLOCKS, "")
    whats = [line.what for line in found.lines]
    faults = [what for what in whats if what.startswith("replayed: planted fault ")]
    assert faults == [f"replayed: planted fault {control.name}" for control in honest.controls]
    assert {f"replayed: searches, {what}" for what in ("counterexample", "noise finding", "coverage")} <= {*whats}
    assert not [what for what in whats if "block " in what]


def test_made_up_scores_pass_all_but_the_replay_of_their_blocks(honest, file):
    forged = made_up(honest, ["transcript0", "transcript1", "transcript2"])
    write(file, forged)
    assert not verify(file).is_refused
    assert not _named(replayed([forged])), "nothing but a replay of its blocks can see it"
    found = replayed([forged], "100%")
    assert len([what for what in _named(found) if "data, block" in what]) == N_BLOCKS // 2
    assert not [what for what in _named(found) if "neighbor, block" in what]


def test_scores_learned_from_actions_are_seen_where_a_whole_pair_was_played_again(honest):
    assert _named(replayed([made_up(honest, ["actions1"])], "100%")) == ["replayed: pair 1, actions, data"]


@pytest.mark.parametrize(
    ("kind", "change", "what"),
    [
        ("", lambda o: {"controls": (o.controls[0], *o.controls[2:])}, "planted faults"),
        ("planted fault", lambda o: {"controls": (replace(o.controls[0], measured=9.0), *o.controls[1:])}, "planted fault "),
        ("", lambda o: {"claim": replace(o.claim, theorem="Theorem 1")}, "claim"),
        ("searches", lambda o: {"coverage": replace(o.coverage, cases=10**9)}, "searches, coverage"),
        ("searches", lambda o: {"counterexample": {"summary": "a story", "lines": []}}, "searches, counterexample"),
        ("searches", lambda o: {"noise_finding": "a story"}, "searches, noise finding"),
        ("", lambda o: {"events": ((o.events[0][0], 2),)}, "ledger"),
        ("", lambda o: {"bounds": (replace(o.bounds[0], neighbor=Given("record 7")), *o.bounds[1:])}, "pairs"),
        ("", lambda o: {"bounds": (replace(o.bounds[0], attack="a guess"), *o.bounds[1:])}, "attacks"),
        ("", lambda o: {"caveats": ("a caveat",)}, "caveats"),
        ("", lambda o: {"power": o.power / 2}, "power"),
        ("", lambda o: {"subject": {**o.subject, "source": "another paper"}}, "subject: source"),
        ("", lambda o: {"about": replace(o.about, table="a trial")}, "about: table"),
        ("", lambda o: {"scores": {**o.scores, "transcript2": _first(o.scores["transcript2"], 2000)}}, "replays of pairs"),
        ("block", lambda o: {"effort": replace(o.effort, seed=4)}, "pair 0, data, block 0, transcript"),
    ],
)
def test_what_no_score_shows_is_run_again_too(honest, subject, kind, change, what):
    assert _again(honest, subject, kind) == []
    found = _again(replace(honest, **change(honest)), subject, kind)
    assert any(name.startswith(f"replayed: {what}") for name in found), found


def test_blocks_are_drawn_evenly_and_without_repeats(honest):
    units = [unit for unit in units_of(honest) if unit.is_drawn]
    assert len(units) == N_BLOCKS
    counts = dict.fromkeys(map(str, units), 0)
    for key in range(400):
        chosen = drawn(units, 4, np.random.SeedSequence(key))
        assert len({str(unit) for unit in chosen}) == 4
        for unit in chosen:
            counts[str(unit)] += 1
    mean = 1600 / len(units)
    # Each count is binomial: six deviations off happens with probability below 1e-7 for any of them.
    assert max(abs(count - mean) for count in counts.values()) < 6 * mean**0.5


def test_the_probability_of_being_caught_is_that_of_independent_draws():
    assert probability_caught(0.5, 3) == pytest.approx(0.875)
    assert probability_caught(0.01, 100) == pytest.approx(1 - 0.99**100)
    assert probability_caught(1.0, 1) == 1.0
    units = list(range(20))
    missed = sum(not set(range(5)) & set(drawn(units, 4, np.random.SeedSequence(key))) for key in range(2000))
    # Without repeats a quarter of made-up units is missed less often than (1 - 1/4)^4; chance: below 1e-9 at 6 deviations.
    assert missed / 2000 < 0.75**4 + 1e-9


def test_scores_agree_up_to_what_single_precision_and_another_processor_leave():
    scores = np.array([0.0, 1.5, -np.inf, 30.0])
    assert n_differing(scores, scores + np.array([1e-6, 1e-5, 0, 1e-4])) == 0
    assert n_differing(scores, scores + np.array([1e-3, 0, 0, 0])) == 1
    assert n_differing(scores, np.array([0.0, 1.5, np.inf, 30.0])) == 1
    assert n_differing(scores, scores[:3]) == 1


def test_on_another_processor_a_few_scores_may_differ_and_it_is_said(honest):
    part = replace(honest, provenance=None)
    found = replayed([part], "1", entropy=1)
    (line,) = [line for line in found.lines if line.what == "replayed: processor and libraries"]
    assert (line.is_ok, line.is_claimed, line.recomputed) == (None, True, "another: few scores may differ")
    assert not _named(found)
    line = Replay(honest, subjects()[LABEL](), is_same_machine=False)._compared(
        "x", np.zeros(8192), np.r_[1.0, np.zeros(8191)]
    )
    assert line.is_ok
    assert line.recomputed == "1 differ, at most 8 may on another processor"


def test_the_command_draws_a_share_and_says_what_it_would_have_caught(file, honest):
    done = CliRunner().invoke(app, ["verify", str(file), "--replay", "2"])
    assert done.exit_code == 0, done.output
    assert f"replayed  2 of {N_BLOCKS} blocks, drawn at random (entropy " in done.stdout
    assert "a fraction f of made-up blocks is caught" in done.stdout
    assert "with probability 1 - (1 - f)^2 or more: 1% with 0.0199, 10% with 0.19, 50% with 0.75" in done.stdout
    forged = made_up(honest, [name for name in honest.scores if name.startswith("transcript")])
    forged = made_up(forged, [name for name in honest.scores if name.startswith("transcript")], side=1)
    write(file, forged)
    done = CliRunner().invoke(app, ["verify", str(file), "--replay", "1", "--json"])
    assert done.exit_code == DIFFERS, "all are made up: any that is drawn shows it"
    found = json.loads(done.stdout)
    assert (found["replayed"]["n_drawn"], found["replayed"]["n_units"]) == (1, N_BLOCKS)
    assert len([line for line in found["lines"] if line["is_ok"] is False]) == 1


@pytest.mark.parametrize("amount", ["0", "-1", "0%", "101%", "1.5", "many", ""])
def test_an_amount_that_is_none_is_refused(honest, amount):
    with pytest.raises(SpecError, match="--replay: must be a whole number of units or a percentage"):
        replayed([honest], amount)


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ({"kind": "catalog", "name": "adar-ucb tight eps=1"}, "needs the experiment: --spec SPEC.yaml"),
        ({"kind": "algorithm", "name": "bandit"}, "own code: repeat the audit"),
    ],
)
def test_what_cannot_be_rebuilt_from_here_is_not_compared_and_no_block_of_it_is_drawn(honest, named, reason):
    outcome = replace(honest, subject=named)
    found = replayed([outcome])
    assert Verification(found.lines).not_compared == left_out(reason)
    assert (found.n_units, found.n_drawn) == (0, 0)
    with pytest.raises(SpecError, match=f"--replay: {reason}"):
        replayed([outcome], "1")


def test_the_lines_of_several_audits_are_named_and_only_some_may_be_rebuilt(honest):
    found = replayed([honest, replace(honest, subject={"kind": "algorithm", "name": "bandit"})])
    assert not _named(found)
    assert {line.what.partition(": ")[0] for line in found.lines if line.is_ok} == {LABEL}
    assert {line.what.partition(": ")[0] for line in found.lines if line.is_ok is None} == {"bandit"}


# --- algorithms of one's own ----------------------------------------------------------------------------------------

OWN = """
name: own
seed: 1
environment: {kind: bernoulli, means: [0.8, 0.2]}
horizon: 100
replications: 2
algorithms:
  - file: own_bandit.py:EpisodicGreedy
    label: greedy
    claim: "gdp(mu={mu}, relation=reward)"
    parameters: {mu: [1], length: 8}
audit: {rounds: 16, replays: 1000, examples: 5}
"""


def _own(tmp_path, claim="{mu}"):
    """The evidence of an own algorithm as `bandana audit` of its spec leaves it, and the spec's file beside its code."""
    source = (EXAMPLES / "own_bandit.py").read_text(encoding="utf-8")
    (tmp_path / "own_bandit.py").write_text(source, encoding="utf-8")
    place = tmp_path / "spec.yaml"
    place.write_text(OWN.replace("mu={mu}", f"mu={claim}"), encoding="utf-8")
    (cell,) = (cell for cell in cells_of(load_spec(place)) if cell.is_private)
    outcome = audit_cell(cell, Store(tmp_path / "results"))
    write(tmp_path / "e.npz", outcome)
    return outcome, place


def test_an_algorithm_of_ones_own_is_replayed_by_its_spec(tmp_path):
    """Its file lies beside the spec; with another file's noise its scores are others."""
    outcome, place = _own(tmp_path)
    assert outcome.scores
    again = replayed([outcome], "100%", Plan.of(load_spec(place)))
    assert again.n_drawn == again.n_units == 2 * sum(name.startswith("transcript") for name in outcome.scores)
    assert _named(again) == []
    other = made_up(outcome, [name for name in outcome.scores if name.startswith("transcript")])
    assert _named(replayed([other], "100%", Plan.of(load_spec(place)))) != []
    found = check(Request(tmp_path / "e.npz")).verification
    assert_partly_compared(found, reason="own code: repeat the audit")
    found = check(Request(tmp_path / "e.npz", spec=place)).verification
    assert found.is_verified, (found.differences, found.not_compared)


def test_own_code_that_was_changed_since_is_refused(tmp_path):
    _, place = _own(tmp_path)
    file = tmp_path / "own_bandit.py"
    file.write_text(file.read_text(encoding="utf-8") + "\n\nMORE = 1\n", encoding="utf-8")
    found = check(Request(tmp_path / "e.npz", spec=place)).verification
    assert {"replayed: code", "replayed: about: code_sha256"} <= {*_named(found)}
    assert exit_code(found) == DIFFERS


def test_verified_evidence_against_its_claim_ends_with_1(tmp_path):
    """In a folder with every sign that shells, URLs and tables know."""
    folder = tmp_path / "böse daten [v1] (final) 100% #1 'q' \"d\" $x *_~ <b>&amp;`c` @"
    folder.mkdir()
    outcome, place = _own(folder, claim="0.5")
    assert outcome.verdict is Verdict.FAIL
    done = CliRunner().invoke(app, ["verify", str(folder / "e.npz"), "--spec", str(place)])
    assert done.exit_code == FAILURE, done.output
    assert "e.npz: verified, " in done.stdout
    assert "none differs; the verdict is FAIL. Compared: " in done.stdout


def test_a_spec_without_the_audited_cell_is_a_usage_error(honest, tmp_path):
    (tmp_path / "own_bandit.py").write_text((EXAMPLES / "own_bandit.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "spec.yaml").write_text(OWN, encoding="utf-8")
    outcome = replace(honest, subject={"kind": "catalog", "name": "adar-ucb tight eps=1"})
    with pytest.raises(SpecError, match="--spec: has no private cell 'adar-ucb tight eps=1'; it has greedy"):
        replayed([outcome], None, Plan.of(load_spec(tmp_path / "spec.yaml")))


def test_what_a_device_replayed_is_verified_as_on_another_machine(monkeypatch):
    here = SimpleNamespace(provenance=Making().record(is_anonymous=True))
    assert _is_same_machine(here)
    monkeypatch.setenv(DEVICE, "cuda")
    assert not _is_same_machine(SimpleNamespace(provenance=Making().record(is_anonymous=True)))
