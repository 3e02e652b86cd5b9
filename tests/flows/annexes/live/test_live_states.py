"""States go to bytes and back, whatever algorithm can be deployed, and nothing else does."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bandana.flows.annexes.live import router
from bandana.flows.annexes.live.commands import pointer
from bandana.flows.annexes.live.states import decode, encode
from bandana.privacy_core import OpenPhase


def test_a_state_comes_back():
    phase = OpenPhase(np.array([[1.5, -2]]), np.array([3]), np.array([4]))
    state = (phase, [np.float64(2), None, True, "x"], np.zeros((0, 2)))
    again = decode(encode(state))
    assert type(again[0]) is OpenPhase
    assert again[0].total.tolist() == [[1.5, -2]]
    assert again[1] == [2.0, None, True, "x"]
    assert again[2].shape == (0, 2)
    assert encode(again) == encode(state)


@pytest.mark.parametrize("state", [(object(),), ({"a": 1},), (np.array(["a"]),), (lambda: 0,)])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(ValueError, match="a state holds"):
        encode(state)


def test_bytes_name_no_class_outside_the_product():
    head = json.dumps({"t": "os:system", "v": []}).encode()
    with pytest.raises(ValueError, match="no named tuple"):
        decode(len(head).to_bytes(4, "big") + head)
    with pytest.raises(ValueError, match="cut off"):
        decode(encode((np.zeros(3),))[:-1])


@pytest.mark.slow
def test_the_catalog_says_what_can_be_deployed():
    """Everything else is refused for its trust model or its actions, and none for its noise."""
    rows = router.deployable()
    reasons = {(entry.label, calibration): reason for entry, calibration, reason in rows}
    assert reasons["dp-imed", "tight"] == reasons["linucb joint", "tree"] == reasons["adar-oful", "printed"] == ""
    assert reasons["linucb joint", "tight"] == reasons["adar-oful", "tight"] == reasons["logistic-ucb joint", "tight"] == ""
    assert "device" in reasons["linucb local", "tight"]
    assert "shuffler" in reasons["linucb-batched shuffle", "tight"]
    assert "episodes" in reasons["ucb-vi joint", "tight"]
    assert "kernels" in reasons["gp-ucb joint", "tight"]
    for label, reason in reasons.items():
        assert reason.split(":")[0] in ("", "local", "shuffle", "episodes", "kernels"), label
    names = {entry.name for entry, _, reason in rows if not reason}
    assert {*pointer()[0].rstrip(".").partition(": ")[2].split(", ")} == names
