"""Audits of own code run in forks of this process, and import late what they need: here once, and not in each fork."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _imported_before_forks():
    """What audits of releases import late is imported once: each of their forks would take a processor second for it."""
    import sklearn.ensemble  # noqa: F401
    import threadpoolctl  # noqa: F401
