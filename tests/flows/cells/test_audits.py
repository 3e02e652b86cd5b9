"""Blocks: resumable, independent of each other, and the same numbers from whatever order."""

from dataclasses import replace

import numpy as np
import pytest
from whole_evidence import assert_follows_from_its_scores

from bandana.audits import audit as audits
from bandana.audits.contents import PROVENANCE, numbers_sha256, read_description
from bandana.flows.cells import replays, replicates
from bandana.flows.cells.audits import audit_cell, audit_entry, evidence_of, parts_first, stored_audit
from bandana.flows.cells.play import BENCHMARK, benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import load_spec


@pytest.fixture
def cells(write_spec):
    return cells_of(load_spec(write_spec()))


def test_blocks_cover_the_replications_and_have_seeds_of_their_own(cells):
    blocks = cells[1].blocks()
    assert [block.n_reps for block in blocks] == [4, 2]
    states = {tuple(b.noise_seed.generate_state(2)) for c in cells for b in c.blocks()}
    shared = {tuple(b.reward_seed.generate_state(2)) for c in cells for b in c.blocks()}
    shared |= {tuple(b.coin_seed.generate_state(2)) for c in cells for b in c.blocks()}
    assert (len(states), len(shared), len(states | shared)) == (4, 4, 8), "cells play on common random numbers"


def test_a_finished_block_is_not_computed_again_and_a_lost_one_has_the_same_numbers(cells, tmp_path, monkeypatch):
    store, block = Store(tmp_path / "results"), cells[1].blocks()[1]
    first, _ = benchmark_block(block, store)
    path = store.path(BENCHMARK, block.key)
    whole, numbers, made = path.read_bytes(), numbers_sha256(path), read_description(path)[PROVENANCE]
    with monkeypatch.context() as patched:
        patched.setattr(replicates, "run", lambda *_, **__: pytest.fail("computed again"))
        again, _ = benchmark_block(block, store)
    np.testing.assert_array_equal(first["regret"], again["regret"])
    assert path.read_bytes() == whole, "what was stored is kept, its provenance too"
    path.write_bytes(whole[: len(whole) // 2])
    benchmark_block(block, store)
    assert numbers_sha256(path) == numbers
    assert read_description(path)[PROVENANCE]["began"] > made["ended"], "the new file was made later"


def test_more_replications_change_no_finished_block(write_spec, tmp_path):
    few = cells_of(load_spec(write_spec(replications=4)))[1].blocks()
    many = cells_of(load_spec(write_spec(replications=12)))[1].blocks()
    assert few[0].key == many[0].key
    assert len({block.key for block in many}) == 3


def test_the_privacy_spent_rises_to_the_claim_and_never_above(cells, tmp_path):
    arrays, description = benchmark_block(cells[1].blocks()[0], Store(tmp_path / "results"))
    spent = arrays["mu_spent"]
    assert (np.diff(spent) >= 0).all()
    assert spent[0] <= spent[-1] <= cells[1].claim().gaussian.mu
    assert description["mu"] == pytest.approx(1.0, rel=1e-11)


def test_a_twin_has_no_epsilon(cells, tmp_path):
    arrays, description = benchmark_block(cells[0].blocks()[0], Store(tmp_path / "results"))
    assert description["mu"] is None
    assert np.isinf(arrays["mu_spent"]).all()


def test_an_audit_is_kept_as_evidence_that_follows_from_its_scores(cells, tmp_path, monkeypatch):
    store = Store(tmp_path / "results")
    outcome = audit_cell(cells[1], store)
    assert outcome.verdict == "PASS", outcome.reasons
    assert outcome.about.table.endswith("of bernoulli")
    assert_follows_from_its_scores(evidence_of(cells[1], store))
    shown = audit_entry(cells[1], outcome, is_anonymous=False)
    assert shown["label"] == "adar-ucb tight eps=1"
    monkeypatch.setattr(replays, "audit", lambda *_, **__: pytest.fail("computed again"))
    assert audit_entry(cells[1], audit_cell(cells[1], store), is_anonymous=False) == shown


def test_a_damaged_audit_is_computed_again(cells, tmp_path, monkeypatch):
    store = Store(tmp_path / "results")
    place = evidence_of(cells[1], store)
    place.parent.mkdir(parents=True)
    for content in (b"", b"PK" + b"0" * 200):
        place.write_bytes(content)
        assert stored_audit(cells[1], store) is None
    monkeypatch.setattr(replays, "audit", lambda *_, **__: _stop())
    with pytest.raises(_Stopped):
        audit_cell(cells[1], store)


def test_a_claim_far_from_the_test_budget_is_audited_there_too(cells, tmp_path, monkeypatch):
    seen = {}
    monkeypatch.setattr(replays, "audit", lambda trial, *_, **more: seen.update(trial=trial, **more) or _stop())
    settings = cells[1].settings
    for epsilon, expected in ((0.01, 1.0), (1.0, None), (100.0, 1.0)):
        cell = replace(cells[1], settings=replace(settings, privacy=replace(settings.privacy, epsilon=epsilon)))
        with pytest.raises(_Stopped):
            audit_cell(cell, Store(tmp_path / "results"))
        found = seen["at_test_budget"]
        assert (None if found is None else found.claim.gaussian.mu) == expected
        assert seen["trial"].claim.stated.epsilon == epsilon


def test_claims_that_differ_in_epsilon_share_the_audit_at_the_test_budget(cells, tmp_path, monkeypatch):
    """It is made once, and what comes from the store is what would have been made."""
    settings, made = cells[1].settings, []
    asked = cells[1].spec.audit.model_copy(update={"replays": 1000, "examples": 4, "rounds": 8})
    few = cells[1].spec.model_copy(update={"audit": asked})

    def cell(epsilon):
        return replace(cells[1], spec=few, settings=replace(settings, privacy=replace(settings.privacy, epsilon=epsilon)))

    examined = audits._examine
    monkeypatch.setattr(audits, "_examine", lambda request, *more: (
        made.append(request.trial.is_test_budget), examined(request, *more))[1])  # fmt: skip
    shared, alone = Store(tmp_path / "shared"), Store(tmp_path / "alone")
    audit_cell(cell(0.01), shared)
    audit_cell(cell(100.0), shared)
    assert made == [True, False, False]
    audit_cell(cell(100.0), alone)
    assert made[3:] == [True, False]
    assert numbers_sha256(evidence_of(cell(100.0), shared)) == numbers_sha256(evidence_of(cell(100.0), alone))
    assert_follows_from_its_scores(evidence_of(cell(100.0), shared))


def test_the_first_cell_of_each_kind_comes_first(cells):
    kinds = [cells[1], cells[1], cells[0], cells[1]]
    assert [cell is cells[0] for cell in parts_first(kinds)] == [False, True, False, False]


class _Stopped(Exception):  # noqa: N818  (it is no error)
    pass


def _stop():
    raise _Stopped


def test_a_table_is_known_by_its_content_and_not_by_its_place(write_spec, tmp_path):
    keys = []
    for name, text in (("one.csv", "a,b\n"), ("two.csv", "a,b\n"), ("three.csv", "b,a\n")):
        (tmp_path / name).write_text(text + "0,1\n" * 600)
        spec = load_spec(write_spec(environment={"kind": "table", "path": name, "public": ["values"]}))
        keys.append(cells_of(spec)[1].blocks()[0].key)
    assert keys[0] == keys[1] != keys[2]
