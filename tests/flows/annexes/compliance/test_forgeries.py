"""Two hundred forgeries of one honest audit, most of them nightly: all are refused, by one of three comparisons.

The forger knows the format and the methods: hashes are right, and where the forgery is of scores, every bound, number and
reason that follows from them is taken anew. `bandana verify --quick` sees what contradicts the scores or the words of the
catalog; without it, searches and planted faults are run again; and `--replay 100%` runs each block of replays again, which
made-up scores do not survive. Here all is run once, and the results are kept for all forgeries.
"""

import copy
import io
import json
import sys
from collections import Counter
from dataclasses import asdict, replace

import numpy as np
import pytest
from nightly import first
from scores_alone import assert_partly_compared
from whole_catalog import audited

from bandana.algorithms.environments.data_sets import Change
from bandana.audits.claims import parse
from bandana.audits.evidence import archive, describe, recompute, seal, write
from bandana.audits.outcome import Effort, Verdict
from bandana.audits.searches import request
from bandana.flows.annexes.compliance.evidence import replayed
from bandana.flows.annexes.compliance.evidence.standalone import exit_code
from bandana.flows.annexes.compliance.verify import Request, check
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import GaussianEvent

LABEL = "block phases"
EFFORT = Effort(replays=3000, confidence=0.95, delta=1e-5, examples=10, seed=11)


@pytest.fixture(scope="module")
def honest():
    outcome = audited(LABEL, EFFORT)
    assert outcome.verdict is Verdict.PASS, outcome.reasons
    return outcome


@pytest.fixture(scope="module")
def remembering():
    """Bounds and units that were computed once are remembered: forgeries share most of them."""
    patch, known = pytest.MonkeyPatch(), {}

    def kept(function, key_of):
        def once(*arguments, **more):
            key = (function, key_of(*arguments, **more))
            if key not in known:
                known[key] = function(*arguments, **more)
            return known[key]

        return once

    def of_bound(bound, scores):
        return bound.view, bound.method, repr(bound.parameters), bound.level, *(side.tobytes() for side in scores)

    def of_block(algorithm, pair, side, n_replays, seed, block):
        return repr(algorithm), pair.description, side, n_replays, seed.entropy, seed.spawn_key, block

    def of_fault(asked, control):
        return repr(asked.trial.algorithm), str(asked.trial.claim), asked.effort, control.name

    def of_actions(planned, sides, level, effort):
        return planned, level, effort, *(side.log_ratio.tobytes() for side in sides)

    def of_ledger(algorithm, table, *more, **named):
        return repr(algorithm), table.rewards.tobytes(), repr(more), repr(named)

    def of_search(self, asked):
        return type(self).__name__, repr(asked.trial.algorithm), str(asked.trial.claim), asked.effort

    patch.setattr(sys.modules["bandana.flows.annexes.compliance.evidence.recompute"], "recompute", kept(recompute, of_bound))
    patch.setattr(replayed, "replay_block", kept(replayed.replay_block, of_block))
    patch.setattr(replayed, "try_control", kept(replayed.try_control, of_fault))
    patch.setattr(replayed, "scored", kept(replayed.scored, of_actions))
    patch.setattr(request, "derive", kept(request.derive, of_ledger))
    patch.setattr(request.worst_pair, "find", kept(request.worst_pair.find, of_ledger))
    for search in (replayed.Deterministic, replayed.Noise):
        patch.setattr(search, "examine", kept(search.examine, of_search))
    yield
    patch.undo()


# --- forgers ---------------------------------------------------------------------------------------------------------


def _rederived(outcome, scores):
    bounds = [replace(bound, lower=recompute(bound, scores[bound.scores])) for bound in outcome.bounds]
    return replace(outcome, scores=scores, bounds=tuple(bounds))


def _single(values):
    return np.asarray(values, dtype=np.float32).astype(float)


def made_up_scores(outcome, rng):
    """All scores of a view drawn by the forger, as little private as the forger likes."""
    view, mu = rng.choice(["transcript", "actions"]), rng.uniform(0.1, 0.9)
    scores = dict(outcome.scores)
    for name in [name for name in scores if name.startswith(view)]:
        n = len(scores[name][0])
        scores[name] = tuple(_single(mu * (rng.standard_normal(n) + sign * mu / 2)) for sign in (-1, 1))
    return _rederived(outcome, scores)


def some_scores(outcome, rng):
    """A few scores of one pair moved out of sight."""
    name = str(rng.choice(sorted(outcome.scores)))
    pair = [side.copy() for side in outcome.scores[name]]
    side = pair[int(rng.integers(2))]
    rows = rng.choice(len(side), int(rng.integers(1, 40)), replace=False)
    side[rows] = _single(np.abs(side[rows]) + 0.5)
    return _rederived(outcome, {**outcome.scores, name: (pair[0], pair[1])})


def other_seed(outcome, rng):
    """Another seed is stated, with parameters and words to match: that of a lucky run, or of none."""
    seed = int(rng.integers(100, 102))
    effort, about = replace(outcome.effort, seed=seed), replace(outcome.about, seed=seed)
    bounds = [
        replace(bound, parameters={**bound.parameters, **({"seed": seed} if "seed" in bound.parameters else {})})
        for bound in outcome.bounds
    ]
    made = {**outcome.provenance, "of": {**outcome.provenance["of"], "effort": asdict(effort)}}
    forged = replace(outcome, effort=effort, about=about, bounds=tuple(bounds), provenance=made)
    return _rederived(forged, outcome.scores)


def dropped_bounds(outcome, rng):
    """Some bounds are left out, and scores that nothing uses any more."""
    kept = [bound for bound in outcome.bounds if rng.random() < 0.6] or list(outcome.bounds[:1])
    kept = kept[:-1] if len(kept) == len(outcome.bounds) else kept
    return replace(outcome, bounds=tuple(kept), scores={b.scores: outcome.scores[b.scores] for b in kept})


def stronger_claim(outcome, rng):
    """A smaller mu is claimed and accounted, with scores shrunk until it holds."""
    mu = float(rng.uniform(0.2, 0.9))
    claim = replace(parse(f"gdp(mu={mu}, relation=record)", source=outcome.claim.source), unit=outcome.claim.unit)
    events = tuple((GaussianEvent(event.noise_multiplier / mu), count) for event, count in outcome.events)
    scores = {name: tuple(_single(side * mu**2) for side in pair) for name, pair in outcome.scores.items()}
    return _rederived(replace(outcome, claim=claim, events=events), scores)


def story_of_faults(outcome, rng):
    """Planted faults that were never tried, or were caught by more than caught them."""
    place, controls = int(rng.integers(len(outcome.controls))), list(outcome.controls)
    changes = [
        {"name": "noise-free"},
        {"measured": controls[place].measured + float(rng.uniform(0.5, 5))},
        {"caught_by": ("sampling", "deterministic", "noise"), "measured": controls[place].limit + 1},
        {"limit": controls[place].limit / 2},
    ]
    controls[place] = replace(controls[place], **changes[int(rng.integers(len(changes)))])
    return replace(outcome, controls=tuple(controls if rng.random() < 0.8 else controls[:place] + controls[place + 1 :]))


def other_words(outcome, rng):
    """Words that say more than the numbers."""
    claim, about, coverage = outcome.claim, outcome.about, outcome.coverage
    changes = [
        {"claim": replace(claim, covers=f"all actions are {rng.uniform(0.01, 0.5):.2f}-GDP; all actions")},
        {"claim": replace(claim, covers="all actions, whatever the data,")},
        {"claim": replace(claim, unit="all that anybody gives")},
        {"claim": replace(claim, source="Dwork and Roth")},
        {"claim": replace(claim, theorem="Theorem 7")},
        {"subject": {**outcome.subject, "name": "block tree"}},
        {"coverage": replace(coverage, cases=coverage.cases * 10)},
        {"about": replace(about, seed=12)},
        {"about": replace(about, probes=(0, 1, 2))},
    ]
    return replace(outcome, **changes[int(rng.integers(len(changes)))])


def other_setting(outcome, rng):
    """Another experiment is described than the one that was run, in words that the scores leave open."""
    bounds, about, made = list(outcome.bounds), outcome.about, dict(outcome.provenance)
    place = int(rng.integers(len(bounds)))
    change = Change(0.0, 9.0)
    renamed = {"neighbor": replace(bounds[place].neighbor, change=change), "attack": "all known attacks"}
    name = str(rng.choice(sorted(renamed)))
    bounds[place] = replace(bounds[place], **{name: renamed[name]})
    changes = [
        {"bounds": tuple(bounds)},
        {"power": outcome.power * float(rng.uniform(0.5, 0.9))},
        {"about": replace(about, table="a trial with 10,000 people")},
        {"about": replace(about, noise_source="a hardware generator")},
        {"about": replace(about, not_planted={"noise-halved": ()})},
        {"subject": {**outcome.subject, "source": "Dwork and Roth"}},
        {"provenance": {**made, "made": {**made["made"], "libraries": {"numpy": "9.9"}}}},
        {"provenance": {**made, "of": {**made["of"], "data": "of 10,000 people"}}},
    ]
    return replace(outcome, **changes[int(rng.integers(len(changes)))])


QUICK, RUN_AGAIN, REPLAYED, BELIEVED = "quick", "searches and faults run again", "blocks replayed", "believed"
FORGERS = {
    made_up_scores: {REPLAYED},
    some_scores: {REPLAYED},
    other_seed: {RUN_AGAIN},
    dropped_bounds: {QUICK},
    stronger_claim: {RUN_AGAIN},
    story_of_faults: {QUICK, RUN_AGAIN},
    other_words: {QUICK, RUN_AGAIN},
    other_setting: {QUICK, RUN_AGAIN},
}
"""Who forges -> which comparisons see it first. Scores that were made up need a replay of their blocks."""


def _seen_by(path):
    """The first of the three comparisons that refuses the file."""
    for name, more in ((QUICK, {"is_quick": True}), (RUN_AGAIN, {}), (REPLAYED, {"replay": "100%"})):
        try:
            found = check(Request(path, **more)).verification
        except SpecError:
            return name
        if found.is_refused:
            return name
    return BELIEVED


def test_the_honest_audit_is_verified(honest, remembering, tmp_path):
    write(tmp_path / "e.npz", honest)
    assert _seen_by(tmp_path / "e.npz") == BELIEVED
    assert_partly_compared(check(Request(tmp_path / "e.npz", is_quick=True)).verification, reason="left out by --quick")
    for amount in (None, "100%"):
        found = check(Request(tmp_path / "e.npz", replay=amount)).verification
        assert found.is_verified, found.not_compared
        assert exit_code(found) == 0


@pytest.mark.parametrize("n_of_each", first(1, [2, 25]))
def test_all_forged_audits_are_refused(honest, remembering, tmp_path, n_of_each):
    path, seen = tmp_path / "e.npz", {}
    for place, (forger, expected) in enumerate(FORGERS.items()):
        seen[forger] = Counter()
        for key in range(n_of_each):
            write(path, forger(honest, np.random.default_rng([place, key])))
            seen[forger][_seen_by(path)] += 1
        assert {*seen[forger]} <= expected, (forger.__name__, seen[forger])
    assert {counts.total() for counts in seen.values()} == {n_of_each}


def _leaves(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _leaves(item, (*path, key))
    if not isinstance(value, dict | list):
        yield path, value


@pytest.mark.parametrize("n", first(1, [3, 25]))
def test_files_with_one_changed_number_under_a_right_hash_are_refused_without_a_replay(honest, remembering, tmp_path, n):
    content, path = archive.to_bytes(honest), tmp_path / "e.npz"
    with np.load(io.BytesIO(content)) as found:
        arrays = {name: found[name] for name in found.files if name != "description"}
    description = json.loads(json.dumps(describe(honest)))
    rng = np.random.default_rng(5)
    parts = ("bounds", "numbers", "events", "effort", "controls", "failure", "coverage", "power")
    leaves = [(where, value) for where, value in _leaves(description) if where[0] in parts and not isinstance(value, str)]
    for place in rng.choice(len(leaves), n, replace=False):
        where, value = leaves[place]
        forged = copy.deepcopy(description)
        node = forged
        for key in where[:-1]:
            node = node[key]
        node[where[-1]] = (not value) if isinstance(value, bool) else 2 if value is None else value * 1.5 + 1
        path.write_bytes(seal(forged, arrays))
        assert _seen_by(path) in (QUICK, RUN_AGAIN), where
