"""Draft entry for the public registry of deployments of differential privacy, registry.opendp.org, from a report.

What the operator declares fills the fields that nobody can compute; what the report computed fills the others. The entry is
a draft: its author checks every sentence, and the registry's board reviews it.
"""

from __future__ import annotations

import math
import re

from bandana.audits.documents.fields import present
from bandana.audits.documents.form import first_mistake
from bandana.audits.documents.report import Deployment, Report
from bandana.audits.reporting import origin
from bandana.audits.reporting.numbers import number
from bandana.audits.reporting.sections.label import TRUST
from bandana.audits.reporting.sections.strength import composed, noise_sources, on_private_data, private_cells, promises
from bandana.audits.summary import epsilon_of
from bandana.flows.annexes.compliance.registry.fields import RegistryEntry
from bandana.flows.texts.json_text import JsonObject

_MODELS = {"central": "Central", "joint": "Central", "shuffle": "Shuffle", "local": "Local"}
_RELEASES = {"one release": "One release", "many releases": "Many releases"}


class RegistryError(ValueError):
    """A report from which no entry can be made; the message names what is missing."""


def registry_entry(document: Report) -> JsonObject:
    """The draft entry of a report.

    Args:
      document: a valid report document of an experiment that declares a deployment and promises privacy.

    Raises:
      RegistryError: the deployment, its region, or a promise with a finite epsilon is missing.
    """
    declared = document["deployment"]
    if declared is None:
        raise RegistryError("the spec has no block `deployment`: declare curator, purpose and region")
    if declared["region"] is None:
        raise RegistryError("deployment.region: the registry requires the region of the data or of the law; declare it")
    if not list(promises(document)):
        raise RegistryError("no algorithm of this report promises privacy: there is nothing to register")
    formulas = dict.fromkeys(audit["accountant"]["formula"] for audit in document["audits"])
    entry = {
        "url_slug": re.sub(r"[^a-z0-9]+", "_", document["suite"].lower()).strip("_"),
        "status": "Draft",
        "tier": 3 if declared["unprotected"] is not None and declared["release_type"] is not None else 2,
        "deployment": _without_nothing(
            {
                "basic": _basic(document, declared),
                "dp_variant": _variant(document, declared),
                "privacy_loss": _privacy_loss(document),
                "deployment_model": _model(document, declared),
                "accounting": {
                    "post_processing": "Actions are functions of released values and of public data alone.",
                    "composition": "; ".join(formulas),
                },
                "implementation": _implementation(document),
                "administrative": {
                    "notes": f"SHA-256 over the evidence of the report: {document['evidence']['sha256']}.",
                    "registry_authors": [declared["curator"]],
                },
            }
        ),
    }
    mistake = first_mistake(RegistryEntry, entry)
    if mistake is not None:
        raise RegistryError(f"the entry breaks the registry's schema at {mistake.path}: {mistake.value!r} {mistake.reason}")
    return entry


def _without_nothing(value: object) -> object:
    """The same without fields that nobody filled."""
    if isinstance(value, dict):
        return {key: _without_nothing(item) for key, item in value.items() if item not in (None, "")}
    return value


def _basic(document: Report, declared: Deployment) -> JsonObject:
    day = declared["approved"] or (document["created"] or "")[:10]
    if not day:
        raise RegistryError(
            "deployment.approved: the registry requires a day, and the report does not know when it was computed"
        )
    return {
        "name": document["title"],
        "data_curators": [declared["curator"]],
        "description": document["description"] or document["title"],
        "intended_use": declared["purpose"],
        "data_product_type": declared["product"],
        "data_product_region": declared["region"],
        "publication_date": day,
        "data_product_sector": declared["sector"],
    }


def _variant(document: Report, declared: Deployment) -> JsonObject:
    parameters, _ = _parameters(document)
    domain = "; ".join(f"{each['label']}: {each['description']}" for each in document["environments"])
    source = f" Source: {declared['data_source']}." if declared["data_source"] else ""
    return {
        "variant_name": "Approximate DP" if "delta" in parameters else "Pure DP",
        "data_domain": f"{domain}{source}",
        "unprotected_quantities": None if declared["unprotected"] is None else ", ".join(declared["unprotected"]),
    }


def _parameters(document: Report) -> tuple[dict[str, float], str]:
    """Epsilon and delta of everything that is published, and what they are of."""
    booked = [(spent, book) for book in document["books"] if (spent := book["spent"])]
    if booked:
        spent, book = max(booked, key=lambda each: each[0])
        delta = {} if book["delta"] is None else {"delta": book["delta"]}
        return {"epsilon": spent, **delta}, f"All runs on the data, by the budget book {book['name']}."
    if private := on_private_data(document):
        at, mu = present(private[0]["promise"])["delta"], composed(private)
        if mu is None:
            raise RegistryError("the runs of this report on private data compose to no finite epsilon")
        n_runs = sum(cell["replications"] for cell in private)
        return {"epsilon": epsilon_of(mu, at), "delta": at}, f"All {number(n_runs)} runs of the report together."
    weakest = max(promises(document), key=lambda each: math.inf if each.epsilon is None else each.epsilon)
    if weakest.epsilon is None or weakest.epsilon == 0:
        raise RegistryError(f"{weakest.label} promises no finite epsilon: there is nothing to register")
    delta = {} if weakest.delta == 0 else {"delta": weakest.delta}
    return {"epsilon": weakest.epsilon, **delta}, f"One run of {weakest.label}, the weakest promise of the report."


def _privacy_loss(document: Report) -> JsonObject:
    parameters, of_what = _parameters(document)
    made = list(promises(document))
    stated = dict.fromkeys(audit["claim"]["statement"] for audit in document["audits"])
    stated |= dict.fromkeys(present(cell["promise"])["statement"] for cell in private_cells(document))
    return {
        "privacy_unit": "; ".join(dict.fromkeys(each.unit for each in made)),
        "privacy_unit_details": "; ".join(dict.fromkeys(each.relation for each in made)),
        "privacy_parameters": parameters,
        "privacy_parameters_details": f"{of_what} Stated by the source of each algorithm: {'; '.join(stated)}.",
    }


def _model(document: Report, declared: Deployment) -> JsonObject:
    models = dict.fromkeys(audit["privacy_model"] for audit in document["audits"])
    models |= dict.fromkeys(cell["privacy_model"] for cell in private_cells(document))
    names = dict.fromkeys(_MODELS.get(model, "Varies") for model in models)
    seen = dict.fromkeys(audit["view_of_adversary"] for audit in document["audits"])
    return {
        "model_name": next(iter(names)) if len(names) == 1 else "Varies",
        "model_name_details": "; ".join(TRUST.get(model, str(model)) for model in models),
        "actors": f"{declared['curator']} curates the data. The adversary sees {'; '.join(seen)}." if seen else None,
        "release_type": _RELEASES.get(declared["release_type"] or ""),
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }


def _implementation(document: Report) -> JsonObject:
    noises = noise_sources(document)
    events = dict.fromkeys(e["event"] for audit in document["audits"] for e in audit["accountant"]["events"])
    makers = document["provenance"]["makers"]
    made = dict.fromkeys(f"bandana {m['versions'].get('bandana', '?')}, git commit {origin.commit_of(m)}" for m in makers)
    verdicts = [audit["verdict"] for audit in document["audits"]]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    parts = [
        f"Mechanisms: {', '.join(events)}" if events else "",
        f"noise source: {'; '.join(noises)}" if noises else "",
        *made,
    ]
    return {
        "preprocessing_and_hyperparameter_tuning": "Parameters are those of the spec; Bandana tunes on made-up data only.",
        "mechanisms": "; ".join(part for part in parts if part),
        "justification": f"Audited by replays, searches and planted faults: {counts}." if counts else None,
    }
