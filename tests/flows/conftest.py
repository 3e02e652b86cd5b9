"""A small, complete spec, and a factory that changes one thing in it."""

import os

import pytest
import yaml
from small_spec import SMALL


@pytest.fixture
def small_text():
    return SMALL


@pytest.fixture
def write_spec(tmp_path):
    """Writes the small spec with some fields replaced (dotted names), and returns its path."""

    def write(**changes):
        tree = yaml.safe_load(SMALL)
        for dotted, value in changes.items():
            *path, last = dotted.split("__")
            node = tree
            for part in path:
                node = node[int(part) if part.isdigit() else part]
            if value is None:
                del node[last]
            else:
                node[last] = value
        target = tmp_path / "spec.yaml"
        target.write_text(yaml.safe_dump(tree, sort_keys=False))
        return target

    return write


@pytest.fixture(autouse=True)
def _own_environment():
    """What a test or the code under test puts into the environment ends with the test: later tests start commands too."""
    before = dict(os.environ)
    yield
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="module")
def prefect_server():
    """One temporary Prefect server for every flow that a module's tests run in their own process.

    Its settings stand in the environment meanwhile, so that it must not outlive the module: commands that later tests start
    would take its folder for a Prefect that the user has set up.
    """
    from flows.settings import DataFolder

    before = dict(os.environ)
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        DataFolder.open(folder).prepare()
        from prefect.testing.utilities import prefect_test_harness

        with prefect_test_harness(server_startup_timeout=240):
            yield
    os.environ.clear()
    os.environ.update(before)
