"""One small suite, played and audited, which nobody changes."""

import pytest
import yaml
from small_spec import SMALL

import bandana


@pytest.fixture(scope="session")
def result(tmp_path_factory):
    fields = {**yaml.safe_load(SMALL), "horizon": 300, "audit": {"rounds": 8, "replays": 1000, "examples": 5}}
    return bandana.run(fields, data=tmp_path_factory.mktemp("data"), audit=True, executor="local")
