"""Contests: who is in the confidence set of the best, and who has learned nothing, by hand and by simulation."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_rel

from bandana.audits.reporting.intervals import p_values
from bandana.flows.annexes.leaderboard.contest import FAILURE, contest

N = 20


def drawn(mean, seed, n=N):
    return np.random.default_rng(seed).normal(mean, 1.0, n)


def test_a_p_value_is_that_of_the_paired_test_and_says_nothing_of_one_replication():
    values, others = drawn(0.0, 1), drawn(0.4, 2)
    both = p_values(np.array([values - others, others - values]))
    assert both[0] == pytest.approx(ttest_rel(values, others, alternative="less").pvalue)
    assert both.sum() == pytest.approx(1)
    # One replication; equal rows; and differences without any spread, in both directions.
    assert p_values(np.array([[-4.0]])).tolist() == [1]
    assert p_values(np.array([np.zeros(N), np.full(N, -3.0), np.full(N, 3.0)])).tolist() == [1, 0, 1]


def test_pairing_tells_rows_apart_that_an_easy_or_hard_replication_moves_alike():
    hard = 100 * drawn(0.0, 3)
    ended = contest({"good": hard, "worse": hard + 1 + 0.1 * drawn(0.0, 4)}, {})
    assert ended == ("good", ("good",), ())


def test_holm_s_method_by_hand():
    """Three rows, six ordered pairs: the smallest p-value is held against 5 % / 6, the next against 5 % / 5, and so on."""
    differences = {"b": drawn(0.62, 5), "c": drawn(2.0, 6)}
    rows = {"a": np.zeros(N)} | differences
    chances = {
        (worse, better): ttest_1samp(rows[worse] - rows[better], 0, alternative="greater").pvalue
        for worse in rows
        for better in rows
        if worse != better
    }
    out, left = set(), len(chances)
    for (worse, _), chance in sorted(chances.items(), key=lambda item: item[1]):
        if chance > FAILURE / left:
            break
        out.add(worse)
        left -= 1
    ended = contest(rows, {})
    assert set(rows) - set(ended.best) == out
    assert "c" in out
    assert ended.best[0] == ended.first


MANY = pytest.mark.parametrize(("n", "most"), [(100, 16), pytest.param(400, 40, marks=pytest.mark.nightly)])
"""Contests, of which 5 % may err; as many as `most` would be more than chance (4e-5 of 100, 6e-5 of 400)."""


@MANY
def test_equally_good_rows_are_all_in_the_set_with_95_percent_together(n, most):
    """The level allows one in 20 contests of six equal rows to leave one out."""
    generator = np.random.default_rng(7)
    short = sum(len(contest({str(i): generator.normal(size=N) for i in range(6)}, {}).best) < 6 for _ in range(n))
    assert short < most


def test_a_clearly_worse_row_is_out_however_many_play():
    rows = {str(i): drawn(0.0, i) for i in range(8)} | {"bad": drawn(5.0, 99)}
    assert "bad" not in contest(rows, {}).best


def test_nobody_wins_who_does_not_beat_what_needs_no_learning():
    good, bad = drawn(5.0, 11), drawn(9.0, 12)
    uniform, constant = np.full(N, 8.0), np.full(N, 5.0)
    assert contest({"good": good, "bad": bad}, {"uniform": uniform}).not_beaten == ()
    ended = contest({"good": good, "bad": bad}, {"uniform": uniform, "constant": constant})
    assert ended.first == "good"
    assert ended.not_beaten == ("constant",)
    assert contest({"bad": bad}, {"uniform": uniform}).not_beaten == ("uniform",)
    assert contest({"one": good[:1]}, {"uniform": uniform[:1]}).not_beaten == ("uniform",), "one replication shows nothing"


@MANY
def test_the_least_of_many_that_learned_nothing_is_not_called_better(n, most):
    """Each of eight rows is as good as uniform play: at 5 % a third of contests would have a winner at 5 % for the least."""
    generator = np.random.default_rng(13)
    uniform = np.zeros(N)
    winners = sum(
        not contest({str(i): generator.normal(size=N) for i in range(8)}, {"uniform": uniform}).not_beaten
        for _ in range(n)
    )
    assert winners < most
