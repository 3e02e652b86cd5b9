"""The suite that a report is of, where no spec is named."""

import os

import pytest

from bandana.flows.commands.reports import _last_spec
from bandana.flows.folder.settings import DataFolder
from bandana.flows.texts.mistakes import SpecError


@pytest.mark.parametrize("newest", ["a", "b", "c"])
def test_it_is_the_one_that_ran_last(newest, tmp_path):
    folder = DataFolder(tmp_path)
    for name in ("a", "b", "c"):
        spec = folder.suite(name) / "spec.yaml"
        spec.parent.mkdir(parents=True)
        spec.touch()
        os.utime(spec, (1000, 2000 if name == newest else 1000))
    assert _last_spec(folder) == folder.suite(newest) / "spec.yaml"


def test_without_suites_there_is_none(tmp_path):
    with pytest.raises(SpecError, match="there is no suite in"):
        _last_spec(DataFolder(tmp_path))
