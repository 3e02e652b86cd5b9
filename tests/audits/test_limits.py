"""What an audit can be asked for is one number, wherever it is asked."""

import ast
from pathlib import Path

import pytest

from bandana.audits import limits
from bandana.audits.outcome import Effort
from bandana.flows.spec.spec import AuditSpec


def test_who_only_checks_a_request_imports_nothing():
    tree = ast.parse(Path(limits.__file__).read_text(encoding="utf-8"))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def test_an_audit_and_a_spec_refuse_the_same():
    least = limits.MIN_REPLAYS
    assert Effort(least, 0.95, 1e-5, 1, 0).replays == AuditSpec(replays=least).replays == least
    with pytest.raises(ValueError, match=f"replays must be at least {least}, got {least - 1}"):
        Effort(least - 1, 0.95, 1e-5, 1, 0)
    with pytest.raises(ValueError, match=f"greater than or equal to {least}"):
        AuditSpec(replays=least - 1)
