"""The noise audit at its ends: outcomes that had no probability, and more released coordinates than it can look at."""

from types import SimpleNamespace

import numpy as np
import pytest

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb
from bandana.algorithms.environments.tables import RewardTable
from bandana.audits.searches import noise
from bandana.privacy_core import Interval, LiveLedger, Span
from bandana.privacy_core.ledger import Release


def test_an_outcome_without_probability_is_far_out_and_still_a_number():
    """Eight deviations: an infinite one would make each moment NaN, and no test of it fails."""
    mechanism = SimpleNamespace(log_probabilities=lambda scores: scores)
    scores = np.array([[0.0, -800.0], [-800.0, 0.0], [np.log(0.5), np.log(0.5)]])
    release = Release(mechanism, Span(0, 1), None, scores, np.array([1, 0, 0]))
    z = noise._standardize_selection(release, np.random.default_rng(1))
    assert z.shape == (3, 1)
    assert z[:2, 0] == pytest.approx(8.2, abs=0.1)
    assert abs(z[2, 0]) < 5


class _Wide:
    """An examination of so many released coordinates; another run releases one more."""

    def __init__(self, width):
        self.width, self.tried = width, []

    def __call__(self, algorithm, table, *, n_reps, seed):
        self.tried.append(n_reps)
        assert len(self.tried) < 9, "it never ends"
        if n_reps < 4 * (self.width + 1):
            self.width += 1
            raise noise.TooFewReplicatesError(self.width - 1, n_reps)


@pytest.mark.parametrize(
    ("width", "tried"),
    [(1023, [4096]), (1024, [4096, 5125]), (1920, [4096, 9605]), (14_000, [4096, 65_536]), (16_382, [4096, 65_536])],
)
def test_wide_noise_gets_a_quarter_more_replicates_than_it_needs(monkeypatch, width, tried):
    wide = _Wide(width)
    monkeypatch.setattr(noise, "examine", wide)
    assert noise.examine_noise(None, None, 1) is None
    assert wide.tried == tried


@pytest.mark.parametrize(("width", "tried"), [(16_383, [4096, 65_536]), (16_384, [4096])])
def test_coordinates_that_need_too_many_replicates_are_an_error(monkeypatch, width, tried):
    wide = _Wide(width)
    monkeypatch.setattr(noise, "examine", wide)
    with pytest.raises(ValueError, match="16384 released coordinates need n_reps of at least 65540"):
        noise.examine_noise(None, None, 1)
    assert wide.tried == tried


def test_another_error_of_an_algorithm_is_not_tried_again(monkeypatch):
    tried = []

    def examine(algorithm, table, *, n_reps, seed):
        tried.append(n_reps)
        raise ValueError("the algorithm's own")

    monkeypatch.setattr(noise, "examine", examine)
    with pytest.raises(ValueError, match="the algorithm's own"):
        noise.examine_noise(None, None, 1)
    assert tried == [4096]


def test_the_noise_of_both_runs_is_looked_at(monkeypatch):
    """Noise that is wrong in one run alone, as where a seed is read once, shows in that run."""
    looked_at = []
    monkeypatch.setattr(noise, "_dependence", lambda columns, level: looked_at.append(columns) or iter(()))
    unit = Interval(0.0, 1.0)
    table = RewardTable(np.zeros((16, 2)), unit)
    assert noise.examine(adar_ucb(2, 2.0, 1.0, 3.1, unit, "printed"), table) is None
    first, second = looked_at
    assert first is not second
    assert not np.array_equal(first.z, second.z, equal_nan=True)


def test_columns_without_any_noise_are_no_repetition():
    silent = noise._Columns(np.zeros((200, 1)), np.zeros(1, dtype=np.int64))
    assert list(noise._repetition(silent, silent, 1e-6)) == []


def test_the_ledger_of_a_noise_audit_knows_how_many_records_there_are(monkeypatch):
    """So that it refuses what is declared to read records beyond the last one."""
    lengths = []

    def live(n_reps, source, **options):
        lengths.append(options["n_records"])
        return LiveLedger(n_reps, source, **options)

    monkeypatch.setattr(noise, "LiveLedger", live)
    unit = Interval(0.0, 1.0)
    assert noise.examine(adar_ucb(2, 2.0, 1.0, 3.1, unit, "printed"), RewardTable(np.zeros((16, 2)), unit)) is None
    assert lengths == [16, 16]


def test_a_run_that_is_too_short_is_played_half(monkeypatch):
    """The first half shows that more replicates are needed: the other one is not played."""
    lengths = []

    def live(n_reps, source, **options):
        lengths.append(n_reps)
        return LiveLedger(n_reps, source, **options)

    monkeypatch.setattr(noise, "LiveLedger", live)
    unit = Interval(0.0, 1.0)
    table = RewardTable(np.zeros((1 << 20, 2)), unit)
    with pytest.raises(noise.TooFewReplicatesError) as few:
        noise.examine(adar_ucb(2, 2.0, 1.0, 3.1, unit, "printed"), table, n_reps=64, seed=1)
    assert lengths == [32]
    assert few.value.n_needed > 64
