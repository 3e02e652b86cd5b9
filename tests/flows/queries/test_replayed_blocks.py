"""`bandana verify --replay`: units of an audit run again from their seeds, so that made-up scores are seen."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from bandana.audits.evidence import recompute, verify, write
from bandana.audits.evidence.replayed import Replay, drawn, n_differing, probability_caught, units_of
from bandana.audits.external.white_box import with_places
from bandana.audits.outcome import Effort, Verdict
from bandana.audits.subjects import subjects
from bandana.audits.trial import Audited
from bandana.flows.cli import app
from bandana.flows.commands.options import DIFFERS, USER_MISTAKE
from bandana.flows.keys import identity
from bandana.flows.keys.provenance import Making
from bandana.flows.queries.replay import replayed
from bandana.flows.spec.made_by import subject_roots
from bandana.flows.spec.mistakes import SpecError
from bandana.flows.spec.plan import cells_of
from bandana.flows.spec.spec import parse_spec
from bandana.flows.suites.own_replays import audit_of_own
from bandana.flows.suites.replays import audit_of_subject
from bandana.flows.suites.work import about_audits

LABEL = "block phases"
EFFORT = Effort(replays=8_400, confidence=0.95, delta=1e-5, examples=10, seed=3)
"""Two blocks a side."""


@pytest.fixture(scope="module")
def honest():
    making = Making()
    outcome = audit_of_subject(
        subjects()[LABEL](), EFFORT, partial(about_audits, made=identity.made_by(subject_roots(LABEL)))
    )
    assert outcome.verdict is Verdict.PASS, outcome.reasons
    return replace(outcome, provenance=making.record(is_anonymous=True))


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


def _again(outcome, kind):
    """Lines of the units of one kind, the first four of them, run again."""
    subject = subjects()[LABEL]()
    units = [unit for unit in units_of(outcome) if unit.kind == kind][:4]
    audited = with_places(Audited(subject.trial, None, subject.controls), EFFORT)
    return _differing(Replay(outcome, audited, is_same_machine=True).lines(units))


def test_every_unit_of_an_honest_audit_comes_out_the_same(honest):
    found = replayed([honest], "100%")
    assert not _named(found), _named(found)
    assert found.n_drawn == found.n_units == 3 * 2 * 2 + len(honest.controls) + 1
    whats = " ".join(line.what for line in found.lines)
    for words in ("pair 2, neighbor, block 1, transcript", "pair 0, actions, data", "planted fault first-release-exact",
                  "searches, counterexample", "ledger", "code"):  # fmt: skip
        assert words in whats
    assert found.words == f"replayed  all {found.n_units} units: none that was made up is left"


def test_made_up_scores_pass_the_recomputation_and_not_the_replay(honest, file):
    forged = made_up(honest, ["transcript0", "transcript1", "transcript2"])
    write(file, forged)
    assert verify(file).is_verified, "nothing but a replay can see it"
    found = replayed([forged], "100%")
    assert len([what for what in _named(found) if "data, block" in what]) == 6
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
        ("block", lambda o: {"effort": replace(o.effort, seed=4)}, "pair 0, data, block 0, transcript"),
    ],
)
def test_what_no_score_shows_is_replayed_too(honest, kind, change, what):
    assert _again(honest, kind) == []
    found = _again(replace(honest, **change(honest)), kind)
    assert any(name.startswith(f"replayed: {what}") for name in found), found


def test_units_are_drawn_evenly_and_without_repeats(honest):
    units = units_of(honest)
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
    assert [line.is_ok for line in found.lines if line.what == "replayed: processor and libraries"] == [None]
    line = Replay(honest, subjects()[LABEL](), is_same_machine=False)._compared(
        "x", np.zeros(8192), np.r_[1.0, np.zeros(8191)]
    )
    assert line.is_ok
    assert line.recomputed == "1 differ, at most 8 may on another processor"


def test_the_command_draws_a_share_and_says_what_it_would_have_caught(file, honest):
    done = CliRunner().invoke(app, ["verify", str(file), "--replay", "2"])
    assert done.exit_code == 0, done.output
    n_units = len(units_of(honest))
    assert f"replayed  2 of {n_units} units, drawn at random (entropy " in done.stdout
    assert "with probability 1 - (1 - f)^2 or more: 1% with 0.0199, 10% with 0.19, 50% with 0.75" in done.stdout
    forged = made_up(honest, [name for name in honest.scores if name.startswith("transcript")])
    forged = made_up(forged, [name for name in honest.scores if name.startswith("transcript")], side=1)
    write(file, forged)
    done = CliRunner().invoke(app, ["verify", str(file), "--replay", str(n_units - 11), "--json"])
    assert done.exit_code == DIFFERS, "12 are made up: as many as are drawn hold one of them"
    assert json.loads(done.stdout)["replayed"]["n_drawn"] == n_units - 11


@pytest.mark.parametrize("amount", ["0", "-1", "0%", "101%", "1.5", "many", ""])
def test_an_amount_that_is_none_is_refused(honest, amount):
    with pytest.raises(SpecError, match="--replay: must be a whole number of units or a percentage"):
        replayed([honest], amount)


def test_what_cannot_be_rebuilt_from_here_is_refused(honest, file, tmp_path):
    with pytest.raises(SpecError, match="name its experiment with --spec"):
        replayed([replace(honest, subject={"kind": "catalog", "name": "adar-ucb tight eps=1"})], "1")
    done = CliRunner().invoke(app, ["verify", str(file), "--spec", str(tmp_path / "x.yaml")])
    assert done.exit_code == USER_MISTAKE
    assert "--spec: only with --replay" in done.stderr


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


def test_an_algorithm_of_ones_own_is_replayed_by_its_spec(tmp_path):
    """Its file lies beside the spec; with another file's noise its scores are others."""
    source = (Path(__file__).parents[3] / "examples" / "own_bandit.py").read_text(encoding="utf-8")
    (tmp_path / "own_bandit.py").write_text(source, encoding="utf-8")
    spec = parse_spec(OWN, "spec.yaml", tmp_path)
    (cell,) = (cell for cell in cells_of(spec) if cell.is_private)
    making = Making()
    found = audit_of_own(cell, partial(about_audits, made=cell.audit_code))
    outcome = replace(found, provenance=making.record(is_anonymous=True))
    assert outcome.scores
    again = replayed([outcome], "100%", spec)
    assert again.n_drawn == again.n_units > 10
    assert _named(again) == []
    other = made_up(outcome, [name for name in outcome.scores if name.startswith("transcript")])
    assert _named(replayed([other], "100%", spec)) != []
