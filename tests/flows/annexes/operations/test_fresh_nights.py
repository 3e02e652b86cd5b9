"""Nights with a seed of their own: each counts once, whatever is killed, repeated or damaged, and a leak adds up."""

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest

from bandana.audits.claims import Quantity
from bandana.flows.annexes.operations import fresh_nights
from bandana.flows.annexes.operations.evidence_of_nights import NightlyClaims
from bandana.flows.annexes.operations.fresh_nights import FRESH, accumulate
from bandana.flows.annexes.operations.nights import Night, page, sparkline
from bandana.flows.cells import replays
from bandana.flows.folder.settings import DataFolder
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import load_spec
from bandana.flows.suites.alarms import NIGHTS_FAILED, Findings, events, markdown, nights_together

LEVEL = 0.05


@pytest.fixture
def folder(tmp_path):
    return DataFolder.open(tmp_path / "data")


@pytest.fixture
def cell(write_spec):
    (found,) = [cell for cell in cells_of(load_spec(write_spec(audit__replays=1000))) if cell.is_private]
    return found


def entries(folder):
    places = sorted(folder.suite("small").joinpath(FRESH).glob("*/*.json"))
    return {path.stem: json.loads(path.read_text()) for path in places}


def entry_of(folder, night):
    (place,) = folder.suite("small").joinpath(FRESH).glob(f"*/{night}.json")
    return place


def test_each_night_draws_a_seed_of_128_bits(folder, cell):
    for night in ("n1", "n2"):
        accumulate(cell, folder, night, LEVEL)
    seeds = {entry["seed"] for entry in entries(folder).values()}
    assert [len(seed) for seed in seeds] == [32, 32]


@pytest.mark.usefixtures("seeded_nights")
def test_each_night_has_an_entry_of_its_own_and_learns_from_those_before(folder, cell):
    first, second = (accumulate(cell, folder, night, LEVEL) for night in ("n1", "n2"))
    assert (first.n_nights, second.n_nights, second.n_replays) == (1, 2, 2 * cell.audit.replays)
    assert first.log10_evidence == (0.0, 0.0), "the first night only teaches"
    assert second.log10_evidence[:2] == first.log10_evidence
    assert first.lower == 0 < second.lower < second.claimed
    held = entries(folder)
    assert (held["n1"]["seed"], held["n2"]["seed"]) == ("0", "1")
    assert (held["n1"]["after"], held["n2"]["after"]) == ([], ["n1"])
    assert held["n2"]["bins"] != held["n1"]["bins"]
    assert second.pair == held["n2"]["pair"] == held["n1"]["pair"]
    assert "2 nights" in nights_together(asdict(second))


def test_a_night_that_is_run_again_is_not_counted_twice(folder, cell):
    accumulate(cell, folder, "n1", LEVEL)
    found = accumulate(cell, folder, "n2", LEVEL)
    before = {path: path.read_bytes() for path in folder.root.rglob("n*")}
    assert accumulate(cell, folder, "n1", LEVEL) == accumulate(cell, folder, "n2", LEVEL) == found
    assert {path: path.read_bytes() for path in folder.root.rglob("n*")} == before


def test_a_night_that_was_killed_is_replayed_with_the_seed_that_it_had(folder, cell, monkeypatch):
    accumulate(cell, folder, "n1", LEVEL)
    seeds = []

    def killed(algorithm, pair, n_replays, seed):
        seeds.append(seed)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(fresh_nights, "replayed", killed)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                accumulate(cell, folder, "n2", LEVEL)
    accumulate(cell, folder, "n3", LEVEL)
    accumulate(cell, folder, "n2", LEVEL)
    held = entries(folder)
    assert seeds == [int(held["n2"]["seed"], 16)] * 2
    assert held["n2"]["after"] == held["n3"]["after"] == ["n1"], "it bets as it would have, not knowing the night after"


@pytest.mark.parametrize(
    "damage", [lambda text: text[: len(text) // 2], lambda text: text.replace('"n_replays": 1000', '"n_replays": 1001')]
)
def test_a_damaged_entry_is_left_out_and_comes_back_the_same_when_it_is_run_again(folder, cell, damage):
    for night in ("n1", "n2", "n3"):
        whole = accumulate(cell, folder, night, LEVEL)
    place, before = entry_of(folder, "n2"), entries(folder)["n2"]
    place.write_text(damage(place.read_text()))
    assert accumulate(cell, folder, "n3", LEVEL).n_nights == 2
    again = accumulate(cell, folder, "n2", LEVEL)
    after = entries(folder)["n2"]
    assert {**before, "ended": "", "sha256": ""} == {**after, "ended": "", "sha256": ""}
    assert again.log10_evidence[-1] == pytest.approx(whole.log10_evidence[-1], abs=1e-9)


def test_another_claim_is_another_process(folder, cell, write_spec):
    accumulate(cell, folder, "n1", LEVEL)
    (other,) = [
        each
        for each in cells_of(load_spec(write_spec(audit__replays=1000, algorithms__1__privacy={"alpha": 2, "epsilon": [2]})))
        if each.is_private
    ]
    assert accumulate(other, folder, "n2", LEVEL).n_nights == 1


@pytest.mark.usefixtures("seeded_nights")
def test_a_leak_adds_up_over_nights_and_is_an_alarm(folder, cell, monkeypatch):
    """Noise for 1.15 times the epsilon: a night of 1000 replays wins about 0.5 nats and needs 3."""
    honest = replays.subject_of_cell(cell)
    leaking = cell.entry.build(replace(cell.in_audit(), privacy=replace(cell.in_audit().privacy, epsilon=1.15)))
    monkeypatch.setattr(
        replays, "subject_of_cell", lambda _: replace(honest, trial=replace(honest.trial, algorithm=leaking))
    )
    found = [accumulate(cell, folder, f"n{k:02}", LEVEL) for k in range(30)][-1]
    assert found.is_refuted
    steps = [after - before for before, after in zip(found.log10_evidence, found.log10_evidence[1:], strict=False)]
    assert max(steps) < found.log10_enough
    findings = Findings("small", fresh=[asdict(found)])
    assert findings.summary == "the nights together refute 1 of 1 claims"
    (event,) = events(findings)
    assert event["event"] == NIGHTS_FAILED
    assert "## Refuted by all nights together" in markdown(findings)
    shown = page("small", [Night(datetime.now(UTC), "a" * 64, "", fresh=findings.fresh)], {})
    assert "| **refuted**, " in shown
    assert " of 20 " in shown, "the evidence that refutes it at the level 0.05"


@pytest.mark.usefixtures("seeded_nights")
def test_a_page_shows_what_all_nights_say(folder, cell):
    for night in ("n1", "n2"):
        found = accumulate(cell, folder, night, LEVEL)
    shown = page("small", [Night(datetime.now(UTC), "a" * 64, "", fresh=[asdict(found)])], {})
    assert "## All nights together" in shown
    measured = f"µ ≥ {found.lower:.4g}" if found.lower > 0 else "-"
    odds = f"{10 ** found.log10_evidence[-1]:.3g} of {10**found.log10_enough:.3g}"
    row = f"| {found.label} | {measured} | {found.claimed:.4g} | {odds} {sparkline(found.log10_evidence)} | 2 |"
    assert row in shown
    assert "So far there were 2,000 replays on each side" in shown
    assert "at least 95%" in shown


def test_a_night_with_a_bet_that_is_no_number_is_not_kept(tmp_path):
    seen = SimpleNamespace(counts=np.zeros((2, 3)), n_replays=10, log_e=np.array([np.nan]), sums=np.zeros(3))
    with pytest.raises(ValueError, match="not JSON compliant"):
        fresh_nights._keep(tmp_path, "night", seen, NightlyClaims(Quantity("mu"), 1.0), {})
    assert not any(tmp_path.iterdir())
