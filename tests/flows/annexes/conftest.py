"""Audits of own code run in forks of this process, and import late what they need: here once, and not in each fork."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _imported_before_forks():
    """A processor second of each audit of releases."""
    import sklearn.ensemble  # noqa: F401
    import threadpoolctl  # noqa: F401
