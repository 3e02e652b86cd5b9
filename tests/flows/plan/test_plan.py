"""A plan is handed on between steps, and none of them changes it."""

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from bandana.flows.plan.plan import Plan
from bandana.flows.spec.spec import parse_spec

SPEC = {
    "name": "small", "seed": 1, "horizon": 10, "replications": 1,
    "environment": {"kind": "bernoulli", "means": [0.2, 0.9]}, "algorithms": [{"algorithm": "ucb"}],
}  # fmt: skip


def test_a_plan_cannot_be_given_another_spec():
    plan = Plan.of(parse_spec(yaml.safe_dump(SPEC), "small.yaml", Path()))
    with pytest.raises(ValidationError, match="frozen"):
        plan.spec = parse_spec(yaml.safe_dump({**SPEC, "horizon": 20}), "small.yaml", Path())
    assert plan.spec.horizon == 10
