"""The engine of all audits: what it looks at, how it splits its confidence, and what each of its searches adds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from whole_evidence import assert_follows_from_its_scores

from bandana.audits.audit import audit
from bandana.audits.bounds.methods import method_of
from bandana.audits.bounds.power import smallest_factor_caught
from bandana.audits.claims import Quantity, parse
from bandana.audits.evidence import write
from bandana.audits.faults.releases import RELEASED_AGAIN, planted, through, weakened
from bandana.audits.faults.sums import CONTROLS_OF_SUMS
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import (
    DETERMINISTIC,
    MU,
    NOISE,
    ONE_RUN,
    SAMPLING,
    Effort,
    Setup,
    Verdict,
    accounted_as,
    accounted_mu,
)
from bandana.audits.plan import PlannedBound, plan_bounds
from bandana.audits.replays.attacks import ACTIONS, REPORT, TRANSCRIPT
from bandana.audits.replays.measure import Measurement, measure, rounded
from bandana.audits.replays.replay import replay_both
from bandana.audits.searches.noise import examine_noise
from bandana.audits.searches.request import Finding, Request
from bandana.audits.searches.sampling import Sampling, power_of
from bandana.audits.subjects import subjects
from bandana.privacy_core import (
    ConcentratedEvent,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    PureDP,
    TrustModel,
)

EFFORT = Effort(replays=4000, confidence=0.95, delta=1e-5, examples=20, seed=7)
LABELS = list(subjects())
CLAIMS = [
    "gdp(mu=1, relation=reward)", "rdp(alpha=2, epsilon=1, relation=reward)", "zcdp(rho=0.5, relation=reward)",
    "pure(epsilon=1, relation=reward)", "approx(epsilon=1, delta=1e-5, relation=reward)",
    "gdp(mu=1, relation=reward, trust=local)",
]  # fmt: skip


@pytest.mark.parametrize("text", CLAIMS)
def test_looks_share_the_failure_probability_and_none_stands_twice(text):
    stated = parse(text).stated
    plan = plan_bounds(stated, 1e-5)
    assert sum(planned.share for planned in plan) == pytest.approx(1)
    assert plan[0].view == TRANSCRIPT
    assert plan[0].share == 0.8
    assert len({(planned.view, planned.quantity) for planned in plan}) == len(plan)
    assert {TRANSCRIPT, ACTIONS} <= {planned.view for planned in plan}
    assert ({REPORT, ONE_RUN} <= {planned.view for planned in plan}) == (stated.trust is TrustModel.LOCAL)
    assert (TRANSCRIPT, Quantity.of(stated)) in {(planned.view, planned.quantity) for planned in plan}


def _pairs(label="adar-ucb tight"):
    trial = subjects()[label]().trial
    return trial, canary_pairs(trial.table, trial.probes)


def test_power_knows_of_how_many_parts_a_pure_loss_consists():
    request = Request(subjects()["dp-ucb tight"]().trial, EFFORT, 0.05)
    share = plan_bounds(request.trial.claim.stated, EFFORT.delta, request.events)[0].share
    known = *method_of(request.main, 7, is_learned=False), 0.05 * share / (len(request.canaries) + 1), request.claimed, 4000
    of_one, of_seven = (smallest_factor_caught(*known, n_trials=40, n_parts=n_parts) for n_parts in (1, 7))
    assert power_of(request) == pytest.approx(of_seven, rel=1e-6)
    assert of_seven - 1 > 2 * (of_one - 1)


@pytest.mark.nightly
@pytest.mark.parametrize("label", ["dp-ucb tight", "lin-priv tight", "lsvi-ucb joint pure tight"])
def test_noise_divided_by_the_smallest_factor_is_refuted(label):
    """In seven of eight audits on the least favorable pair at least, for pure losses that add up from many parts."""
    subject = subjects()[label]()
    trial = subject.at_test_budget or subject.trial
    request = Request(trial, replace(EFFORT, replays=20_000), 0.05)
    factor = power_of(request)
    weaker = planted(through(lambda mechanism: weakened(mechanism, 1 / factor)))
    algorithm, limit = weaker(trial.algorithm), request.claimed
    plan = plan_bounds(trial.claim.stated, EFFORT.delta, request.events)[:1]
    seeds = [replace(request.effort, seed=seed) for seed in range(8)]
    measured = [
        measure(
            algorithm,
            [request.least_favorable.pair],
            effort,
            plan,
            failure=0.05,
            replays=[effort.replays] * (len(request.canaries) + 1),
        )
        for effort in seeds
    ]
    assert sum(one.lower(request.main) > limit for one in measured) >= 7


@pytest.mark.parametrize(("label", "epsilon", "least", "most"), [
    ("dp-se printed", 2.0, 2.0 / 0.81, 8.0), ("adar-ucb tight", GaussianDP(2.0).epsilon(1e-5), 2.0, 2.4),
])  # fmt: skip
def test_power_of_an_approximate_claim_knows_how_much_of_it_is_shown(label, epsilon, least, most):
    """Laplace noise of epsilon = 0.807, where 2 is claimed, and Gaussian noise of mu = 1, where mu = 2 is."""
    claim = parse(f"approx(epsilon={epsilon!r}, delta=1e-5, relation=reward)")
    assert least < power_of(Request(replace(subjects()[label]().trial, claim=claim), EFFORT, 0.05)) < most


def test_a_pair_that_shows_nothing_has_no_power_over_an_approximate_claim():
    claim = parse("approx(epsilon=2, delta=1e-5, relation=reward)")
    request = Request(replace(subjects()["dp-se printed"]().trial, claim=claim), EFFORT, 0.05)
    nothing = replace(request.least_favorable, mu_analytic=0.0, epsilon_analytic=0.0)
    request.__dict__["least_favorable"] = nothing
    assert power_of(request) == math.inf


@pytest.mark.parametrize("label", ["linucb joint tight", "ucb-vi joint tight"])
def test_what_a_few_replays_promise_of_each_pair_is_what_many_show(label):
    """With half of the noise: means of Gaussian log ratios on the two sides are mu^2 apart."""
    trial = subjects()[label]().trial
    pairs = canary_pairs(trial.table, trial.probes, trial.private_records)
    algorithm = planted(through(lambda mechanism: weakened(mechanism, 0.5)))(trial.algorithm)
    shown = Request(replace(trial, algorithm=algorithm), EFFORT, 0.05).shown
    for pair, mu in zip(pairs, shown, strict=True):
        data, neighbor = replay_both(algorithm, pair, 2048, tuple(np.random.SeedSequence(1).spawn(2)))
        assert mu == pytest.approx(math.sqrt(neighbor.log_ratio.mean() - data.log_ratio.mean()), rel=0.1)
    assert min(shown) > 1


@pytest.mark.parametrize("label", ["ucb-vi joint tight", "adar-ucb tight"])
def test_all_replays_go_to_the_least_favorable_pair_and_an_eighth_to_those_that_show_no_more(label):
    request = Request(subjects()[label]().trial, EFFORT, 0.05)
    assert max(request.shown) < request.least_favorable.mu_analytic / 0.9
    assert request.replays == (*(2000 for _ in request.shown), 4000)
    scores = Sampling().examine(request).scores
    assert tuple(len(side) for name in scores if name.startswith(TRANSCRIPT) for side in scores[name][:1]) == request.replays
    fewer = [replace(EFFORT, replays=n).fewer for n in (1000, 8000, 16_000, 100_000)]
    assert fewer == [1000, 2000, 2000, 12_500]


def test_a_pair_that_shows_clearly_more_than_what_was_found_has_all_replays():
    request = Request(subjects()["ucb-vi joint tight"]().trial, EFFORT, 0.05)
    request.__dict__["least_favorable"] = replace(request.least_favorable, mu_analytic=0.8)
    most = max(request.shown)
    assert min(request.shown) < 0.8 / 0.9 < most, request.shown
    assert request.replays == (*(4000 if shown > 0.8 / 0.9 else 2000 for shown in request.shown), 4000)


def test_a_pair_whose_losses_are_no_numbers_promises_least():
    trial, _ = _pairs()
    spoiled = planted(through(lambda mechanism: replace(mechanism, sensitivity_l2=math.nan)))
    with pytest.raises(ValueError, match="sensitivity_l2"):
        _ = Request(replace(trial, algorithm=spoiled(trial.algorithm)), EFFORT, 0.05).shown


def test_bounds_of_all_pairs_and_looks_share_one_failure_probability():
    trial, pairs = _pairs()
    plan = plan_bounds(trial.claim.stated, 1e-5)
    found = measure(trial.algorithm, pairs, EFFORT, plan)
    assert len(found.bounds) == len(pairs) * len(plan)
    assert sum(bound.level for bound in found.bounds) == pytest.approx(0.05)
    assert {bound.scores for bound in found.bounds} == set(found.scores)
    for name, sides in found.scores.items():
        for side in sides:
            assert len(side) == (2000 if name.startswith(ACTIONS) else 4000)
            assert np.array_equal(side, side.astype(np.float32))


def test_pairs_are_tried_in_turn_until_it_is_enough():
    trial, pairs = _pairs()
    main = plan_bounds(trial.claim.stated, 1e-5)[:1]
    alone = measure(trial.algorithm, pairs, EFFORT, main, enough=0.5)
    every = measure(trial.algorithm, pairs, EFFORT, main)
    assert len(alone.bounds) == 1 < len(every.bounds) == len(pairs)
    assert alone.bounds[0] == every.bounds[0]
    lazily = measure(trial.algorithm, iter(pairs), EFFORT, main, replays=[EFFORT.replays] * len(pairs), enough=0.5)
    assert lazily.bounds == alone.bounds


def test_scores_are_rounded_as_evidence_keeps_them():
    found = rounded(np.array([0.1, -1e300, np.inf, -np.inf]))
    assert found.tolist()[0] == float(np.float32(0.1))
    assert np.isfinite(found[1])
    assert found[2:].tolist() == [np.inf, -np.inf]


def test_each_quantity_has_its_method():
    found = {q.name: method_of(q, 3, is_learned=True) for q in (MU, Quantity("epsilon"), Quantity("divergence", alpha=2.0))}
    assert found["mu"] == ("mu-curve", {})
    assert found["epsilon"] == ("epsilon-coins", {"delta": 0.0, "seed": 3, "is_learned": True})
    assert found["divergence"][1]["alpha"] == 2.0


# --- what is accounted ----------------------------------------------------------------------------------------------


def test_mixed_books_compose_to_a_mu_of_their_own():
    both = ((GaussianEvent(1.0), 1), (LaplaceEvent(2.0), 1))
    assert accounted_mu(both) == pytest.approx(np.hypot(1.0, PureDP(0.5).gdp().mu))
    assert accounted_mu(((LaplaceEvent(2.0), 1),)) == PureDP(0.5).gdp().mu
    assert accounted_mu(()) == 0
    for event in (NonPrivateEvent(), ConcentratedEvent(0.1)):
        assert accounted_mu(((event, 1),)) == np.inf


def test_each_quantity_is_accounted_from_the_same_book():
    book = ((GaussianEvent(2.0), 4),)
    assert accounted_as(MU, book) == 1
    assert accounted_as(Quantity("divergence", alpha=3.0), book) == pytest.approx(1.5)
    assert accounted_as(Quantity("rho"), book) == pytest.approx(0.5)
    assert accounted_as(Quantity("epsilon", delta=1e-5), book) == pytest.approx(4.37718, abs=1e-5)
    assert accounted_as(Quantity("epsilon"), book) == np.inf
    assert accounted_as(Quantity("epsilon"), ((LaplaceEvent(2.0), 4),)) == 2


# --- one loop -------------------------------------------------------------------------------------------------------


def test_the_honest_algorithm_and_each_faulty_one_go_through_the_same_searches(monkeypatch):
    """They differ in the algorithm and in where a search may stop; replays try every fault, others only theirs."""
    seen = []

    class Recorded:
        def __init__(self, name):
            self.name = name

        def examine(self, request):
            seen.append((self.name, request))
            return Finding(is_caught=request.until_caught)

    names = (SAMPLING, DETERMINISTIC, NOISE)
    monkeypatch.setattr("bandana.audits.audit.SEARCHES", tuple(map(Recorded, names)))
    subject = subjects()["block tree"]()
    outcome = audit(subject.trial, subject.controls, EFFORT)
    honest, tried = seen[:3], seen[3:]
    assert [name for name, _ in honest] == [*names]
    assert len({id(request) for _, request in honest}) == 1
    assert [name for name, _ in tried] == [
        name for control in subject.controls for name in names if name == SAMPLING or name in control.caught_by
    ]
    same = (subject.trial.claim, subject.trial.table, subject.trial.probes)
    for _, request in seen:
        assert (request.trial.claim, request.trial.table, request.trial.probes) == same
        assert (request.effort, request.failure) == (EFFORT, honest[0][1].failure)
        assert request.until_caught is (request is not honest[0][1])
        assert (request.trial.algorithm is subject.trial.algorithm) is not request.until_caught
    assert all(control.is_caught for control in outcome.controls)


@pytest.mark.parametrize(
    ("replays", "caught", "others"),
    [
        (16383, [(16383, 1.0)], [(16383, 1.0)]),
        (16384, [(2048, 0.5), (16384, 0.5)], [(2048, 1.0)]),
        (65535, [(8191, 0.5), (65535, 0.5)], [(8191, 1.0)]),
        (65536, [(2048, 0.25), (8192, 0.25), (65536, 0.5)], [(2048, 0.5), (8192, 0.5)]),
    ],
)
def test_replays_look_with_parts_of_the_effort_before_they_look_with_all(monkeypatch, replays, caught, others):
    """Without a bound above the limit, all replays follow where replays must catch it, and nothing where they need not."""
    tried = []

    def measured(algorithm, pairs, effort, plan, *, failure, **more):
        tried.append((effort.replays, failure / 0.05, len(plan)))
        return Measurement((), {})

    monkeypatch.setattr("bandana.audits.searches.sampling.measure", measured)
    trial, effort = subjects()["block tree"]().trial, replace(EFFORT, replays=replays)
    for must_catch, expected in (((SAMPLING,), caught), ((NOISE,), others)):
        tried.clear()
        Sampling().examine(Request(trial, effort, 0.05, until_caught=True, must_catch=must_catch))
        assert [each[:2] for each in tried] == [(n, pytest.approx(share)) for n, share in expected]
        assert sum(share for _, share in expected) == 1, "of the failure probability"
        assert all(n == replays or bounds == 1 for n, _, bounds in tried), "parts take the main bound alone"
    tried.clear()
    Sampling().examine(Request(trial, effort, 0.05))
    assert [each[:2] for each in tried] == [(replays, 1.0)], "of the honest algorithm all replays"


def test_a_fault_of_some_searches_alone_is_named_with_the_others():
    """Where a fault shows in one search only, it is planted for that one, and the notes have the rest."""
    subject = subjects()["block tree"]()
    again = RELEASED_AGAIN
    controls = (
        replace(again, is_fault=lambda honest: False),
        again.caught(DETERMINISTIC),
        replace(again, name="other", is_fault=lambda honest: False),
    )
    outcome = audit(subject.trial, controls, EFFORT)
    assert [(control.name, control.expected) for control in outcome.controls] == [("released-again", (DETERMINISTIC,))]
    assert outcome.about.not_planted == {"released-again": ("sampling",), "other": ()}


# --- what each search adds ------------------------------------------------------------------------------------------


def _planted(bed, name):
    return next(control for control in CONTROLS_OF_SUMS[bed] if control.name == name)


def test_noise_that_is_shared_fails_by_the_audit_of_the_noise_alone():
    """Every exact value, span and charge is as it should be, and the score believes the declared law."""
    subject = subjects()["block tree"]()
    shared = _planted("tree", "one-noise-a-level").plant(subject.trial.algorithm)
    outcome = audit(replace(subject.trial, algorithm=shared), (), EFFORT)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.counterexample is None
    assert len(outcome.reasons) == 1
    assert outcome.reasons[0].startswith("the noise is not what is declared: release")
    assert examine_noise(subject.trial.algorithm, subject.trial.table, 0) is None


def test_noise_that_is_shared_between_arms_shows_in_the_actions():
    subject = subjects()["block elimination"]()
    shared = _planted("elimination", "one-noise-for-all").plant(subject.trial.algorithm)
    found = measure(
        shared,
        canary_pairs(subject.trial.table, (0,))[:1],
        EFFORT,
        (PlannedBound(TRANSCRIPT, MU, 0.5), PlannedBound(ACTIONS, MU, 0.5)),
    )
    by_view = {bound.view: bound.lower for bound in found.bounds}
    assert by_view[TRANSCRIPT] < 1 < by_view[ACTIONS]


def test_a_local_claim_is_audited_in_the_report_and_in_one_run():
    subject = subjects()["block local"]()
    outcome = audit(subject.trial, subject.controls, EFFORT)
    assert outcome.verdict is Verdict.PASS, outcome.reasons
    best = {bound.view: bound.lower for bound in outcome.bounds if bound.quantity == MU}
    assert set(best) == {TRANSCRIPT, ACTIONS, REPORT, ONE_RUN}
    assert best[REPORT] > 0.85
    assert 0.5 < best[ONE_RUN] < 1
    scores, coins = outcome.scores[ONE_RUN]
    assert len(scores) == len(coins) >= 4096
    assert set(coins) == {0.0, 1.0}


def test_evidence_of_a_local_audit_agrees_with_its_scores(tmp_path):
    subject = subjects()["block local"]()
    about = Setup(probes=subject.trial.probes, seed=EFFORT.seed, code_sha256="0" * 64)
    named = {"kind": "catalog", "name": subject.label}
    write(tmp_path / "e.npz", audit(subject.trial, subject.controls[:1], EFFORT, subject=named, about=about))
    assert_follows_from_its_scores(tmp_path / "e.npz")


def test_a_counterexample_is_kept_as_a_table_that_can_be_printed():
    subject = subjects()["block tree"]()
    planted = _planted("tree", "budget-on-one-node").plant(subject.trial.algorithm)
    outcome = audit(replace(subject.trial, algorithm=planted), (), EFFORT)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.counterexample["summary"] in " ".join(outcome.reasons)
    assert len(outcome.counterexample["lines"]) > 3


# --- the whole catalog ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", LABELS)
def test_every_subject_of_the_whole_catalog_is_ready(label):
    subject = subjects()[label]()
    assert subject.label == label
    assert subject.controls
    assert 0.9999 < subject.trial.claim.gaussian.mu <= 1 + 1e-9
    assert all(0 <= probe < subject.trial.table.n_users for probe in subject.trial.probes)
