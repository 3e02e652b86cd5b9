"""Other people's accountants, asked where they are right, and the proof that they could contradict us."""

import logging
import math
import warnings
from dataclasses import replace
from functools import cache

import pytest
from nightly import first

from bandana.algorithms.catalog import CATALOG, find
from bandana.flows.annexes.crosscheck import second_opinions as module
from bandana.flows.annexes.crosscheck.accountants import Expected
from bandana.flows.annexes.crosscheck.ledgers import LEVELS, Case, catalog_cases, named_cases
from bandana.flows.annexes.crosscheck.library_defects import KNOWN_DEFECTS, Kind, Status
from bandana.flows.annexes.crosscheck.second_opinions import (
    LIBRARIES,
    CrossCheck,
    allows,
    crosscheck,
    quiet,
    second_opinions,
)
from bandana.privacy_core import (
    ApproxDP,
    ConcentratedEvent,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    NearlyGaussianEvent,
    NonPrivateEvent,
    PrivacyCurve,
    account,
    calibrate,
)

DELTA = 1e-5
NAMED = {case.name: case for case in named_cases()}
GAUSSIAN = NAMED["Gaussian 1"]
MIXTURE = NAMED["3 Gaussians, 2 Laplace"]


def _case(*events):
    return Case("a ledger", events)


@cache
def _asked(name, delta):
    return second_opinions(NAMED[name], [delta])


def _by_accountant(opinions):
    return {(opinion.library, opinion.accountant): opinion for opinion in opinions}


def _those(opinions, holds):
    return {(o.library, o.accountant) for o in opinions if o.holds is holds}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("delta", first(1, [DELTA, 1e-2, 1e-8]))
def test_every_library_agrees_on_every_named_ledger(name, delta):
    opinions = _asked(name, delta)
    assert _those(opinions, False) == set()
    assert ("dp-accounting", "RDP") in _those(opinions, True)


GRID = [
    [(GaussianEvent(2.0), 7)],
    [(LaplaceEvent(4.0), 20)],
    [(GaussianEvent(4.0), 1), (LaplaceEvent(2.0), 1)],
    [(GaussianEvent(0.5), 1)],
    [(GaussianEvent(20.0), 64)],
    [(GaussianEvent(100.0), 1)],
    [(GaussianEvent(10.0), 3), (GaussianEvent(3.0), 2)],
    [(LaplaceEvent(0.5), 1)],
    [(LaplaceEvent(3.0), 1), (LaplaceEvent(7.0), 5)],
    [(GaussianEvent(4.0), 10), (LaplaceEvent(2.0), 1)],
    [(GaussianEvent(1.0), 1), (LaplaceEvent(20.0), 30)],
]


@pytest.mark.parametrize("events", first(3, [pytest.param(events, id=str(events)) for events in GRID]))
def test_the_sandwich_is_thin_and_ours_lies_in_it(events):
    releases = sum(count for _, count in events)
    for delta in (1e-3, 1e-5, 1e-8):
        opinions = _by_accountant(second_opinions(_case(*events), [delta]))
        assert all(opinion.holds is not False for opinion in opinions.values())
        low = opinions["dp-accounting", "PLD optimistic"].epsilon
        high = opinions["dp-accounting", "PLD pessimistic"].epsilon
        if low is not None:
            assert low <= high <= low + 1.01e-4 * releases


def test_all_seven_accountants_and_the_reference_judge_a_gaussian():
    opinions = _asked("Gaussian 1", DELTA)
    assert len(_those(opinions, True)) == len(opinions) == 8


@pytest.mark.parametrize(
    ("factor", "contradicting"),
    [
        (1 + 1e-6, {"high precision", "PLD pessimistic", "analytic Gaussian", "GDP"}),
        (1 - 1e-6, {"high precision", "analytic Gaussian", "GDP"}),
        (1 - 1e-4, {"high precision", "PLD optimistic", "analytic Gaussian", "GDP"}),
        (0.99, {"high precision", "PLD optimistic", "analytic Gaussian", "GDP", "PRV"}),
        (1.1, {"high precision", "PLD pessimistic", "analytic Gaussian", "GDP", "PRV", "RDP"}),
    ],
)
def test_a_wrong_epsilon_of_a_gaussian_is_contradicted(factor, contradicting):
    wrong = second_opinions(GAUSSIAN, [DELTA], lambda delta: factor * GaussianDP(1.0).epsilon(delta))
    assert {accountant for _, accountant in _those(wrong, False)} == contradicting


@pytest.mark.parametrize(
    ("factor", "contradicting"),
    [
        (1 + 1e-3, {"high precision", "PLD pessimistic"}),
        (1 - 1e-3, {"high precision", "PLD optimistic"}),
        (1.1, {"high precision", "PLD pessimistic", "RDP"}),
    ],
)
def test_a_wrong_epsilon_of_a_mixture_is_contradicted(factor, contradicting):
    right = PrivacyCurve.of(dict(MIXTURE.events)).epsilon(DELTA)
    wrong = second_opinions(MIXTURE, [DELTA], lambda _: factor * right)
    assert {accountant for _, accountant in _those(wrong, False)} == contradicting


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_no_epsilon_is_contradicted(wrong):
    opinions = second_opinions(GAUSSIAN, [DELTA], lambda _: wrong)
    accountants = _those(opinions, False)
    assert accountants >= {("dp-accounting", "PLD pessimistic"), ("dp-accounting", "RDP"), ("opacus", "PRV")}


def test_forgetting_that_releases_compose_is_contradicted():
    once = GaussianDP(0.2).epsilon(DELTA)
    opinions = second_opinions(NAMED["Gaussian 5 x 100"], [DELTA], lambda _: once)
    assert ("dp-accounting", "PLD optimistic") in _those(opinions, False)


def test_the_slack_is_a_billionth():
    assert allows(1.0, 1.0 + 0.9e-9, 2.0)
    assert allows(2.0, 1.0, 2.0 - 0.9e-9)
    assert not allows(1.0, 1.0 + 1.1e-9, 2.0)
    assert not allows(2.0, 1.0, 2.0 - 1.1e-9)
    assert not allows(math.nan, 0.0, math.inf)


def test_a_library_that_breaks_in_an_unknown_way_is_a_failed_check(monkeypatch):
    def broken(sigma, delta):
        raise RuntimeError("planted")

    monkeypatch.setattr("dp_accounting.get_epsilon_gaussian", broken)
    opinion = _by_accountant(second_opinions(GAUSSIAN, [DELTA]))["dp-accounting", "analytic Gaussian"]
    assert (opinion.holds, opinion.epsilon, opinion.note) == (False, None, "RuntimeError: planted")


def test_what_an_older_dp_accounting_lacks_is_not_asked(monkeypatch):
    monkeypatch.delattr("dp_accounting.get_epsilon_gaussian")
    monkeypatch.delattr("dp_accounting.dp_event.ZCDpEvent")
    analytic = _by_accountant(second_opinions(GAUSSIAN, [DELTA]))["dp-accounting", "analytic Gaussian"]
    renyi = _by_accountant(second_opinions(NAMED["discrete Gaussian 1"], [DELTA]))["dp-accounting", "RDP"]
    assert analytic.holds is renyi.holds is None
    assert analytic.note == renyi.note == "dp-accounting has it from version 0.6 on"


@pytest.mark.parametrize("expected", Expected)
def test_a_library_that_answers_nan_is_a_failed_check(monkeypatch, expected):
    monkeypatch.setattr(module, "ACCOUNTANTS", (("opacus", "planted", expected, lambda events, delta: math.nan),))
    _, opinion = second_opinions(GAUSSIAN, [DELTA])
    assert (opinion.holds, opinion.epsilon) == (False, None)


@pytest.mark.parametrize(
    ("expected", "answer", "reason"),
    [
        (Expected.UPPER, math.inf, "it answers infinity"),
        (Expected.INTERVAL, (0.0, math.inf), "it answers infinity"),
        (Expected.LOWER, 0.0, "its lower bound is 0"),
        (Expected.LOWER, -1.0, "its lower bound is 0"),
    ],
)
def test_an_answer_that_could_contradict_nothing_is_no_check(monkeypatch, expected, answer, reason):
    monkeypatch.setattr(module, "ACCOUNTANTS", (("opacus", "planted", expected, lambda events, delta: answer),))
    _, opinion = second_opinions(GAUSSIAN, [DELTA])
    assert opinion.holds is None
    assert reason in opinion.note


def test_what_knows_gaussian_noise_only_is_not_asked_about_laplace_noise():
    opinions = second_opinions(NAMED["Laplace 1 x 10"], [DELTA])
    without = {("opacus", "GDP"), ("opacus", "PRV"), ("opacus", "RDP"), ("dp-accounting", "analytic Gaussian")}
    assert _those(opinions, None) == without
    assert all(o.note == "it knows Gaussian noise only" for o in opinions if o.holds is None)


def test_of_concentrated_noise_only_renyi_accounting_knows():
    opinions = second_opinions(_case((ConcentratedEvent(0.5), 1), (GaussianEvent(2.0), 3)), [DELTA])
    assert _those(opinions, True) == {("dp-accounting", "RDP")}


def test_privacy_loss_distributions_are_not_asked_at_a_delta_where_they_are_rounded():
    def asked(case, delta):
        return ("dp-accounting", "PLD pessimistic") in _those(second_opinions(case, [delta]), True)

    composed = _case((GaussianEvent(5.0), 10))
    assert asked(GAUSSIAN, 1e-11)
    assert not asked(GAUSSIAN, 0.9e-11)
    assert asked(composed, 1e-8)
    assert not asked(composed, 0.9e-8)


def test_the_prv_accountant_refuses_a_delta_near_the_floating_point_precision():
    opinion = _by_accountant(second_opinions(GAUSSIAN, [1e-16]))["opacus", "PRV"]
    assert opinion.holds is None
    assert "Floating point errors will dominate" in opinion.note


@pytest.mark.nightly
def test_a_ledger_of_very_little_noise_is_judged_on_a_coarser_grid_and_not_by_a_grid_without_end():
    opinions = _by_accountant(second_opinions(_case((GaussianEvent(0.25), 50)), [DELTA]))
    assert opinions["dp-accounting", "PLD optimistic"].holds
    assert opinions["dp-accounting", "PLD pessimistic"].holds
    opinions = _by_accountant(second_opinions(_case((GaussianEvent(0.1), 200)), [DELTA]))
    assert opinions["dp-accounting", "PLD pessimistic"].note == "its e^-loss underflows above epsilon = 700"
    assert opinions["opacus", "PRV"].note == "its grid would need more than 5,000,000 cells"
    assert opinions["opacus", "GDP"].note == "it searches epsilon strictly between 0 and 500 only"
    assert opinions["dp-accounting", "RDP"].holds


def test_a_negative_epsilon_of_a_library_is_read_as_0():
    opinion = _by_accountant(second_opinions(_case((GaussianEvent(100.0), 1)), [1e-2]))["opacus", "RDP"]
    assert (opinion.ours, opinion.epsilon, opinion.holds) == (0.0, 0.0, True)


def test_ledgers_without_noise_and_deltas_out_of_range_are_refused():
    with pytest.raises(ValueError, match="a ledger holds no noise to account"):
        second_opinions(_case((NonPrivateEvent(), 1)), [DELTA])
    with pytest.raises(ValueError, match="a ledger holds no noise to account"):
        second_opinions(_case(), [DELTA])
    with pytest.raises(ValueError, match="delta must"):
        second_opinions(GAUSSIAN, [0.0])
    with pytest.raises(ValueError, match="delta must"):
        crosscheck([1.5])


def test_the_epsilon_that_is_compared_is_never_above_that_of_the_guarantee():
    rounding = 1e-14  # the two are computed in different ways; how their last bits fall differs between processors
    for case in NAMED.values():
        derived = account(dict(case.events)).epsilon_at(DELTA)
        compared = _asked(case.name, DELTA)[0].ours
        assert compared <= derived * (1 + rounding)
        if all(isinstance(event, GaussianEvent) for event, _ in case.events):
            assert compared == pytest.approx(derived, rel=rounding)


def test_the_known_values_are_those_of_the_reference_file(reference):
    def row(section, **wanted):
        rows = reference[section]
        return next(r for r in rows if all(str(r[key]) == value for key, value in wanted.items()))

    found = {
        "Gaussian 1": row("a_gaussian_eps", sigma="1", delta="1e-5")["eps"],
        "Gaussian 5 x 100": row("b_gaussian_kfold", sigma="5", k="100")["eps"],
        "Gaussian 50 x 1000": row("b_gaussian_kfold", sigma="50", k="1000")["eps"],
        "tree, 1024 leaves, 5": row("e_binary_tree", sigma="5", n_leaves="1024")["eps"],
        "Laplace 1 x 10": row("c_laplace_kfold", k="10", eps0="1")["eps_exact"],
        "Laplace 10 x 100": row("c_laplace_kfold", k="100", eps0="0.1")["eps_exact"],
        "Laplace 100 x 1000": row("c_laplace_kfold", k="1000", eps0="0.01")["eps_exact"],
        "discrete Gaussian 1": row("d_conversion_gaussian", sigma="1", delta="1e-5")["eps_improved"],
    }
    mixed = {float(r["delta"]): float(r["eps"]) for r in reference["f_mixed_ledger"]["eps_at_delta"]}
    assert NAMED["3 Gaussians, 2 Laplace"].known == mixed
    assert {name: case.known for name, case in NAMED.items() if name in found} == {
        name: {DELTA: float(value)} for name, value in found.items()
    }


@pytest.mark.nightly
def test_the_catalog_is_asked_in_every_calibration_and_level():
    cases, not_private, refused = catalog_cases()
    private = [entry for entry in CATALOG if entry.promise]
    asked = sum(len(LEVELS[entry.guarantee]) * len(entry.calibrations) for entry in private)
    assert len(cases) + len(refused) == asked
    assert [text.split(" tight ")[0] for text in refused] == ["linucb-batched shuffle"]  # which cannot count so many bits
    assert len({case.name for case in cases}) == len(cases)
    assert len(not_private) == len(CATALOG) - len(private)
    assert all(case.events for case in cases)


def test_a_newcomer_in_the_catalog_is_asked_by_itself():
    adar, ucb = find("adar-ucb"), find("ucb")
    newcomer = replace(adar, name="newcomer", label="newcomer", calibrations=("tight",))
    joint = replace(newcomer, privacy_model="joint", label="newcomer joint")
    cases, not_private, refused = catalog_cases([newcomer, joint, replace(ucb, label="open")])
    assert (not_private, refused) == (("open",), ())
    assert [case.name for case in cases[:: len(LEVELS["renyi"])]] == [
        f"{label} tight {LEVELS['renyi'][0]}" for label in ("newcomer", "newcomer joint")
    ]  # fmt: skip
    assert _those(second_opinions(cases[0], [DELTA]), False) == set()


def test_a_level_that_an_entry_refuses_is_named_with_its_reason_and_the_others_are_asked():
    found = catalog_cases([entry for entry in CATALOG if entry.privacy_model == "shuffle"])
    assert [case.name for case in found.cases] == [f"linucb-batched shuffle tight {at}" for at in LEVELS["approximate"][1:]]
    assert len(found.refused) == 1
    assert found.refused[0].startswith(
        "linucb-batched shuffle tight (0.1, 1e-06)-DP: epsilon = 0.1 with delta = 1e-06 needs"
    )
    for case in found.cases:  # nearly Gaussian: libraries are asked at what its slack leaves of delta
        opinions = second_opinions(case, [DELTA, 1e-8])
        assert _those(opinions, False) == set()
        assert _those(opinions, True) >= {("dp-accounting", "PLD pessimistic"), ("opacus", "GDP")}


def test_a_slack_that_takes_all_of_delta_leaves_nothing_to_ask():
    (opinion, *others) = second_opinions(_case((NearlyGaussianEvent(1.0, 1e-5), 2)), [2e-5])[1:]
    assert opinion.ours == math.inf
    assert {each.note for each in (opinion, *others)} == {"the slack of its releases leaves nothing of delta"}


@pytest.mark.parametrize("guarantee", sorted(LEVELS))
def test_nothing_contradicts_an_entry_of_each_law(guarantee):
    entry = next(entry for entry in CATALOG if entry.guarantee == guarantee)
    opinions = second_opinions(catalog_cases([entry])[0][0], [DELTA])
    assert _those(opinions, False) == set()
    assert ("dp-accounting", "RDP") in _those(opinions, True)


@pytest.mark.nightly
def test_nothing_contradicts_the_catalog():
    result = crosscheck([DELTA, 1e-8, DELTA])
    assert result.deltas == (DELTA, 1e-8)
    assert result.is_sound
    assert result.failed == result.unopposed == ()
    assert set(result.versions) == set(LIBRARIES)
    assert {opinion.ledger for opinion in result.opinions} == {case.name for case in (*catalog_cases()[0], *named_cases())}
    assert all(finding.status is not Status.UNKNOWN for finding in result.findings)


def test_one_contradiction_makes_the_whole_unsound_and_a_ledger_that_nobody_judged_is_named():
    opinions = _asked("Gaussian 1", DELTA)
    unknown = tuple(replace(o, ledger="unheard of", holds=o.holds if o.library == "reference" else None) for o in opinions)
    whole = CrossCheck((DELTA,), (*opinions, *unknown), (), (), (), {})
    assert whole.is_sound
    assert whole.unopposed == ("unheard of",)
    assert not replace(whole, opinions=(*opinions, replace(opinions[-1], holds=False))).is_sound


DEFECTS = [pytest.param(defect, id=f"{defect.library}: {defect.what[:40]}") for defect in KNOWN_DEFECTS]


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_known_defect_is_measured_in_the_installed_version(defect):
    with quiet():
        found = defect.measure()
    assert found.status in {Status.PRESENT, Status.FIXED}, found
    if found.version in defect.seen_in.split(", "):
        assert found.status is Status.PRESENT, found


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_repaired_library_and_a_changed_interface_are_told_apart(defect):
    def changed():
        raise AttributeError("no such function")

    assert replace(defect, reproduce=lambda: defect.right).measure().status is Status.FIXED
    found = replace(defect, reproduce=changed).measure()
    assert (found.status, found.note) == (Status.UNKNOWN, "AttributeError: no such function")


def test_a_defect_is_measured_by_its_kind():
    defect = replace(KNOWN_DEFECTS[0], right=1.0, raises=None)

    def status(kind, value):
        return replace(defect, kind=kind, reproduce=lambda: value).measure().status

    assert status(Kind.TOO_LOW, 1 - 1e-8) is Status.PRESENT
    assert status(Kind.TOO_LOW, 1 - 1e-10) is Status.FIXED
    assert status(Kind.TOO_HIGH, 1.002) is Status.PRESENT
    assert status(Kind.TOO_HIGH, 1.0001) is Status.FIXED
    assert status(Kind.FAILS, math.inf) is Status.PRESENT


def test_the_right_values_beside_the_defects_are_those_of_the_reference_file(reference):
    composed = {(row["k"], row["eps0"]): float(row["eps_kov_optimal_pureDP"]) for row in reference["c_laplace_kfold"]}
    right = [defect.right for defect in KNOWN_DEFECTS]
    assert composed[100, "0.1"] in right
    assert composed[1000, "0.1"] in right
    assert NAMED["tree, 1024 leaves, 5"].known[DELTA] in right
    assert right.count(GAUSSIAN.known[DELTA]) == 2
    doubled = next(d for d in KNOWN_DEFECTS if d.what.startswith("REPLACE_ONE"))
    assert doubled.right == pytest.approx(GaussianDP(2.0).epsilon(DELTA), rel=1e-12)


def test_the_libraries_are_quiet_and_everything_is_restored(capfd):
    logger = logging.getLogger("absl")
    before, filters = logger.level, list(warnings.filters)
    with quiet():
        logger.warning("not to be seen")
        logging.getLogger().warning("nor this")
        warnings.warn("nor that", stacklevel=1)
    assert (logger.level, warnings.filters) == (before, filters)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 10.0])
def test_dp_accounting_calibrates_to_the_same_noise(epsilon):
    from dp_accounting import get_epsilon_gaussian, get_sigma_gaussian

    ours = calibrate(ApproxDP(epsilon, DELTA))
    assert ours == pytest.approx(get_sigma_gaussian(epsilon, DELTA), rel=1e-7)
    assert get_epsilon_gaussian(ours, DELTA) == pytest.approx(epsilon, rel=1e-7)
