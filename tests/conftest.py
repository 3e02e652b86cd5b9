"""What every test shares: Hypothesis without randomness, reference values of the accountant, and the wheel."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: small products on many threads wait for each other

import pytest
from hypothesis import HealthCheck, settings

from benchmarks import installed
from tests import numeric, quick

gc.disable()  # while tests are collected: a million objects are searched again and again, and none of them is garbage
gc.set_threshold(20_000, 20, 20)  # later too: what parses thousands of files or lines makes objects, and little garbage
settings.register_profile(
    "fixed", derandomize=True, deadline=None, max_examples=40, database=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("fixed")


_LONGEST = (
    "test_kill", "test_families", "test_schedule", "test_executors", "test_docs", "test_catalog_contract",
    "test_release_doors", "test_own", "test_house", "test_refutations", "test_programs",
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--quick`: what one runs while working; see `quick.thinned`."""
    parser.addoption("--quick", action="store_true", help="a few cases of each test that is neither slow nor nightly")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The files that take minutes come first: a worker that gets one last keeps all others waiting.

    Which tests are numeric is read from a thousand files: each worker reads them only where somebody selects by it.
    """
    if config.getoption("quick"):
        items[:], left_out = quick.thinned(items, set(quick.listed()))
        config.hook.pytest_deselected(items=left_out)
    if numeric.MARKER in config.getoption("markexpr"):
        for item in items:
            if numeric.is_marked(item.nodeid):
                item.add_marker(numeric.MARKER)
    items.sort(key=lambda item: _LONGEST.index(item.path.stem) if item.path.stem in _LONGEST else len(_LONGEST))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Before the first test, in each worker: what was collected stays."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return installed.wheel_of(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def pins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The versions of the lock file, as constraints."""
    return installed.pins_of(tmp_path_factory.mktemp("pins"))


@pytest.fixture(scope="session")
def reference() -> dict[str, Any]:
    """Privacy curves to 22 digits; the key `fields` explains each section."""
    path = Path(__file__).parent / "data" / "accountant_values.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))
