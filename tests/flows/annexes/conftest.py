"""Audits of own code run in forks of this process, and import late what they need: here once, and not in each fork."""

import pytest
from own_cases import ROOT


@pytest.fixture(scope="session", autouse=True)
def _imported_before_forks():
    """What audits of releases import late is imported once: each of their forks would take a processor second for it."""
    import sklearn.ensemble  # noqa: F401
    import threadpoolctl  # noqa: F401


@pytest.fixture(scope="session")
def before_forks():
    """One small audit of an algorithm in this process: forks then hold its compiled kernels and late imports."""
    import bandana

    mine = f"{ROOT / 'examples/own_bandit.py'}:bandit"
    bandana.audit(mine, "gdp(mu=1, relation=reward)", replays=1000, rounds=8, examples=2, isolated=False)


@pytest.fixture
def few_first_calls(monkeypatch):
    """Assertions compare four first calls of a side: a fork of a process that holds all tests takes long."""
    monkeypatch.setattr("bandana.flows.annexes.anything.pairs.stages._COMPARED_CALLS", 4)
