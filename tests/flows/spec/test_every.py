"""An item that stands for every entry of the catalog that plays: which do, at which levels, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from scipy.stats import norm
from small_spec import SMALL, SMALL_SPHERE

from bandana.algorithms import catalog
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.every import level_within
from bandana.flows.spec.spec import parse_spec
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import ApproxDP, GaussianDP, PureDP, RenyiDP


def spec_of(*items, base=SMALL, **changes):
    tree = yaml.safe_load(base) | {"algorithms": list(items)} | changes
    return parse_spec(yaml.safe_dump(tree), "every.yaml", Path())


def labels(*items, **changes):
    return [cell.entry.label for cell in cells_of(spec_of(*items, **changes))]


def test_levels_are_within_mu_and_as_weak_as_four_digits_allow():
    for mu in (0.1, 0.25, 1.0, 4.0):
        assert level_within("renyi", mu, 2, 1e-5).epsilon == pytest.approx(mu**2, rel=1e-3)
        pure = level_within("pure", mu, 2, 1e-5)
        # epsilon-DP has the worst error rates 1 / (1 + e^epsilon), twice; mu-GDP has Phi(-mu / 2).
        assert pure.epsilon == pytest.approx(float(norm.logcdf(mu / 2) - norm.logcdf(-mu / 2)), rel=1e-3)
        close = level_within("approximate", mu, 2, 1e-5)
        assert isinstance(close, ApproxDP)
        for mu_of in (pure.gdp().mu, GaussianDP.from_epsilon_delta(close.epsilon, 1e-5).mu):
            assert mu * (1 - 2e-3) < mu_of <= mu * (1 + 1e-9)
    assert level_within("pure", 1.0, 2, 1e-5) == PureDP(0.8069)
    assert level_within("renyi", 0.5, 4, 1e-5) == RenyiDP(4, 0.5)  # nothing to round


def test_every_kind_of_guarantee_of_the_catalog_has_levels():
    for entry in catalog.CATALOG:
        if entry.is_private:
            level_within(str(entry.guarantee), 1.0, 2.0, 1e-5)


def test_every_private_entry_that_plays_on_arms_plays_at_every_level():
    found = labels({"all": "private", "mu": [0.5, 1], "calibrations": "tight"}, audit={"rounds": 64})
    playing = {entry.label for entry in catalog.known() if entry.is_private and "finite" in entry.plays_on}
    tests = {label for label in playing if label.startswith(("adap-tt", "dp-tt", "dp-bai"))}
    assert set(found) == playing - tests
    asked = {"all": "private", "mu": [0.5, 1], "calibrations": "tight"}
    of_tests = [labels({**asked, "aim": aim}, audit={"rounds": 64}) for aim in ("fixed-confidence", "fixed-budget")]
    assert set().union(*of_tests) == tests
    assert all(found.count(label) == 2 for label in playing - tests)


def test_a_new_entry_of_the_catalog_plays_without_a_change_of_the_spec(monkeypatch):
    item = {"all": "private", "mu": 1, "calibrations": "tight"}
    before = labels(item)
    new = replace(catalog.find("adar-ucb", "central"), name="newest", label="newest", seed_name="newest")
    known = catalog.known()
    monkeypatch.setattr(catalog, "known", lambda: (*known, new))
    assert labels(item) == [*before, "newest"]


def test_what_is_listed_by_name_plays_as_listed_and_what_is_left_out_does_not():
    listed = {"algorithm": "adap-ucb", "privacy": {"epsilon": 7}}
    spec = spec_of(listed, {"all": "private", "mu": 1, "leave_out": ["dp-ucb"]})
    cells = cells_of(spec)
    assert {cell.settings.level()["epsilon"] for cell in cells if cell.entry.name == "adap-ucb"} == {7}
    assert "dp-ucb" not in {cell.entry.name for cell in cells}
    assert "adar-ucb" in {cell.entry.name for cell in cells}


def test_twins_that_are_one_algorithm_play_once_and_parameters_go_to_those_that_take_them():
    cells = cells_of(spec_of({"all": "non-private", "parameters": {"beta": 0.5}}))
    played = [(cell.entry.seed_name, *cell.entry.seed_parameters(cell.settings).items()) for cell in cells]
    assert len(played) == len(set(played))
    betas = {cell.entry.name: cell.settings.parameters.get("beta") for cell in cells}
    assert betas["ucb"] == 0.5
    assert betas["dp-se"] is None


def test_trust_models_can_be_chosen():
    base = {"base": SMALL_SPHERE, "audit": {"rounds": 16}}
    spec = spec_of({"all": "private", "mu": 1, "model": "local", "calibrations": "tight"}, **base)
    assert {cell.entry.privacy_model for cell in cells_of(spec)} == {"local"}


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"all": "private"}, r"algorithms\[0\]: levels of privacy are missing"),
        ({"all": "non-private", "mu": 1}, r"algorithms\[0\].mu: entries that are not private"),
        ({"all": "private", "mu": 0}, "greater than 0"),
        ({"all": "private", "mu": 1, "model": "trusting"}, r"algorithms\[0\].model: must be among none, central"),
        ({"all": "private", "mu": 1, "parameters": {"alfa": 1}}, "no algorithm of the catalog takes 'alfa'"),
        ({"all": "private", "mu": 1, "leave_out": ["ucb2"]}, "'ucb2' is no algorithm and no label"),
        ({"all": "all"}, "private"),
        ({"all": "private", "mu": 1, "epsilon": 1}, "unknown field"),
    ],
)
def test_mistakes_are_named(item, message):
    with pytest.raises(SpecError, match=message):
        spec_of(item)


def test_mu_asks_any_algorithm_for_the_weakest_claim_of_its_kind():
    """0.8069-DP is the weakest pure claim within 1-GDP, (2, 1)- and (8, 4)-RDP and 0.5-zCDP are 1-GDP of Gaussian noise."""
    items = [
        {"algorithm": "dp-imed", "calibrations": "tight", "privacy": {"mu": 1}},
        {"algorithm": "adar-ucb", "calibrations": "tight", "privacy": {"mu": [0.5, 1], "alpha": 8}},
        {"algorithm": "adac-ucb", "calibrations": "tight", "privacy": {"mu": 1}},
    ]
    fields = {"name": "equal", "seed": 1, "environment": {"kind": "bernoulli", "means": [0.6, 0.4]}, "horizon": 50}
    cells = cells_of(parse_spec(yaml.safe_dump({**fields, "replications": 2, "algorithms": items}), "s", Path()))
    stated = [str(cell.claim().stated) for cell in cells]
    assert stated == ["0.8069-DP", "(2, 1)-RDP", "(8, 1)-RDP", "(8, 4)-RDP", "0.5-zCDP"]
    assert [cell.claim().gaussian.mu for cell in cells] == pytest.approx([1, 1, 0.5, 1, 1], rel=1e-3)
    assert max(cell.claim().gaussian.mu for cell in cells) <= 1 + 1e-12
    for wrong in ({"mu": 1, "epsilon": 1}, {"mu": 1, "rho": 1}):
        items[0]["privacy"] = wrong
        with pytest.raises(SpecError, match=r"algorithms\[0\].privacy.mu: mu is a level for every kind of guarantee: leave"):
            parse_spec(yaml.safe_dump({**fields, "replications": 2, "algorithms": items}), "s", Path())
