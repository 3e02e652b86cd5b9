"""The calibration `as-known`: which entries have it, what asks for it by another name, and stored choices and seeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bandana.algorithms.catalog import CATALOG
from bandana.flows.plan.keys import identity_of
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec import tuned
from bandana.flows.spec.spec import parse_spec
from bandana.flows.texts.mistakes import SpecError

UNREAD = {
    "adac-ucb", "dp-klucb", "dp-imed", "adap-tt", "dp-bai", "linucb local", "ucb-vi joint pure", "ucb-vi local pure",
}  # fmt: skip
SPHERE = {"kind": "sphere", "actions": 4, "dimension": 3}
LEVEL = {"epsilon": 10, "delta": 1e-5}


def spec_of(environment, *algorithms, **more):
    fields = {"name": "known", "seed": 1, "environment": environment, "horizon": 64, "replications": 1}
    return parse_spec(json.dumps({**fields, "twins": False, "algorithms": algorithms, **more}), "known.yaml", Path())


def linucb(models, calibrations, **more):
    return {"algorithm": "linucb", "model": models, "calibrations": calibrations, "privacy": LEVEL, **more}


def test_no_entry_has_both_and_those_whose_paper_was_not_read_have_the_one():
    assert {entry.label for entry in CATALOG if "as-known" in entry.calibrations} == UNREAD
    for entry in CATALOG:
        named = [name for name in entry.calibrations if name.startswith("printed") or name == "as-known"]
        assert "as-known" not in named or named == ["as-known"]
        assert named == list(entry.calibrations)[: len(named)], "the paper's constants come first"


@pytest.mark.parametrize("models", ["local", ["joint", "local"]])
@pytest.mark.parametrize("calibrations", ["printed", ["printed", "tight"]])
def test_printed_is_refused_and_never_left_out_in_silence(models, calibrations):
    with pytest.raises(SpecError, match=r"must be one of as-known, tight, got 'printed': we could not read .* 'as-known'"):
        spec_of(SPHERE, linucb(models, calibrations))


def test_each_form_plays_its_own_of_the_two():
    cells = cells_of(spec_of(SPHERE, linucb(["joint", "local"], ["printed", "as-known", "tight"]), references=False))
    assert [f"{cell.entry.privacy_model} {cell.settings.calibration}" for cell in cells] == [
        "joint printed", "joint tight", "local as-known", "local tight",
    ]  # fmt: skip


def test_a_mixture_names_the_paper_s_noise_as_known():
    spec = spec_of(SPHERE, linucb("local", [{"noise": "as-known", "width": "exact"}]), references=False)
    assert [cell.settings.calibration for cell in cells_of(spec)] == ["noise=as-known width=exact"]
    with pytest.raises(SpecError, match="noise of linucb local must be one of as-known, tight, got 'printed'"):
        spec_of(SPHERE, linucb("local", [{"noise": "printed", "width": "exact"}]))


def test_seeds_know_the_calibration_by_its_first_name():
    spec = spec_of(SPHERE, linucb("local", ["as-known", {"noise": "as-known", "width": "exact"}, "tight"]), references=False)
    known = [identity_of(cell)["calibration"] for cell in cells_of(spec)]
    assert known == ["printed", "noise=printed width=exact", "tight"]


def test_values_that_were_chosen_under_the_first_name_are_read(tmp_path):
    tuning = {"parameter": "beta_scale", "values": [0.1, 1.0], "replications": 2, "file": str(tmp_path / "known.json")}
    spec = spec_of(SPHERE, linucb("local", ["as-known", "tight"]), tuning=tuning, references=False)
    before = {"linucb local printed eps=10": 0.1, "linucb local tight eps=10": 1.0}
    stored = tuned.Tuned(
        parameter="beta_scale", rule=tuned.RULE, seed=1, question=tuned.question(spec), chosen=before, tried={}
    )
    (tmp_path / "known.json").write_text(tuned.text_of(stored))
    assert [cell.settings.parameters["beta_scale"] for cell in cells_of(spec)] == [0.1, 1.0]
