"""One desk for all tasks of a script."""

import pytest
from desk import Desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """An empty folder, for one person from beginning to end."""
    desk = Desk(tmp_path_factory.mktemp("first-hour"))
    yield desk
    desk.closes()
