"""Two hundred forgeries of one honest audit, most of them nightly: all are caught, by recomputation or by replays.

The forger knows the format and the methods: hashes are right, and where the forgery is of scores, every bound, number and
reason that follows from them is taken anew. What the recomputation cannot see is left to `--replay 100%`, which runs each
unit again; here the units are run once, and their results are kept for all forgeries.
"""

import copy
import io
import json
import sys
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from nightly import first

from bandana.audits.claims import parse
from bandana.audits.evidence import archive, describe, read, recompute, replayed, seal, write
from bandana.audits.outcome import Effort, Verdict
from bandana.audits.searches import request
from bandana.audits.subjects import subjects
from bandana.flows.keys import identity
from bandana.flows.keys.provenance import Making
from bandana.flows.queries import replay
from bandana.flows.queries.verify import Request, check
from bandana.flows.spec.made_by import subject_roots
from bandana.flows.suites.replays import audit_of_subject
from bandana.flows.suites.work import about_audits
from bandana.privacy_core import GaussianEvent

LABEL = "block phases"
EFFORT = Effort(replays=3000, confidence=0.95, delta=1e-5, examples=10, seed=11)


@pytest.fixture(scope="module")
def honest():
    making = Making()
    about = partial(about_audits, made=identity.made_by(subject_roots(LABEL)))
    outcome = audit_of_subject(subjects()[LABEL](), EFFORT, about)
    assert outcome.verdict is Verdict.PASS, outcome.reasons
    return replace(outcome, provenance=making.record(is_anonymous=True))


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

    patch.setattr(sys.modules["bandana.audits.evidence.recompute"], "recompute", kept(recompute, of_bound))
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
    effort, about = replace(outcome.effort, seed=seed), dict(outcome.about)
    about["seeds"] = about["seeds"].replace(f"({outcome.effort.seed})", f"({seed})")
    bounds = [
        replace(bound, parameters={**bound.parameters, **({"seed": seed} if "seed" in bound.parameters else {})})
        for bound in outcome.bounds
    ]
    return _rederived(replace(outcome, effort=effort, about=about, bounds=tuple(bounds)), outcome.scores)


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
    claim, about, coverage = outcome.claim, dict(outcome.about), outcome.coverage
    changes = [
        {"claim": replace(claim, statement=f"all actions are {rng.uniform(0.01, 0.5):.2f}-GDP")},
        {"claim": replace(claim, statement=f"{claim.statement}, whatever the data")},
        {"claim": replace(claim, unit="all that anybody gives")},
        {"claim": replace(claim, source="Dwork and Roth")},
        {"claim": replace(claim, theorem="Theorem 7")},
        {"subject": {**outcome.subject, "name": "block tree"}},
        {"coverage": replace(coverage, cases=coverage.cases * 10)},
        {"about": {**about, "seeds": "SeedSequence(12)"}},
        {"about": {**about, "probes": "0, 1, 2"}},
    ]
    return replace(outcome, **changes[int(rng.integers(len(changes)))])


FORGERS = (made_up_scores, some_scores, other_seed, dropped_bounds, stronger_claim, story_of_faults, other_words)


def _is_seen_by_verify(path):
    try:
        return not check(Request(path)).found.is_verified
    except ValueError:
        return True


def _is_seen_by_replay(path):
    found = replay.replayed([read(path).outcome], "100%")
    return any(line.is_ok is False for line in found.lines)


def test_the_honest_audit_is_believed(honest, remembering, tmp_path):
    write(tmp_path / "e.npz", honest)
    assert not _is_seen_by_verify(tmp_path / "e.npz")
    assert not _is_seen_by_replay(tmp_path / "e.npz")


@pytest.mark.parametrize("n_of_each", first(1, [2, 25]))
def test_all_forged_audits_are_caught(honest, remembering, tmp_path, n_of_each):
    path, caught, believed = tmp_path / "e.npz", Counter(), []
    for place, forger in enumerate(FORGERS):
        for key in range(n_of_each):
            write(path, forger(honest, np.random.default_rng([place, key])))
            if _is_seen_by_verify(path):
                caught[forger.__name__, "recomputed"] += 1
            elif _is_seen_by_replay(path):
                caught[forger.__name__, "replayed"] += 1
            else:
                believed.append((forger.__name__, key))
    assert believed == []
    assert sum(caught.values()) == len(FORGERS) * n_of_each
    assert caught["made_up_scores", "replayed"] == n_of_each, "no recomputation sees them"
    assert caught["dropped_bounds", "recomputed"] == n_of_each


def _leaves(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _leaves(item, (*path, key))
    if not isinstance(value, dict | list):
        yield path, value


@pytest.mark.parametrize("n", first(1, [3, 25]))
def test_files_with_one_changed_number_under_a_right_hash_are_caught(honest, remembering, tmp_path, n):
    content, path = archive.to_bytes(honest), tmp_path / "e.npz"
    with np.load(io.BytesIO(content)) as found:
        arrays = {name: found[name] for name in found.files if name != "description"}
    description = json.loads(json.dumps(describe(honest)))
    rng = np.random.default_rng(5)
    parts = ("bounds", "numbers", "events", "effort", "controls", "failure", "inequalities")
    leaves = [(where, value) for where, value in _leaves(description) if where[0] in parts and not isinstance(value, str)]
    for place in rng.choice(len(leaves), n, replace=False):
        where, value = leaves[place]
        forged = copy.deepcopy(description)
        node = forged
        for key in where[:-1]:
            node = node[key]
        node[where[-1]] = (not value) if isinstance(value, bool) else 2 if value is None else value * 1.5 + 1
        path.write_bytes(seal(forged, arrays))
        assert _is_seen_by_verify(path) or _is_seen_by_replay(path), where
