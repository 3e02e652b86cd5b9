"""What the catalog says of evidence: a planted fault that fewer searches had to catch is seen."""

from types import SimpleNamespace

import pytest

from bandana.audits.outcome import TriedControl
from bandana.flows.queries.catalog_words import _NOT_PLANTED, _check_searches

SEARCHES = {"noise-halved": {"sampling", "noise"}, "noise-reused": {"deterministic"}}


def _outcome(noted="", **expected):
    names = {"halved": "noise-halved", "reused": "noise-reused", "shown": "value-shown", "tail": "exact-in-the-tail"}
    controls = [TriedControl(names[name], "", tuple(by.split()), (), 0.0, 1.0) for name, by in expected.items()]
    return SimpleNamespace(all_controls=controls, about={_NOT_PLANTED: noted})


@pytest.mark.parametrize(
    ("expected", "noted", "wrong"),
    [
        ({"halved": "noise sampling", "reused": "deterministic", "shown": "deterministic"}, "", ""),
        ({"halved": "noise"}, "", "noise-halved"),
        ({"halved": "noise"}, "x, noise-halved (for sampling), y (for )", ""),
        ({"reused": "deterministic noise"}, "", "noise-reused"),
        ({"shown": "sampling", "tail": ""}, "", "value-shown, exact-in-the-tail"),
    ],
)
def test_a_search_that_need_not_catch_a_fault_any_more_is_seen(expected, noted, wrong):
    line = _check_searches(_outcome(noted, **expected), SEARCHES)
    assert (line.stated, line.is_ok) == (wrong or "as stated", not wrong)
