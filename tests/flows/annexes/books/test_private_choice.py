"""Private choices of tuned values: charged like runs, by the exponential mechanism, and refused as a whole."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import yaml

from bandana.flows.annexes.books.bookkeeping.book import BudgetBook
from bandana.flows.annexes.books.private_choice import choose_privately, mechanism_of
from bandana.flows.folder.settings import DataFolder
from bandana.flows.own.data import pinned
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.running.side_by_side import Workers
from bandana.flows.spec.spec import load_spec
from bandana.flows.suites import steps
from bandana.flows.texts.mistakes import BookError, SpecError
from bandana.privacy_core import BoundedRangeEvent

tuning = pytest.importorskip("bandana.flows.annexes.planning.tuning")


@pytest.fixture
def private(tmp_path):
    """A spec that tunes on a private table with a book, and its data folder."""
    (tmp_path / "people.csv").write_text("a,b\n" + "0,1\n0,1\n1,0\n" * 100)

    def written(budget=3.0, epsilon=0.5, **tuning):
        tree = {
            "name": "people", "seed": 3, "horizon": 300, "replications": 2,
            "environment": {
                "kind": "table", "path": "people.csv",
                "data": {"book": "people", "budget": {"epsilon": budget, "delta": 1e-6}},
            },
            "algorithms": [
                {"algorithm": "adar-ucb", "calibrations": "tight", "privacy": {"alpha": 2, "epsilon": [0.001, 0.002]}},
            ],
            "tuning": {"parameter": "beta", "values": [3.5, 4, 5], "replications": 2, "epsilon": epsilon, **tuning},
        }  # fmt: skip
        place = tmp_path / "people.yaml"
        place.write_text(yaml.safe_dump(tree))
        return load_spec(place)

    return written, DataFolder.open(tmp_path / "data")


def trials_of(spec, folder):
    return {value: Plan.of(spec.with_trial(value), folder.root) for value in spec.tuning.values}


def test_a_tuning_on_private_rows_is_charged_with_its_choices_and_shows_no_regret(private, monkeypatch):
    written, folder = private
    with Workers(1) as pool:
        here = partial(steps.benchmark, workers=pool)
        monkeypatch.setattr(tuning, "run_step", lambda _, trials, data, __: here(trials, DataFolder(Path(data))))
        _check_private_tuning(written, folder)


def _check_private_tuning(written, folder):
    spec = written()
    done = tuning.tune(spec, trials_of(spec, folder), str(folder.root))
    state = BudgetBook(str(folder.book("people"))).state()
    choices = [charge for charge in state.charges if charge.facts["cell"].startswith("choice of beta for ")]
    assert [dict(charge.events) for charge in choices] == [{BoundedRangeEvent(0.5 * (1 + 1e-12)): 1}] * 2
    assert sum(charge.facts["replications"] for charge in state.charges) == 3 * 2 * 2 + 2
    assert all(charge.is_settled for charge in state.charges)
    assert set(done.chosen.values()) <= {3.5, 4, 5}
    assert "exponential mechanism with epsilon 0.5" in done.rule
    assert {(each.mean, each.low, each.high) for each in done.tried["adar-ucb tight eps=0.001"]} == {(None, None, None)}
    again = tuning.tune(spec, trials_of(spec, folder), str(folder.root))
    assert again == done, "a choice that was drawn stays"
    assert len(BudgetBook(str(folder.book("people"))).entries()) == len(state.entries)
    assert {cell.settings.parameters["beta"] for cell in cells_of(pinned(spec, folder.root))} == set(done.chosen.values())


def test_trials_and_choices_are_refused_as_a_whole(private):
    written, folder = private
    spec = written(budget=0.6)
    with pytest.raises(BookError, match=r"out of budget: .* nothing was drawn"):
        tuning.tune(spec, trials_of(spec, folder), str(folder.root))
    assert not folder.results.exists()
    assert BudgetBook(str(folder.book("people"))).entries() == []


def test_a_choice_moves_by_no_more_than_its_sensitivity(private):
    """Replacing a row moves the scores of fixed actions within an interval of twice the reward range."""
    written, folder = private
    cell = cells_of(pinned(written(), folder.root).with_trial(4.0))[0]
    mechanism, generator = mechanism_of(cell), np.random.Generator(np.random.SFC64(1))
    assert (mechanism.sensitivity_range, mechanism.event.epsilon) == (2.0, 0.5)
    rows = generator.integers(0, 2, (300, 2)).astype(float)
    found = 0.0
    for trial in range(200):
        shares = np.concatenate([generator.random(4), [0.0, 1.0]])  # of rounds on which the second arm was played
        other = rows.copy()
        other[trial] = generator.integers(0, 2, 2)
        means = np.stack([rows.mean(axis=0), other.mean(axis=0)])
        regret = 300 * (means.max(axis=1)[:, None] - means[:, :1] * (1 - shares) - means[:, 1:] * shares)
        found = max(found, float(np.ptp(regret[1] - regret[0])))
    assert 1.9 < found <= 2.0 + 1e-9


def test_a_choice_prefers_little_regret_by_the_laws_of_its_mechanism(private):
    """Regrets 0 and 200 at range 2 and epsilon 0.5: the other is chosen with probability 1 / (1 + e^50), below 1e-21."""
    written, folder = private
    cell = cells_of(pinned(written(), folder.root).with_trial(4.0))[0]
    assert choose_privately(cell, [200.0, 0.0]) == 1
    assert len(BudgetBook(str(folder.book("people"))).state().charges) == 1


@pytest.mark.parametrize(("epsilon", "said"), [(None, "a choice on rows with a budget book is a release; give its epsilon")])
def test_a_private_choice_needs_an_epsilon(private, epsilon, said):
    with pytest.raises(SpecError, match=rf"tuning\.epsilon: {said}"):
        private[0](epsilon=epsilon)
