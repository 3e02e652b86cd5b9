"""What every catalog entry must keep, in every calibration: a new line in the catalog is tested by itself."""

import dataclasses
import math
import re
from functools import cache

import nightly
import numpy as np
import pytest
from catalog_cases import calibrated, every, one_of_each
from doubles import OwnNoiseLedger

from bandana.algorithms.catalog import CATALOG, find, names
from bandana.algorithms.coins import Coins
from bandana.algorithms.environments.tables import ContextTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.problem import ARMS, CONTEXTUAL, EPISODIC, Problem
from bandana.algorithms.run import run
from bandana.audits.claims import Quantity
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.neighbors import worst_pair
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import (
    DETERMINISTIC,
    MU,
    NOISE,
    ONE_RUN,
    SAMPLING,
    Effort,
    accounted_as,
    accounted_mu,
    main_quantity,
)
from bandana.audits.own.white_box import faults_at_places
from bandana.audits.plan import plan_bounds
from bandana.audits.replays.measure import measure
from bandana.audits.searches import checks
from bandana.audits.searches.deterministic import Deterministic, search
from bandana.audits.searches.noise import examine_noise
from bandana.audits.searches.request import Request
from bandana.audits.searches.sides import play_streams
from bandana.audits.seeds import derive
from bandana.audits.testbeds.catalog import bed_of, bed_settings
from bandana.audits.trial import Trial
from bandana.privacy_core import (
    ZCDP,
    ApproxDP,
    Interval,
    LaplaceEvent,
    LiveLedger,
    NoPrivacy,
    PureDP,
    Relation,
    RenyiDP,
    ReproducibleNoise,
    SecureNoise,
)

UNIT = Interval(0.0, 1.0)
LEVELS = {
    "renyi": (RenyiDP(2.0, 1.0), RenyiDP(8.0, 0.3)),
    "pure": (PureDP(1.0), PureDP(0.3)),
    "approximate": (ApproxDP(1.0, 1e-5), ApproxDP(0.3, 1e-6)),
    "zcdp": (ZCDP(0.5), ZCDP(0.045)),
}
N_ACTIONS, N_USERS, FEW_USERS, N_REPS = 3, 64, 32, 5
"""Users are rounds; beds of episodes have an eighth of them. Few are enough for what `make test` looks at in each group."""
LONGEST_SEARCHED = 24
FEW_EXAMPLES, SOME_EXAMPLES, EXAMPLES = 16, 60, 150
"""Few find nearly every planted fault; what they miss is searched for longer."""
SEEDS = [11, 12, 13]
REPLAYS, FEW_REPLAYS = 4000, 2000
CONFIDENCE, MORE_CONFIDENCE = 0.95, 0.9999
SEEN = {REPLAYS: (0.2, 0.7), FEW_REPLAYS: (0.3, 0.8)}
"""A mu, and a pure epsilon, that so many replays show."""


EVERY = calibrated(levels=LEVELS)
PRIVATE = [case for case in EVERY if case.entry.promise]
AUDITED = [case for case in calibrated() if case.entry.promise]
WITH_VECTORS = [case for case in AUDITED if isinstance(bed_of(case.entry, 1, 0)[1], ContextTable)]
every_case = pytest.mark.parametrize(
    "case", nightly.one_of_each(EVERY, lambda case: (case.name, case.calibration), lambda case: case.label)
)
"""By day each calibration at one of its levels, which change nothing but the size of the noise."""
every_private = pytest.mark.parametrize("case", every(PRIVATE))
every_audited = pytest.mark.parametrize("case", every(AUDITED))
each_scheme = pytest.mark.parametrize("case", one_of_each(AUDITED, "family", "plays_on", "privacy_model", "guarantee"))


def some_in_short_all_nightly(*facts, sizes=(FEW_USERS, N_USERS), name="users"):
    """Cases and users: one case of each group with few of them, and nightly every case with all."""
    few = [param for param in one_of_each(AUDITED, *facts) if not param.marks]
    short = [pytest.param(*param.values, sizes[0], id=f"{param.id}-short") for param in few]
    whole = [pytest.param(case, sizes[1], id=case.label, marks=pytest.mark.nightly) for case in AUDITED]
    return pytest.mark.parametrize(("case", name), [*short, *whole])


@cache
def _bed(name):
    entry = find(name)
    users = N_USERS // 4 if entry.plays_on[0] in EPISODIC else N_USERS  # an episode is several rounds
    return bed_of(entry, users, 0, N_ACTIONS)


def _table(case):
    return _bed(case.name)[1]


@cache
def _settings(case):
    return bed_settings(case.entry, _bed(case.name)[0], case.calibration, case.level)


def _built(case):
    return case.entry.build(_settings(case))


@cache
def _audited(case, users=N_USERS):
    """Plays as the catalog's own audits do: on the entry's problem, at the test budget."""
    entry = case.entry
    problem, table = bed_of(entry, users, 0)
    settings = bed_settings(entry, problem, case.calibration)
    return Trial(entry.build(settings), entry.promise(settings), table, entry.probes(problem.n_actions))


def _play(algorithm, table, seed=1):
    log, ledger = ActionLog(), LiveLedger(N_REPS, ReproducibleNoise(np.random.SeedSequence(seed)))
    run(algorithm, table, ledger, observers=[log], coins=Coins(np.random.SeedSequence(seed), N_REPS))
    return log, ledger


def _book(claim):
    """What the ledger of a searched case is held against: a book of Laplace releases composes to no exact mu."""
    return None if isinstance(claim.stated, PureDP) else claim.gaussian


@each_scheme
def test_secure_noise_plays_every_entry_within_its_claim(case):
    """The claim is the budget, but for bits of a shuffler, which no budget counts: none is refused, and all pay."""
    trial = _audited(case, 24)
    budget = None if case.entry.privacy_model == "shuffle" else trial.claim.stated
    ledger = LiveLedger(1, SecureNoise(), budget=budget)
    run(trial.algorithm, trial.table, ledger, coins=Coins(np.random.SeedSequence(1), 1))
    assert ledger.worst_record()


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.label) for entry in CATALOG])
def test_a_single_round_is_played_or_refused_for_what_it_lacks(entry):
    """Not for a default: a failure probability of 1 / horizon would be 1."""
    problem, table = bed_of(entry, 8, 0)
    level = (None, None) if entry.promise is None else (entry.calibrations[0], LEVELS[entry.guarantee][0])
    told = ""
    try:
        algorithm = entry.build(entry.settings(dataclasses.replace(problem, horizon=1), *level))
        coins = Coins(np.random.SeedSequence(0), 1)
        run(algorithm, table, LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(0))), horizon=1, coins=coins)
    except ValueError as error:
        told = str(error)
    assert not told or re.match("horizon must|a schedule needs a look", told), told


@pytest.mark.parametrize("delta", [1e-5, 0.1, 0.5, 0.99])
def test_the_test_budget_is_one_gdp_at_any_delta(delta):
    """At a delta of 0.38 and more 1-GDP is (0, delta)-DP: the budget then has a smaller one."""
    entry = find("linucb joint")
    problem, _ = bed_of(entry, N_USERS, 0)
    found = entry.at_test_budget(entry.settings(problem, "printed", ApproxDP(1.0, delta)))
    assert found.privacy.epsilon > 0
    assert entry.promise(found).gaussian.mu == pytest.approx(1.0)


def _search(trial, examples, shrinks=True):
    return search(
        trial.algorithm, trial.table.reward_range, _book(trial.claim), examples,
        min(LONGEST_SEARCHED, trial.table.n_users), shrinks, trial.private_records,
    )  # fmt: skip


@every_case
def test_an_algorithm_is_frozen_and_plays_every_round_once(case):
    """Each step of an episode."""
    algorithm, table = _built(case), _table(case)
    field = dataclasses.fields(algorithm)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(algorithm, field, 1)
    log, _ = _play(algorithm, table)
    assert (sum(log.n_records) == table.n_users * table.n_steps).all()
    assert len(log.states) == (table.n_users if case.entry.plays_on[0] in EPISODIC else 0)
    assert all(actions.shape == (N_REPS,) for actions in log.actions)
    assert all(((actions >= 0) & (actions < N_ACTIONS)).all() for actions in log.actions)


@every_case
def test_the_same_seed_gives_the_same_run_and_runs_leave_nothing_behind(case):
    algorithm, table = _built(case), _table(case)
    first, _ = _play(algorithm, table)
    _play(algorithm, table, seed=2)
    second, _ = _play(algorithm, table)
    for one, other in zip(first.actions, second.actions, strict=True):
        np.testing.assert_array_equal(one, other)


def _actions(case, seeds, jump=True):
    """The actions of each replicate, round by round; each has noise of its own, however they are batched."""
    log = ActionLog()
    coins = Coins([np.random.SeedSequence(seed) for seed in seeds], len(seeds))
    run(_built(case), _table(case), OwnNoiseLedger(seeds), observers=[log], jump=jump, coins=coins)
    return [
        np.concatenate([np.repeat(actions[r], n[r]) for actions, n in zip(log.actions, log.n_records, strict=True)]).tolist()
        for r in range(len(seeds))
    ]


@pytest.mark.parametrize("case", every(case for case in EVERY if case.entry.plays_on[0] in ARMS))
def test_rounds_one_by_one_are_played_as_in_jumps(case):
    """A run may go through all rounds in which `hold` keeps the action at once."""
    assert _actions(case, SEEDS, jump=True) == _actions(case, SEEDS, jump=False)


@every_case
def test_a_replicate_is_played_as_if_alone(case):
    assert _actions(case, SEEDS) == [played for seed in SEEDS for played in _actions(case, [seed])]


@every_case
def test_the_ledger_derives_no_more_than_the_claim(case):
    algorithm, table = _built(case), _table(case)
    if case.entry.promise is None:
        assert isinstance(_play(algorithm, table)[1].guarantee(), NoPrivacy)
        return
    claim, events = case.entry.promise(_settings(case)), derive(algorithm, table, seed=3, n_reps=200)
    assert 0 < accounted_mu(events) <= claim.gaussian.mu * (1 + 1e-9)
    if isinstance(claim.stated, PureDP):
        assert any(isinstance(event, LaplaceEvent) for event, _ in events)
        assert 0 < accounted_as(Quantity("epsilon"), events) <= claim.stated.epsilon * (1 + 1e-9)


@every_case
def test_some_record_of_the_bed_is_paid_for(case):
    """An audit of a run that releases nothing is empty."""
    ledger = _play(_built(case), _table(case))[1]
    assert sum(ledger.worst_record().values()) > 0


@every_private
def test_the_claim_is_about_the_settings(case):
    entry, settings = case.entry, _settings(case)
    claim = entry.promise(settings)
    asked = settings.privacy
    assert dataclasses.replace(claim.stated, relation=asked.relation, trust=asked.trust) == asked
    assert claim.trust.value.startswith(entry.privacy_model)
    assert (claim.relation is Relation.REPLACE_REWARD) == (entry.privacy_model == "central")
    assert claim.statement.endswith(str(claim.stated))
    assert claim.theorem
    assert claim.source in entry.source


@pytest.mark.nightly
@every_private
def test_the_audit_without_statistics_finds_nothing(case):
    trial = Trial(_built(case), case.entry.promise(_settings(case)), _table(case), (0,))
    assert _search(trial, 60) is None


@every_audited
def test_the_test_budget_is_about_mu_1(case):
    assert 0.999 < _audited(case).claim.gaussian.mu <= 1 + 1e-9


@some_in_short_all_nightly(
    "family", "plays_on", "privacy_model", "guarantee", sizes=(FEW_EXAMPLES, SOME_EXAMPLES), name="examples"
)
def test_the_deterministic_audit_finds_each_fault(case, examples):
    """Nearly all are found by few examples, so few find most mistakes of an honest algorithm by day."""
    trial = _audited(case)
    assert _search(trial, examples) is None
    for control in CONTROLS[case.name]:
        if DETERMINISTIC in control.caught_by and control.is_fault(trial.algorithm):
            faulty = dataclasses.replace(trial, algorithm=control.plant(trial.algorithm))
            searches = (_search(faulty, n, shrinks=False) for n in (FEW_EXAMPLES, EXAMPLES))
            assert any(example is not None for example in searches), control.name


OUTSIDE = (10.0, 1 + 1e-6, 1 + 1e-9, 1e200, math.inf, math.nan)
"""Lengths of vectors where a norm of at most 1 is declared."""


class _AnyVectors(ContextTable):
    """Contexts that no environment has looked at, as a user of the library may hand them to `run`."""

    def __init__(self, features, rewards, reward_range):
        super().__init__(np.zeros_like(features), rewards, reward_range)
        self.features = features


def _neighbors_outside(table, record, length, private_records):
    """Two tables in which a user brings vectors of this length; another one, who is the same in both, does too."""
    n, d = table.n_actions, table.context_dimension
    mine = np.full((n, d), length / math.sqrt(d))
    theirs = np.where(np.arange(d) == np.arange(n)[:, None] % d, length, 0.0) if private_records else mine
    for vectors, reward in ((mine, table.reward_range.low), (theirs, table.reward_range.high)):
        features, rewards = table.features.copy(), table.rewards.copy()
        features[record - 2], features[record], rewards[record] = mine, vectors, reward
        yield _AnyVectors(features, rewards, table.reward_range)


@pytest.mark.parametrize("case", one_of_each(WITH_VECTORS, "label"))
def test_vectors_outside_the_ball_move_no_release_by_more_than_its_sensitivity(case):
    """Nor is one refused: others would see that. A promise to users who may hold anything covers what vectors do to sums."""
    trial, record = _audited(case, FEW_USERS), 4
    records = np.full(N_REPS, record)
    hidden = records if trial.private_records else np.full(N_REPS, -1)
    for length in OUTSIDE:
        sides = play_streams(
            trial.algorithm, tuple(_neighbors_outside(trial.table, record, length, trial.private_records)), 1,
            lambda rep: None, records, hidden,
        )  # fmt: skip
        assert sides.live.transcript
        for release, value in zip(sides.live.transcript, sides.scripted.values, strict=True):
            allowed = np.where(sides.n_read(release) > 0, release.mechanism.sensitivity * (1 + 1e-12), 0.0)
            assert (release.mechanism.change(release.value, value) <= allowed).all(), length
        assert checks.decisions(sides) is checks.sequences(sides) is checks.states(sides) is None, length


@pytest.mark.parametrize("entry", [entry for entry in CATALOG if entry.plays_on[0] == CONTEXTUAL], ids=lambda e: e.label)
def test_a_vector_outside_the_ball_plays_as_its_projection(entry):
    """One that is infinite or no number as 0, so that no later estimate is lost to it; twins too."""
    problem, table = bed_of(entry, FEW_USERS, 0)
    calibration = entry.calibrations[0] if entry.calibrations else None
    algorithm = entry.build(bed_settings(entry, problem, calibration))
    for length in OUTSIDE:
        played = []
        for projected in (length, 1.0 if math.isfinite(length) else 0.0):
            data, _ = _neighbors_outside(table, 4, projected, False)
            log, _ = _play(algorithm, data)
            played.append(np.stack(log.actions))
        assert np.array_equal(*played), length


@some_in_short_all_nightly("family")
def test_faults_at_random_places_are_found(case, users):
    """Each shows at one record only; the rarest is missed with probability e^-8 at most, however many records there are."""
    if users == FEW_USERS and case.entry.plays_on[0] not in EPISODIC:
        users //= 2
    trial, replays = _audited(case, users), min(2 * FEW_REPLAYS, 2 * FEW_REPLAYS // FEW_USERS * users)
    effort = Effort(replays, CONFIDENCE, 1e-5, 16, seed=1)
    for control in faults_at_places(trial, effort):
        faulty = dataclasses.replace(trial, algorithm=control.plant(trial.algorithm))
        request = Request(faulty, effort, 1 - CONFIDENCE, until_caught=True, must_catch=control.caught_by)
        assert Deterministic().examine(request).is_caught, control.fault


@some_in_short_all_nightly("family", "plays_on", "privacy_model", "guarantee")
def test_each_fault_of_the_noise_is_found(case, users):
    trial = _audited(case, users)
    assert examine_noise(trial.algorithm, trial.table, seed=1) is None
    for control in CONTROLS[case.name]:
        if NOISE in control.caught_by and control.is_fault(trial.algorithm):
            assert examine_noise(control.plant(trial.algorithm), trial.table, seed=1) is not None, control.name


@some_in_short_all_nightly("family", "plays_on", "guarantee")
def test_replays_of_the_honest_one_stay_below_its_claim(case, users):
    """With 95 % for each, and these seeds, and 99.99 % in short runs; something is measured wherever a pair loses enough to
    be seen at this effort."""
    trial, is_whole = _audited(case, users), users == N_USERS
    replays, confidence = (REPLAYS, CONFIDENCE) if is_whole else (FEW_REPLAYS, MORE_CONFIDENCE)
    main = main_quantity(trial.claim.stated)
    plan = tuple(
        planned for planned in plan_bounds(trial.claim.stated, 1e-5) if planned.quantity == main and planned.view != ONE_RUN
    )
    worst = worst_pair.find(trial.algorithm, trial.table, trial.probes, 1, trial.private_records)
    pairs = (*canary_pairs(trial.table, trial.probes, trial.private_records), worst.pair)
    measured = measure(trial.algorithm, pairs, Effort(replays, confidence, 1e-5, 1, 1), plan, enough=math.inf).lower(main)
    assert measured <= accounted_as(main, derive(trial.algorithm, trial.table, seed=3, n_reps=200))
    loss = worst.epsilon_analytic if math.isfinite(worst.epsilon_analytic) else worst.mu_analytic
    if (is_whole and case.entry.plays_on[0] not in EPISODIC) or loss > SEEN[replays][main != MU]:
        assert measured > 0


@pytest.mark.parametrize(
    "facts", [("family", "plays_on", "guarantee"), ("family", "plays_on", "privacy_model", "guarantee")]
)
def test_each_group_of_the_catalog_is_represented_once_and_all_of_it_is_tested_nightly(facts):
    def group(case):
        return tuple(getattr(case.entry, fact) for fact in facts)

    chosen = one_of_each(AUDITED, *facts)
    assert [param.values[0] for param in chosen] == AUDITED
    shown = [param.values[0] for param in chosen if not param.marks]
    assert len(shown) == len({group(case) for case in shown})
    assert {group(case) for case in shown} == {group(case) for case in AUDITED}
    assert {case.calibration for case in shown} >= {"printed", "as-known", "tight"}


def test_every_private_entry_has_planted_faults_and_each_kind_of_audit_must_see_some():
    private = {entry.label for entry in CATALOG if entry.promise}
    assert set(CONTROLS) == private
    for controls in CONTROLS.values():
        assert len({(control.name, control.caught_by) for control in controls}) == len(controls)
        for kind in (SAMPLING, DETERMINISTIC):
            assert any(kind in control.caught_by for control in controls)


def test_every_private_entry_has_its_non_private_twin():
    """The twin is of the same family, on the same problems."""
    twins = [entry for entry in CATALOG if entry.promise is None]
    for entry in CATALOG:
        if entry.promise is not None:
            assert any((twin.family, twin.plays_on) == (entry.family, entry.plays_on) for twin in twins), entry.name


def test_every_entry_names_its_claim_and_its_source():
    for entry in CATALOG:
        assert entry.claim
        assert entry.source
        assert entry.privacy_model in {"none", "central", "joint", "local", "shuffle"}
        assert entry.guarantee in {None, "approximate", "pure", "renyi", "zcdp"}
        assert (entry.promise is None) == (entry.privacy_model == "none") == (entry.guarantee is None)
        assert (entry.promise is None) == (entry.probes is None) == (not entry.calibrations)
        assert len(set(entry.calibrations)) == len(entry.calibrations)


def test_names_are_found_and_unknown_ones_refused():
    for entry in CATALOG:
        assert find(entry.label) is find(entry.name, entry.privacy_model, entry.guarantee) is entry
    shows = f"`bandana list` shows all {len(names())}"
    with pytest.raises(ValueError, match=f"unknown algorithm 'exp3'; did you mean 'dp-exp3'. {shows}$"):
        find("exp3")
    with pytest.raises(ValueError, match="did you mean 'adar-ucb'"):
        find("AdaR-UCB")
    with pytest.raises(ValueError, match="ucb has no such entry; it has: none"):
        find("ucb", "local")


def test_what_plays_on_arms_plays_on_arms_with_features_too():
    problem = Problem(2, UNIT, 64, ((1.0, 0.0), (0.0, 1.0)))
    for entry in CATALOG:
        if "finite" in entry.plays_on and entry.family != "bandits/best_arm":
            assert entry.settings(dataclasses.replace(problem, features=None), *_any(entry)).parameters
            assert entry.settings(problem, *_any(entry)).problem.kind == "linear"


def _any(entry):
    return (entry.calibrations[0], LEVELS[entry.guarantee][0]) if entry.promise else ()
