"""One run with many canaries: scores that know no other coin, bounds below the truth, and faults above the claim."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from nightly import first

from bandana.algorithms.catalog import find
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.audits.bounds import one_run_methods
from bandana.audits.bounds.one_run_methods import METHODS, bound, n_guesses_for, plan
from bandana.audits.faults.releases import GENERIC, scaled_by
from bandana.audits.replays.one_run import CERTAIN, OneRun, _SharedAnswers, examine
from bandana.audits.testbeds.blocks import UNIT, RunningSumBed, trials
from bandana.privacy_core import (
    Exact,
    Gaussian,
    GaussianDP,
    Interval,
    Laplace,
    LiveLedger,
    LocalSum,
    PureDP,
    RenyiDP,
    ReproducibleNoise,
    Span,
    TreeSum,
)

CLAIM = GaussianDP(1.0)
DELTA = 1e-5
PLANTED = {control.name: control.plant for control in GENERIC}


def zeros(n_rounds):
    return RewardTable(np.zeros((n_rounds, 2)), UNIT)


def look(algorithm, n_rounds=1000, seed=0, claim=CLAIM, **more):
    return examine(algorithm, zeros(n_rounds), np.ones(2), seed, claim=claim, delta=DELTA, **more)


def lower(found: OneRun) -> dict[str, float]:
    return {each.method: each.lower for each in found.bounds}


def bed(name, n_rounds=1000):
    return trials(1.0, n_rounds)[name].algorithm


@cache
def simulated(mu, n, seed):
    """Scores and coins as of `n` Gaussian messages of mu."""
    rng = np.random.default_rng(seed)
    is_in = rng.integers(0, 2, n).astype(bool)
    x = np.where(is_in, mu / 2, -mu / 2) + rng.standard_normal(n)
    return (mu * x).astype(np.float32).astype(float), is_in


# --- scores --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Watching:
    """An algorithm, and what its releases were, in the first replicate."""

    honest: RunningSumBed
    seen: list

    def __getattr__(self, name):
        return getattr(self.honest, name)

    def absorb(self, sensitive, released, record, ledger):
        outer, seen = ledger, self.seen

        class Door:
            n_reps = outer.n_reps

            def release(self, mechanism, value, **more):
                exact = value.copy()
                output = outer.release(mechanism, value, **more)
                seen.append((exact, output.copy(), record.rewards.copy()))
                return output

        return self.honest.absorb(sensitive, released, record, Door())


@pytest.mark.parametrize("name", ["local", "gram-local"])
def test_a_local_score_is_the_log_ratio_of_the_record_s_own_message(name):
    seen = []
    found = look(Watching(bed(name, 200), seen), 200)
    del seen[:64]  # the pilot's
    assert found.is_local
    assert found.n_parted == 0
    np.testing.assert_array_equal(found.records, np.arange(200))
    mechanism = bed(name).sums.mechanism
    for place, (value, output, rewards) in enumerate(seen):
        assert rewards[0, 0] == float(found.is_in[place])
        assert rewards[1:, 0].tolist() == [0.0, 1.0]
        np.testing.assert_array_equal(output[1:], output[[0, 0]])
        ratio = mechanism.log_density_ratio(output[:1], value[1:2], value[2:3])
        assert found.scores[place] == pytest.approx(ratio[0], rel=1e-6)


def test_coins_are_fair_and_the_seed_s():
    first, again, other = (look(bed("local", 400), 400, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.scores, again.scores)
    assert first.bounds == again.bounds
    assert 0.3 < (first.is_in == other.is_in).mean() < 0.7
    assert (first.scores == first.scores.astype(np.float32)).all()


class Exclusive(RunningSumBed):
    """A local bed, but every second message is the noisy exclusive or of two rewards; it spans both."""

    def absorb(self, sensitive, released, record, ledger):
        reward, t = record.rewards[:, 0], int(record.user[0])
        last = sensitive.sum.memory.total
        if t % 2:
            span = Span(record.user - 1, record.user + 1)
            ledger.release(self.sums.mechanism, np.abs(reward - last), records=span)
        last[:] = reward
        return sensitive, released._replace(clock=released.clock + 1)


def test_guesses_that_would_be_right_in_pairs_are_not_made():
    """With the partner's coin known, either guess of a pair is right where the other is: 256 guesses would be 128."""
    bed = Exclusive(2, UNIT, LocalSum(Laplace(1.0, 1.0)))
    found = look(bed, 256, claim=PureDP(1.0), max_canaries=256)
    assert not found.is_local
    assert (found.scores == 0).all()
    assert lower(found) == {"one-run-epsilon": 0.0}
    # Where only every other record is a canary, its partner is known to everybody, and the message tells its coin.
    alone = look(bed, 512, claim=PureDP(1.0), max_canaries=256)
    assert ((alone.scores > 0) == alone.is_in).mean() > 0.6


def test_a_score_of_a_shared_sum_holds_no_coin_of_another_canary():
    """The same noise, and the same outputs but for one canary: its own score alone tells the coins apart by more."""
    tree = TreeSum(Gaussian(1.0, 1e4), 128)
    found = look(RunningSumBed(2, UNIT, tree), 128, claim=CLAIM, max_canaries=128)
    assert len(found.scores) == 128
    # With so much noise scores are nearly linear in the noise: were coins in them, half of the exact width would show.
    assert np.abs(found.scores).max() < 0.01


def test_a_replicate_by_replicate_release_scores_the_same():
    class OneByOne(RunningSumBed):
        def absorb(self, sensitive, released, record, ledger):
            class Door:
                n_reps = ledger.n_reps

                def release(self, mechanism, value, *, records, reps=None, carried=None):
                    rows = [
                        ledger.release(
                            mechanism, value[r : r + 1], records=Span(records.start[[r]], records.stop[[r]]),
                            reps=np.array([r]),
                        )
                        for r in range(len(value))
                    ]  # fmt: skip
                    return np.concatenate(rows)

            return super().absorb(sensitive, released, record, Door())

    for sums, lengths in ((LocalSum(Gaussian(1.0, 1.0)), (1, 1)), (TreeSum(Gaussian(1.0, 3.0), 10), (15, 15))):
        beds = (kind(2, UNIT, sums, lengths=lengths) for kind in (RunningSumBed, OneByOne))
        whole, single = (look(bed, 150, max_canaries=100) for bed in beds)
        assert single.n_parted == 0
        np.testing.assert_array_equal(whole.is_in, single.is_in)
        # The live ledger draws one number a release here and one a replicate there: alike in law only.
        assert single.scores.std() == pytest.approx(whole.scores.std(), rel=0.4)
        assert (single.scores != 0).all()


# --- bounds --------------------------------------------------------------------------------------------------------


def shares(name, n_seeds, mu=1.0, n=10_000, delta=DELTA, level=0.0125):
    """(n_seeds,) bounds over the truth."""
    epsilon = GaussianDP(mu).epsilon(delta)
    parameters = {
        "one-run-mu": {"n_guesses": n_guesses_for(n, GaussianDP(mu), level)},
        "one-run-epsilon": {"n_guesses": n_guesses_for(n, GaussianDP(mu), level), "delta": delta},
        "one-run-sequential": {"delta": delta, "around": epsilon},
        "one-run-sequential-mu": {"around": mu},
    }[name]
    found = [bound(name, *simulated(mu, n, seed), level, **parameters) for seed in range(n_seeds)]
    return np.array(found) / (mu if name.endswith("mu") else epsilon)


@pytest.mark.parametrize(
    ("name", "n_seeds", "least"),
    [
        ("one-run-mu", 30, 0.6),
        ("one-run-epsilon", 6, 0.4),
        pytest.param("one-run-sequential", 30, 0.45, marks=pytest.mark.nightly),
        pytest.param("one-run-sequential-mu", 30, 0.85, marks=pytest.mark.nightly),
    ],
)
def test_bounds_of_1e4_messages_stay_below_the_truth_and_come_near(name, n_seeds, least):
    """One is too large with probability 0.0125 at most: three or more of 30 with 0.006."""
    found = shares(name, n_seeds)
    assert (found > 1).sum() < 3
    assert np.median(found) > least


def test_at_a_delta_of_one_percent_the_sequential_bound_reaches_three_quarters():
    found = shares("one-run-sequential", 10, delta=1e-2)
    assert (found > 1).sum() < 2
    assert np.median(found) > 0.75


def test_a_pure_claim_is_reached_by_a_local_bed():
    bed = RunningSumBed(2, UNIT, LocalSum(Laplace(1.0, 1.0)))
    found = lower(look(bed, 4000, claim=PureDP(1.0)))
    assert set(found) == {"one-run-epsilon", "one-run-sequential"}
    assert 0.85 < found["one-run-sequential"] <= 1
    assert 0.85 < found["one-run-epsilon"] <= 1


def test_an_honest_local_bed_of_1e4_users_keeps_its_claim_and_spends_it():
    found = look(bed("local", 10_000), 10_000, seed=4)
    assert len(found.scores) == 10_000
    bounds = lower(found)
    assert set(bounds) == set(METHODS)
    assert 0.8 < bounds["one-run-sequential-mu"] <= 1
    assert 0.55 < bounds["one-run-mu"] <= 1
    epsilon = CLAIM.epsilon(DELTA)
    assert 0.4 * epsilon < bounds["one-run-sequential"] <= epsilon
    assert 0.4 * epsilon < bounds["one-run-epsilon"] <= epsilon
    assert found.scores.std() == pytest.approx(math.sqrt(1 + 0.25), rel=0.05)
    again = [bound(b.method, found.scores, found.is_in, b.level, **b.parameters) for b in found.bounds]
    assert again == [b.lower for b in found.bounds]
    assert sum(b.level for b in found.bounds) == pytest.approx(0.05)


def test_matrix_messages_are_as_good():
    bounds = lower(look(bed("gram-local", 2000), 2000, seed=1))
    assert 0.7 < bounds["one-run-sequential-mu"] <= 1


@pytest.mark.parametrize(
    "plant",
    first(1, [
        pytest.param(PLANTED["noise-sqrt2"], id="sqrt2"),
        pytest.param(scaled_by(2**-0.5), id="misdrawn"),
        pytest.param(PLANTED["noise-halved"], id="halved"),
        pytest.param(PLANTED["noise-reused"], id="reused"),
        pytest.param(lambda honest: RunningSumBed(2, UNIT, LocalSum(Exact())), id="exact"),
    ]),
)  # fmt: skip
def test_faulty_messages_are_caught(plant):
    assert max(value for name, value in lower(look(plant(bed("local", 3000)), 3000)).items() if "mu" in name) > 1.1


def test_exact_messages_betray_every_coin():
    found = look(RunningSumBed(2, UNIT, LocalSum(Exact())), 200)
    np.testing.assert_array_equal(found.scores, np.where(found.is_in, CERTAIN, -CERTAIN))


@pytest.mark.parametrize("name", first(1, ["tree", "factorized", "gram-joint", "repeated"]))
def test_shared_sums_give_valid_and_weak_bounds(name):
    found = [look(bed(name, 256), 256, seed) for seed in range(4)]
    for each in found:
        assert not each.is_local
        assert len(each.scores) == 256
        assert set(lower(each)) == {"one-run-mu", "one-run-epsilon"}
        assert max(lower(each).values()) < 0.7
    right = np.mean([((each.scores > 0) == each.is_in).mean() for each in found])
    assert right > 0.5


def test_a_catalog_algorithm_takes_the_general_path():
    entry = find("adar-ucb")
    algorithm = entry.build(entry.settings(Problem(2, UNIT), "tight", RenyiDP(2.0, 1.0)))
    found = look(algorithm, 2000)
    assert not found.is_local
    assert len(found.records) == 256
    assert (found.records[0], found.records[-1]) == (0, 1999)
    assert lower(found)["one-run-mu"] <= 1


@pytest.mark.parametrize("name", ["local", "elimination"])
def test_decisions_from_exact_values_are_counted_as_partings(name):
    """They tell the coins in ways that scores cannot: the deterministic audit proves them, this one just says so."""
    found = look(PLANTED["decides-from-exact"](bed(name, 256)), 256)
    assert found.n_parted > 0
    assert np.isfinite(found.scores).all()
    assert look(bed(name, 256), 256).n_parted == 0


def test_a_release_that_comes_late_is_not_for_the_sequential_bound():
    class Late(RunningSumBed):
        """The message of a round leaves in the next one."""

        def absorb(self, sensitive, released, record, ledger):
            last = sensitive.sum.memory.total
            if record.user[0] > 0:
                ledger.release(self.sums.mechanism, last.copy(), records=Span(record.user - 1, record.user.copy()))
            last[:] = record.rewards[:, 0]
            return sensitive, released._replace(clock=released.clock + 1)

    found = look(Late(2, UNIT, LocalSum(Gaussian(1.0, 1.0))), 400)
    assert found.is_local
    assert set(lower(found)) == {"one-run-mu", "one-run-epsilon"}
    assert found.scores[-1] == 0
    assert ((found.scores > 0) == found.is_in)[:-1].mean() > 0.6


def test_the_run_is_the_one_that_a_live_ledger_makes():
    """What the batch's first replicate does is a run like any other: its outputs are exact values plus declared noise."""
    seen = []
    look(Watching(bed("tree", 128), seen), 128, max_canaries=128)
    live = seen[64:]
    noise = np.array([output[0] - value[0] for value, output, _ in live])
    mechanism = bed("tree", 128).sums.mechanism
    assert len(noise) == 128
    assert noise.std() == pytest.approx(mechanism.deviation, rel=0.25)
    ledger = LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(0)))
    run(bed("tree", 128), zeros(128), ledger)
    assert ledger.guarantee().mu == pytest.approx(1.0)


# --- input ---------------------------------------------------------------------------------------------------------


def test_unusable_input_is_named():
    local = bed("local", 200)

    def asked(data=None, neighbor=(1.0, 1.0), **more):
        return examine(local, data or zeros(200), neighbor, 0, **{"claim": CLAIM, "delta": DELTA, **more})

    wide = RewardTable(np.zeros((200, 2)), Interval(0.0, 2.0))
    with pytest.raises(ValueError, match=r"data must lie in the algorithm's range \[0, 1\].*got \[0, 2\]"):
        asked(wide)
    with pytest.raises(ValueError, match="data must have the algorithm's 2 arms, got 3"):
        asked(RewardTable(np.zeros((200, 3)), UNIT), (1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="at least 100 canaries, got 99"):
        asked(zeros(99))
    with pytest.raises(ValueError, match="at least 100 canaries, got 50"):
        examine(bed("tree", 200), zeros(200), (1.0, 1.0), 0, claim=CLAIM, delta=DELTA, max_canaries=50)
    with pytest.raises(ValueError, match=r"neighbor must be of shape \(200, 2\) or \(2,\), got \(3,\)"):
        asked(neighbor=(1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match=r"neighbor must hold rewards in \[0, 1\], the range of data; got 1.5"):
        asked(neighbor=(1.0, 1.5))
    with pytest.raises(ValueError, match="neighbor must differ from data in every row, got the same in row 0"):
        asked(neighbor=(0.0, 0.0))
    with pytest.raises(ValueError, match="delta"):
        asked(delta=0.0)
    with pytest.raises(ValueError, match="level"):
        asked(level=1.0)
    with pytest.raises(ValueError, match="max_canaries must be a whole number"):
        examine(bed("tree", 200), zeros(200), (1.0, 1.0), 0, claim=CLAIM, delta=DELTA, max_canaries=0)


def test_bounds_refuse_what_they_cannot_use():
    scores, is_in = simulated(1.0, 200, 0)
    assert bound("one-run-mu", scores, is_in, 0.05, n_guesses=1000) == bound(
        "one-run-mu", scores, is_in, 0.05, n_guesses=200
    )
    for match, name, args, parameters in (
        ("name must be one of", "mu-curve", (scores, is_in), {}),
        ("one-run-epsilon needs the parameter 'delta'", "one-run-epsilon", (scores, is_in), {"n_guesses": 5}),
        ("one-run-mu needs the parameter 'n_guesses'", "one-run-mu", (scores, is_in), {}),
        ("is_in must hold a bool", "one-run-mu", (scores, is_in.astype(float)), {"n_guesses": 5}),
        ("is_in must hold a bool", "one-run-mu", (scores, is_in[:-1]), {"n_guesses": 5}),
        ("at least 100 canaries, got 99", "one-run-mu", (scores[:99], is_in[:99]), {"n_guesses": 5}),
        ("no NaN, got 200", "one-run-mu", (scores * np.nan, is_in), {"n_guesses": 5}),
        ("n_guesses must be a whole number of at least 1", "one-run-mu", (scores, is_in), {"n_guesses": 0}),
        ("around must be a finite number above 0", "one-run-sequential-mu", (scores, is_in), {"around": 0.0}),
    ):
        with pytest.raises(ValueError, match=match):
            bound(name, *args, 0.05, **parameters)
    with pytest.raises(ValueError, match="level"):
        bound("one-run-mu", scores, is_in, 0.0, n_guesses=5)


def test_numbers_of_guesses_come_from_the_claim_alone():
    assert n_guesses_for(10_000, PureDP(1.0), 0.05) == int(4750 * (1 + math.exp(-1)))
    counts = [n_guesses_for(m, GaussianDP(mu), 0.0125) for m in (100, 1000) for mu in (0.1, 1.0, 10.0)]
    assert all(1 <= n <= m for n, m in zip(counts, np.repeat([100, 1000], 3), strict=True))
    assert one_run_methods.n_guesses_for(1000, GaussianDP(0.1), 0.0125) < 1000


def test_who_has_parted_hears_no_answer_again():
    """Canary 0 is in its second place: it asks for another record than the live one, and then for the same."""
    answers = _SharedAnswers(1, False, np.zeros(4, dtype=bool), ReproducibleNoise(np.random.SeedSequence(0)))

    def ask(rep, record, value):
        span = Span(np.array([record]), np.array([record + 1]))
        return float(answers.release(Gaussian(1.0, 1.0), np.array([[value]]), records=span, reps=np.array([rep]))[0, 0])

    first, second = ask(0, 0, 1.0), ask(0, 1, 1.0)
    assert [ask(2, 0, 5.0), ask(2, 1, 5.0)] == [first, second]
    assert [ask(1, 3, 7.0), ask(1, 1, 7.0)] == [7.0, 7.0]
    assert answers.parted.tolist() == [False, True, False]


@pytest.mark.parametrize(("epsilon", "around"), [(2.0, 2.0), (1e-5, 1e-3)])
def test_a_bet_is_planned_around_the_claim_and_never_around_nothing(epsilon, around):
    planned = plan(100, PureDP(epsilon), 0.0, 0.05, is_sequential=True)
    assert planned[-1].method == "one-run-sequential"
    assert planned[-1].parameters["around"] == around
