"""The audit of any release on a given pair: how it is called, how its outputs become numbers, and what is refuted.

Seeds are fixed. Each honest release would be refuted with probability at most 0.05 by other seeds. The leaks of the
broken ones are far from the claim.
"""

import functools
import itertools
import math
import threading

import numpy as np
import pytest
from nightly import first

from bandana.audits.outcome import Effort, Verdict
from bandana.flows.annexes.anything.outputs.calls import Batch, BrokenSubject, Raised, inspect_call
from bandana.flows.annexes.anything.outputs.encoding import Encoder, joined
from bandana.flows.annexes.anything.pairs import stages
from bandana.flows.annexes.anything.pairs.release import LEAST_RUNS, Samples, draw, examine
from bandana.flows.annexes.anything.pairs.stages import FIRST, audit_subject
from bandana.flows.annexes.anything.pairs.subject import Subject
from bandana.privacy_core import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP

ON, OFF = [1.0], [0.0]


def noise(seed):
    return np.random.default_rng(seed)


def laplace(data, seed, scale=1.0):
    return float(np.sum(data)) + noise(seed).laplace(0, scale)


def gaussian(data, seed, sigma=1.0):
    return float(np.sum(data)) + sigma * noise(seed).normal()


def many_gaussian(data, seeds):
    return np.sum(data) + np.array([noise(seed).normal() for seed in np.atleast_1d(seeds)])


def flagged(n_runs):
    """Shows the exact sum in one run of a hundred."""
    rng = noise(0)
    exact = np.repeat([0.0, 1.0], n_runs)
    shown = np.where(rng.random(2 * n_runs) < 0.01, exact, exact + rng.normal(size=2 * n_runs))
    return Samples(shown[:n_runs], shown[n_runs:])


def in_words(data, seed):
    return f"about {gaussian(data, seed):.3f} people"


def answer(data, seed, lie=0.2689414):
    return "yes" if (noise(seed).random() < lie) != (np.sum(data) > 0) else "no"


def record(data, seed):
    rng = noise(seed)
    return {"mean": float(np.sum(data)) + rng.normal(), "label": "abc"[rng.integers(3)], "queries": [1, None, True]}


def longer(data, seed):
    """Its length tells the data, its numbers nothing."""
    return noise(seed).normal(size=3 + (noise(seed).random() < 0.1) * int(np.sum(data)))


def raising(data, seed):
    rng = noise(seed)
    if rng.random() < 0.05 * np.sum(data):
        raise ValueError("negative")
    return rng.normal()


def product(data, seed):
    """Two numbers, each of which says nothing, and their product's sign says all."""
    rng = noise(seed)
    x, y = rng.normal(size=2)
    return [x, abs(y) * np.sign(x) * (1 if np.sum(data) else -1)]


def audited(function, claim, n_runs=8000, **options):
    caller = inspect_call(function, OFF, ON, 0)
    return examine(draw(caller, OFF, ON, n_runs, 0, 60.0), claim, **options)


@pytest.mark.parametrize(
    ("function", "claim"),
    first(
        3,
        [
            (laplace, PureDP(1.0)),
            (laplace, ApproxDP(1.0, 1e-5)),
            (laplace, GaussianDP(1.24)),
            (gaussian, GaussianDP(1.0)),
            (gaussian, ZCDP(0.5)),
            (gaussian, RenyiDP(2.0, 1.0)),
            (gaussian, ApproxDP(4.3772, 1e-5)),
            (in_words, GaussianDP(1.01)),
            (answer, PureDP(1.0)),
            (record, GaussianDP(1.0)),
            (lambda data, seed: 0.5, PureDP(0.1)),
            (lambda data, seed: noise(seed).integers(5), PureDP(0.1)),
        ],
    ),
)
def test_honest_releases_are_not_refuted(function, claim):
    assert audited(function, claim).verdict is Verdict.NOT_REFUTED


@pytest.mark.parametrize(
    ("function", "claim"),
    first(
        3,
        [
            (functools.partial(laplace, scale=0.5), PureDP(1.0)),
            (functools.partial(gaussian, sigma=0.5), GaussianDP(1.0)),
            (functools.partial(gaussian, sigma=0.5), ZCDP(0.5)),
            (functools.partial(gaussian, sigma=0.5), RenyiDP(2.0, 1.0)),
            (functools.partial(gaussian, sigma=0.3), ApproxDP(4.3772, 1e-5)),
            (in_words, GaussianDP(0.8)),
            (functools.partial(answer, lie=0.1), PureDP(1.0)),
            (record, GaussianDP(0.8)),
            (longer, GaussianDP(1.0)),
            (raising, GaussianDP(1.0)),
            (product, GaussianDP(1.0)),
            (product, PureDP(3.0)),
        ],
    ),
)
def test_broken_releases_are_refuted(function, claim):
    outcome = audited(function, claim)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.measured > outcome.limit


@pytest.mark.nightly
def test_a_flag_of_one_in_a_hundred_is_seen_where_the_coverage_says_so():
    for claim in (GaussianDP(1.0), ApproxDP(4.3772, 1e-5), PureDP(5.0)):
        outcome = examine(flagged(100_000), claim)
        assert outcome.rarest is not None
        assert outcome.rarest <= 0.01
        assert outcome.verdict is Verdict.FAIL


def test_the_coverage_says_what_too_few_runs_leave_out():
    outcome = examine(flagged(4000), ApproxDP(4.3772, 1e-5))
    assert outcome.verdict is Verdict.NOT_REFUTED
    assert outcome.rarest is not None
    assert outcome.rarest > 0.01
    assert "events of one side with probability" in outcome.read


def showing_data(n_runs, probability, seed=0):
    """Gaussian noise for (1, 1e-5)-DP, and in few runs none at all."""
    rng = noise(seed)
    exact = np.repeat([0.0, 1.0], n_runs)
    shown = np.where(rng.random(2 * n_runs) < probability, exact, exact + rng.normal(0, 3.73, size=2 * n_runs))
    return Samples(shown[:n_runs], shown[n_runs:])


def test_what_is_shown_more_often_than_delta_is_refuted_from_the_probability_that_is_stated():
    outcome = examine(showing_data(100_000, 2e-3), ApproxDP(1.0, 1e-5))
    assert outcome.verdict is Verdict.FAIL
    assert str(outcome.bounds[1].quantity) == "delta at epsilon 1"
    assert 1e-3 < outcome.bounds[1].lower < 2e-3
    assert outcome.rarest is not None
    assert outcome.rarest < 5e-4
    assert examine(showing_data(100_000, 1.5 * outcome.rarest), ApproxDP(1.0, 1e-5)).verdict is Verdict.FAIL


@pytest.mark.parametrize("seed", range(3))
def test_a_gaussian_keeps_its_delta(seed):
    """Each is refuted with probability at most 0.05; seeds are fixed."""
    outcome = examine(showing_data(8000, 0.0, seed), ApproxDP(1.0, 1e-5), seed=seed)
    assert outcome.verdict is Verdict.NOT_REFUTED
    assert math.fsum(bound.level for bound in outcome.bounds) == pytest.approx(0.05)


def test_a_claim_out_of_reach_is_inconclusive():
    outcome = audited(gaussian, PureDP(20.0), n_runs=1000)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "cannot refute the claim" in outcome.reasons[0]


def test_exceptions_count_as_outputs_and_are_noted():
    assert any("runs raised ValueError" in line for line in audited(raising, GaussianDP(1.0)).coverage)


@pytest.mark.parametrize(
    ("function", "name", "batch"),
    [
        (lambda data, seed: noise(seed).normal(), "seed", Batch.NONE),
        (lambda d, key_of_noise: noise(key_of_noise).normal(), "key_of_noise", Batch.NONE),
        (many_gaussian, "seeds", Batch.SEEDS),
        (lambda data, rng: rng.normal(), "rng", Batch.NONE),
        (lambda data: np.random.default_rng().normal(), None, Batch.NONE),
        (lambda data, seed, n_runs: noise(seed).normal(size=n_runs), "seed", Batch.SIZE),
        (lambda data, seed, n=7: noise(seed).normal(size=3), "seed", Batch.NONE),
    ],
)
def test_how_a_function_is_called(function, name, batch):
    caller = inspect_call(function, OFF, ON, 0)
    assert (caller.seed, caller.batch) == (name, batch)
    assert len(caller.runs(OFF, [1, 2, 3])) == 3


def test_callable_objects_and_keyword_only_seeds_are_accepted():
    class Release:
        def __call__(self, x, *, random_state=None):
            return gaussian(x, random_state)

    caller = inspect_call(Release(), OFF, ON, 0)
    assert caller.seed == "random_state"
    assert caller.runs(OFF, [5])[0] == gaussian(OFF, 5)


def test_a_list_of_numbers_becomes_an_array_where_the_function_needs_one():
    caller = inspect_call(lambda data, seed: data.mean() + noise(seed).normal(), [0.0, 1.0], [1.0, 1.0], 0)
    assert caller.as_array


def test_the_data_are_not_changed_by_the_function():
    data = [1.0, 0.0]

    def changing(data, seed):
        data.append(1.0)
        return len(data)

    assert inspect_call(changing, data, data, 0).runs(data, [1, 2]) == [3, 3]
    assert data == [1.0, 0.0]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (3, "no function of"),
        (lambda: 1, "takes no data"),
        (lambda data, seed, epsilon: 1, "needs epsilon besides data and seed"),
        (lambda data, seed, n_runs: 1.0, "must return as many outputs"),
    ],
)
def test_functions_that_cannot_be_called_are_refused(function, words):
    with pytest.raises(BrokenSubject, match=words):
        inspect_call(function, OFF, ON, 0)


def test_a_state_between_runs_is_refused():
    last = [0.0]

    def drifting(data, seed):
        last[0] = 0.9 * last[0] + noise(seed).normal()
        return last[0] + np.sum(data)

    with pytest.raises(BrokenSubject, match="runs are not independent"):
        audited(drifting, GaussianDP(1.0))


def test_a_counter_is_refused():
    """Coins decide which side runs first, so that a counter tells nothing of the side."""
    counter = itertools.count()
    with pytest.raises(BrokenSubject, match="runs are not independent"):
        audited(lambda data: next(counter), GaussianDP(1.0))


def test_a_slow_function_ends_with_its_time():
    clock = itertools.count()

    def slow(data, seed):
        next(clock)
        return gaussian(data, seed)

    samples = draw(inspect_call(slow, OFF, ON, 0), OFF, ON, 10**9, 0, 1.0)
    assert samples.is_cut
    assert LEAST_RUNS <= len(samples.data) == len(samples.neighbor)
    outcome = examine(samples, GaussianDP(1.0))
    assert any("more --seconds" in line for line in outcome.coverage)


def test_samples_in_any_order_are_audited():
    rng = noise(0)
    data, neighbor = np.sort(rng.normal(size=5000)), np.sort(rng.normal(3, 1, size=6000))
    assert examine(Samples(data, neighbor), GaussianDP(1.0), shuffled=True).verdict is Verdict.FAIL
    assert examine(Samples(data, data[::-1]), GaussianDP(1.0), shuffled=True).verdict is Verdict.NOT_REFUTED


def test_nan_everywhere_is_refused():
    with pytest.raises(BrokenSubject, match="every output is NaN"):
        audited(lambda data, seed: float("nan"), GaussianDP(1.0))


def test_outputs_are_taken_apart():
    outputs = [{"a": 1.5, "b": "x"}, {"a": None, "b": "y 2.5"}, Raised("ValueError", "no"), [1, 2]]
    table = Encoder.learn(outputs, outputs).table(outputs)
    assert len(np.unique(table, axis=0)) == 4
    assert 1.5 in table[0]
    assert 2.5 in table[1]


def test_labels_that_were_not_learned_have_one_number():
    encoder = Encoder.learn(["a"], ["b"])
    first, second, known = encoder.table(["c", "d", "a"])
    assert first[0] == second[0] != known[0]
    assert first[-1] != second[-1]  # their bytes


def test_numbers_of_one_shape_become_one_array():
    assert isinstance(joined([[1.0, 2.0], [3.0]]), np.ndarray)
    assert isinstance(joined([[1.0, 2], [3]]), list)  # the types are seen too
    assert isinstance(joined([[np.ones(2)], [np.ones(3)]]), list)
    assert isinstance(joined([["1"], [2]]), list)


def staged(function, claim, n_runs=2000):
    subject = Subject(inspect_call(function, OFF, ON, 0), OFF, ON)
    return audit_subject(subject, claim, Effort(n_runs, 0.95, 1e-5, 1, 0), 60.0)


def test_what_cannot_be_read_forbids_silence():
    outcome = staged(lambda data, seed: [gaussian(data, seed), threading.Lock()], GaussianDP(1.0))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "not all of an output was read: [1]: _thread.lock" in outcome.reasons[0]
    assert "but not [1]: _thread.lock" in outcome.read


def test_values_beyond_the_limit_are_counted():
    encoder = Encoder.learn([["x", *range(50_010)]], [["x", *range(50_010)]])
    assert any(words.startswith(("read 50000 of", "#rest")) for words in encoder.unread)


def test_constant_outputs_with_missing_numbers_are_called_constant():
    outcome = staged(lambda data, seed: [float("nan"), 3.0], PureDP(0.1))
    assert outcome.verdict is Verdict.NOT_REFUTED
    assert any(line.startswith("every output is the same") for line in outcome.coverage)
    assert all(control.is_caught for control in outcome.tried)


def test_a_planted_fault_that_is_missed_forbids_silence(monkeypatch):
    monkeypatch.setattr(stages, "QUICK", (("invisible", "nothing", lambda output, *_: output),))
    outcome = staged(gaussian, GaussianDP(1.0))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "the audit missed the planted fault invisible" in outcome.reasons[0]


def test_first_runs_decide_where_they_can():
    outcome = staged(functools.partial(laplace, scale=0.2), PureDP(1.0), n_runs=50_000)
    assert (outcome.verdict, outcome.n_runs) == (Verdict.FAIL, FIRST)


def test_the_same_seed_gives_the_same_outcome():
    assert audited(laplace, PureDP(1.0)).entry("x")["measured"] == audited(laplace, PureDP(1.0)).entry("x")["measured"]


@pytest.mark.parametrize("n", [0, 399])
def test_too_few_outputs_are_refused_in_words(n):
    outputs = [["a", 1.0]] * n
    with pytest.raises(BrokenSubject, match=f"at least 400 outputs, got {n} and {n}"):
        examine(Samples(outputs, outputs), PureDP(1.0))
