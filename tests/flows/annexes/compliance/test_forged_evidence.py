"""Forgers who leave no loose end: they drop bounds, change words, and compute every number and hash anew."""

import copy
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from own_cases import UNIT, example

from bandana.algorithms.environments.tables import random_table
from bandana.audits.claims import parse
from bandana.audits.evidence import UnusableEvidence, describe, recompute, seal, write
from bandana.audits.outcome import ACTIONS, Effort, Setup, Verdict
from bandana.audits.own.white_box import examine
from bandana.audits.trial import Trial
from bandana.flows.annexes.compliance.evidence.recompute import verify

EFFORT = Effort(replays=4000, confidence=0.95, delta=1e-5, examples=20, seed=1)
SUBJECT = {"kind": "algorithm", "name": "bandit", "source sha256": "0" * 64}
ABOUT = Setup("coins", (0, 2), 1, "seeded", "0" * 64)
TABLE = random_table(16, 2, UNIT, 0)


def _audited(name, controls=()):
    trial = Trial(example(name).bandit, parse("gdp(mu=1, relation=reward)"), TABLE, (0, 2))
    return examine(trial, EFFORT, SUBJECT, ABOUT, controls)


@pytest.fixture(scope="module")
def honest():
    return _audited("own_bandit", None)


@pytest.fixture(scope="module")
def broken():
    return _audited("broken_bandit")


def _verified(outcome, tmp_path):
    write(tmp_path / "e.npz", outcome)
    return verify(tmp_path / "e.npz")


def _named(found):
    return {line.what for line in found.differences}


def _quiet(outcome):
    """The outcome without what refutes it but is in no score; its noise as claimed, and faults to prove its power."""
    return replace(outcome, counterexample=None, noise_finding=None, caveats=())


def test_refuting_bounds_that_were_dropped_are_missed(broken, honest, tmp_path):
    kept = tuple(bound for bound in broken.bounds if bound.view == ACTIONS)
    forged = replace(
        _quiet(broken),
        bounds=kept,
        scores={bound.scores: broken.scores[bound.scores] for bound in kept},
        events=honest.events,
        controls=honest.controls,
    )
    assert broken.verdict is Verdict.FAIL
    assert forged.verdict is Verdict.PASS, forged.reasons
    found = _verified(forged, tmp_path)
    assert found.verdict == "PASS"
    assert "bounds that claim and effort plan" in _named(found)


@pytest.mark.parametrize("name", ["transcript0", "transcript3", "actions1"])
def test_one_bound_without_its_scores_is_missed(honest, tmp_path, name):
    bounds = tuple(bound for bound in honest.bounds if bound.scores != name)
    scores = {key: pair for key, pair in honest.scores.items() if key != name}
    found = _verified(replace(honest, bounds=bounds, scores=scores), tmp_path)
    (line,) = [line for line in found.differences if line.what == "bounds that claim and effort plan"]
    assert f"{name}: mu is missing" in line.recomputed


def test_a_whole_pair_that_was_dropped_is_missed_though_the_rest_shares_its_level(honest, tmp_path):
    """The forger leaves out the last pair, and divides the failure probability between the others, as is the plan."""
    bounds = []
    for bound in honest.bounds:
        if not bound.scores.endswith("3"):
            level = bound.level * 4 / 3
            lower = recompute(replace(bound, level=level), honest.scores[bound.scores])
            bounds.append(replace(bound, level=level, lower=lower))
    scores = {key: pair for key, pair in honest.scores.items() if not key.endswith("3")}
    found = _verified(replace(honest, bounds=tuple(bounds), scores=scores), tmp_path)
    assert "pairs of data sets" in _named(found)


def test_scores_that_no_bound_is_taken_from_are_named(honest, tmp_path):
    spare = (np.zeros(4000), np.zeros(4000))
    found = _verified(replace(honest, scores={**honest.scores, "transcript9": spare}), tmp_path)
    assert "scores without a bound" in _named(found)


def test_a_weaker_method_is_not_the_planned_one(honest, tmp_path):
    bound = replace(honest.bounds[0], method="mu-threshold", parameters={})
    bound = replace(bound, lower=recompute(bound, honest.scores[bound.scores]))
    found = _verified(replace(honest, bounds=(bound, *honest.bounds[1:])), tmp_path)
    assert _named(found) == {"bounds that claim and effort plan"}


@pytest.mark.parametrize("covers", ["all actions are 0.1-GDP; all actions", "all rewards", "no record can be found out;"])
def test_a_statement_that_the_claim_does_not_make_is_named(honest, tmp_path, covers):
    found = _verified(replace(honest, claim=replace(honest.claim, covers=covers)), tmp_path)
    assert _named(found) == {"claim: statement"}


NOT_IN_THE_SCORES = {
    "subject.name", "subject.source sha256", "claim.source", "bounds.#.attack", "controls.#.name",
    "controls.#.fault", "controls.#.measured", "controls.#.limit", "power", "about.table",
    "about.noise_source", "coverage.views.#", "coverage.records.#", "coverage.rounds", "coverage.values.#",
    "coverage.cases", "coverage.rarest", "coverage.unit", "coverage.tail", "coverage.refused",
    "coverage.walked", "coverage.walked_alone", "coverage.drawn", "coverage.drawn_covariates",
    "coverage.refused_covariates",
}  # fmt: skip
"""Fields, places in lists left out, that only the algorithm, its author or a signature can confirm."""


def _leaves(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path, value


def _other(value):
    if isinstance(value, bool) or value is None:
        return value is not True
    if isinstance(value, int | float):
        return value * 2 + 1 if np.isfinite(value) else 1.0
    return f"{value}0" if value[-1:].isdigit() else f"{value}x"


@pytest.mark.parametrize(
    "where", [(), ("claim",), ("effort",), ("bounds", 0), ("controls", 0), ("coverage",), ("numbers", 0)]
)
def test_a_field_that_nothing_reads_is_refused(honest, tmp_path, where):
    """Whoever reads the file as JSON would see it: it must not stand there unconfirmed."""
    description = json.loads(json.dumps(describe(honest)))
    node = description
    for key in where:
        node = node[key]
    node["remark"] = "certified"
    write(tmp_path / "e.npz", honest)
    with np.load(tmp_path / "e.npz") as archive:
        arrays = {name: archive[name] for name in archive.files if name != "description"}
    (tmp_path / "e.npz").write_bytes(seal(description, arrays))
    try:
        found = verify(tmp_path / "e.npz")
    except UnusableEvidence:
        return
    assert any(name.startswith("form: ") and name.endswith("remark") for name in _named(found)), _named(found)


def _ends(leaves):
    """The first and the last leaf of each kind: of those that differ in places in lists alone."""
    kinds = {}
    for path, value in leaves:
        kinds.setdefault(_kind(path), []).append((path, value))
    return [leaf for group in kinds.values() for leaf in (group[0], group[-1])[: len(group)]]


def _kind(path):
    return ".".join("#" if isinstance(key, int) else key for key in path)


@pytest.mark.parametrize("chosen", [_ends, pytest.param(list, marks=pytest.mark.nightly)], ids=["some", "all"])
def test_every_field_is_recomputed_or_in_a_part_that_is_listed_as_not_compared(honest, tmp_path, monkeypatch, chosen):
    """In `make test`: the first and the last of each list."""
    known = {}

    def remembered(bound, scores):
        key = json.dumps([bound.view, bound.method, dict(bound.parameters), bound.level, bound.scores], sort_keys=True)
        if key not in known:
            known[key] = recompute(bound, scores)
        return known[key]

    monkeypatch.setattr(sys.modules["bandana.flows.annexes.compliance.evidence.recompute"], "recompute", remembered)
    write(tmp_path / "e.npz", honest)
    with np.load(tmp_path / "e.npz") as archive:
        arrays = {name: archive[name] for name in archive.files if name != "description"}
    description = json.loads(json.dumps(describe(honest)))
    missed = set()
    for path, value in chosen(_leaves(description)):
        forged = copy.deepcopy(description)
        node = forged
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = _other(value)
        (tmp_path / "e.npz").write_bytes(seal(forged, arrays))
        try:
            is_seen = verify(tmp_path / "e.npz").is_refused
        except ValueError:
            is_seen = True
        if not is_seen:
            missed.add(_kind(path))
    assert missed == NOT_IN_THE_SCORES
    assert len(list(_leaves(description))) > 200
