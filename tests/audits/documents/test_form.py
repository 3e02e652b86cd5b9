"""Documents are checked as strictly as their JSON schemas say, and each refusal names the field in one line."""

import json

import pytest
from jsonschema import Draft202012Validator

from bandana.audits.documents.form import first_mistake, json_schema
from bandana.audits.documents.report import Report
from bandana.audits.reporting import validate
from bandana.flows.commands.lookup import kinds
from tests.report_documents import at_test_budget, book, counterexample, deployment, make

WRONG = (None, "", -0.5, True, [])
"""One value of each kind, which few fields take."""


def small():
    """A report with every part, and one item in each long list."""
    audit = at_test_budget() | {"tradeoff": None}
    audit["measurement"]["bounds"] = audit["measurement"]["bounds"][:1]
    audit["deterministic"]["counterexample"] = counterexample()
    document = make(audits=[audit]) | {"books": [book()], "deployment": deployment()}
    document["benchmark"]["cells"] = document["benchmark"]["cells"][1:2]
    return json.loads(json.dumps(document))


def mutations(document):
    """The document with one field changed, missing or added, place by place; it is put back after each."""

    def inside(value, path):
        if isinstance(value, list):
            if value:
                yield from inside(value[0], f"{path}[0]")
        elif isinstance(value, dict):
            yield from changed(value, "unknown", (1,), path)
            for name in tuple(value):
                yield from changed(value, name, WRONG, path)
                kept = value.pop(name)
                yield f"{path}: without {name}"
                value[name] = kept
                yield from inside(kept, f"{path}.{name}")

    def changed(value, name, others, path):
        kept = value.get(name)
        for other in others:
            value[name] = other
            yield f"{path}.{name} = {other!r}"
        value[name] = kept
        if name == "unknown":
            del value[name]

    yield from inside(document, "$")


@pytest.mark.slow
def test_the_schema_and_the_check_refuse_the_same_documents():
    document, validator, n_refused = small(), Draft202012Validator(json_schema(Report)), 0
    for name in mutations(document):
        mistake = first_mistake(Report, document)
        assert (mistake is None) == validator.is_valid(document), name
        n_refused += mistake is not None
    assert first_mistake(Report, document) is None
    assert n_refused > 1000


@pytest.mark.parametrize("name", kinds())
def test_each_type_has_a_correct_schema(name):
    Draft202012Validator.check_schema(json_schema(kinds()[name].form))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("commands",), ["a", 1], r"commands\[1\]: 1 must be of type string"),
        (("deployment", "release_type"), "one", "must be one of one release, many releases, None"),
        (("audits", 0, "delta"), 0, "delta: 0 breaks exclusiveMinimum 0.0"),
        (("audits", 0, "delta"), 1, "delta: 1 breaks exclusiveMaximum 1.0"),
        (("audits", 0, "delta"), True, "delta: True must be of type number"),
        (("environments", 0, "horizon"), 2.5, "horizon: 2.5 must be of type integer"),
        (("environments",), [], r"environments: \[\] breaks minItems 1"),
        (("title",), "", "title: '' breaks minLength 1"),
        (("audits", 0, "power", "caught", 0), 1.5, r"caught\[0\]: 1.5 breaks maximum 1.0"),
        (
            ("benchmark", "cells", 0, "final_quantiles"),
            [1.0] * 4,
            r"final_quantiles: \[1.0, 1.0, 1.0, 1.0\] breaks maxItems 3",
        ),
    ],
)
def test_a_refusal_is_one_line_with_path_value_and_rule(path, value, message):
    document = small()
    at = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(ValueError, match=f"^\\$.*{message}") as refusal:
        validate(document)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) <= 200


def test_a_field_of_two_types_names_both():
    document = small()
    row = {"label": "a", "quantity": "q", "before": [1], "now": 1.0, "is_worse": False, "text": "t"}
    document["regressions"] = {"baseline": "b", "rows": [row]}
    with pytest.raises(ValueError, match=r"rows\[0\]\.before: \[1\] must be of type number or string$"):
        validate(document)
