"""The draft entry for the registry of deployments says what the report says, and is refused where too little is declared."""

import json
from typing import get_args, get_type_hints

import pytest

from bandana.flows.annexes.compliance.registry.entry import RegistryError, registry_entry
from bandana.flows.annexes.compliance.registry.fields import Basic
from tests.report_documents import audit, book, cell, deployment, environment, make, promise


def declared(**other):
    found = make(audits=[audit()])
    return found | {"deployment": deployment(**other)}


def test_the_entry_says_what_the_report_says():
    entry = registry_entry(declared())
    found = entry["deployment"]
    assert (entry["url_slug"], entry["status"], entry["tier"]) == ("demo", "Draft", 3)
    assert found["basic"] == {
        "name": "A title",
        "data_curators": ["Ministry of Reminders"],
        "description": "Reminders, on two arms",
        "intended_use": "Choose the reminder that brings most people",
        "data_product_type": "Machine learning model",
        "data_product_region": "Nowhere",
        "publication_date": "2026-11-01",
        "data_product_sector": "Healthcare",
    }
    assert found["dp_variant"]["variant_name"] == "Approximate DP"
    assert found["privacy_loss"]["privacy_parameters"] == {"epsilon": 4.37721, "delta": 1e-5}
    assert found["privacy_loss"]["privacy_unit"] == "one reward (one round)"
    assert found["deployment_model"]["model_name"] == "Central"
    assert found["deployment_model"]["release_type"] == "One release"
    assert "reproducible" in found["implementation"]["mechanisms"]
    assert "1 PASS" in found["implementation"]["justification"]


def test_all_runs_on_private_data_are_one_number():
    found = declared()
    found["environments"] = [environment("people.csv") | {"data": "private"}]
    cells = [cell(f"private {mu}", 1.0, 10.0, "people.csv") | {"mu": mu, "replications": 4} for mu in (0.3, 0.4)]
    found["benchmark"] |= {"cells": cells}
    loss = registry_entry(found)["deployment"]["privacy_loss"]
    # sqrt(4 * 0.09 + 4 * 0.16) = 1
    assert loss["privacy_parameters"] == {"epsilon": pytest.approx(4.377178, abs=1e-5), "delta": 1e-5}
    assert "All 8 runs" in loss["privacy_parameters_details"]
    found["books"] = [book()]
    assert registry_entry(found)["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 2.5, "delta": 1e-6}


def test_a_pure_promise_has_no_delta():
    found = declared()
    found |= {
        "audits": [],
        "benchmark": found["benchmark"] | {"cells": [cell("a", 0.5, 1.0) | {"promise": promise(0.5, is_pure=True)}]},
    }
    entry = registry_entry(found)["deployment"]
    assert entry["dp_variant"]["variant_name"] == "Pure DP"
    assert entry["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.5}


def test_what_was_not_declared_is_left_out_and_lowers_the_tier():
    entry = registry_entry(declared(unprotected=None, release_type=None, sector=None, approved=None))
    assert entry["tier"] == 2
    text = json.dumps(entry)
    assert "null" not in text
    assert "unprotected_quantities" not in text
    assert entry["deployment"]["basic"]["publication_date"] == "2026-11-21", "the day of the last computation"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"deployment": None}, "the spec has no block `deployment`"),
        ({"deployment": deployment(region=None)}, r"deployment\.region: the registry requires"),
        ({"audits": [], "benchmark": None}, "no algorithm of this report promises privacy"),
        ({"created": None, "deployment": deployment(approved=None)}, r"deployment\.approved: the registry requires a day"),
        (
            {"deployment": deployment(product="Bandit")},
            r"breaks the registry's schema at \$\.deployment\.basic\.data_product_type",
        ),
        ({"suite": "§"}, r"breaks the registry's schema at \$\.url_slug"),
    ],
)
def test_too_little_for_an_entry_is_refused(change, message):
    with pytest.raises(RegistryError, match=message):
        registry_entry(declared() | change)


def test_the_spec_takes_the_registrys_words():
    """The registry's kinds of products and sectors are those that a spec takes."""
    from bandana.flows.spec.spec import ProductType, Sector

    basic = get_type_hints(Basic)
    assert get_args(basic["data_product_type"]) == get_args(ProductType)
    assert get_args(basic["data_product_sector"]) == get_args(Sector)
