"""The service asks, tells and shows, with a token, on this machine, and writes no reward down."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time

import httpx
import pytest
from fastapi.testclient import TestClient

from bandana.flows.annexes.live.estimates import ArmMean
from bandana.flows.annexes.live.service import log, regret_by_means, service
from tests.flows.annexes.live.live_worlds import ARMS, Clock, opened, told, world

TOKEN = "a token of the test"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def client(tmp_path):
    clock = Clock()
    policy = opened(tmp_path / "a.db", world(clock, publish=log))
    client = TestClient(service(policy, TOKEN), base_url="http://127.0.0.1")
    client.clock, client.policy = clock, policy
    return client


def test_a_choice_and_its_reward(client, capsys):
    choice = client.post("/ask", json={}, headers=HEADERS).json()
    assert choice["action"] == 0
    told_to = {"id": choice["id"], "reward": 0.8125}
    assert client.post("/tell", json=told_to, headers=HEADERS).json() == {"fate": "kept"}
    assert client.post("/tell", json=told_to, headers=HEADERS).json() == {"fate": "duplicate"}
    client.clock.now += 11
    client.post("/ask", json={}, headers=HEADERS)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in lines] == ["ask", "tell", "tell", "release", "ask"]
    assert "0.8125" not in json.dumps(lines)


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/ask", {"context": [[1.0]]}, 422, "ask without a context"),
        ("/tell", {"id": "forged", "reward": 1}, 422, "no choice has the id"),
        ("/tell", {"id": "forged", "reward": "many"}, 422, "reward"),
        ("/tell", {"id": "forged", "reward": 1, "extra": 1}, 422, "extra"),
    ],
)
def test_mistakes(client, path, body, status, words):
    answer = client.post(path, json=body, headers=HEADERS)
    assert (answer.status_code, words in answer.text) == (status, True)


@pytest.mark.parametrize("path", ["/privacy", "/evidence", "/metrics", "/"])
def test_every_page_needs_the_token(client, path):
    assert client.get(path).status_code == 401
    assert client.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert client.get(path, params={"token": TOKEN}).status_code == 200
    assert client.get(path, headers={**HEADERS, "Host": "evil.example"}).status_code == 400
    assert client.post("/ask", json={}).status_code == 401


def test_the_api_is_described(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/ask", "/tell", "/privacy", "/evidence", "/metrics", "/"} == {*paths}


def test_metrics_and_page(client):
    told(client.policy, lambda number, arm: 1.0, client.clock, 12)
    text = client.get("/metrics", headers=HEADERS).text
    assert "bandana_live_asked 12.0" in text
    assert 'bandana_live_tells{fate="kept"} 0.0' in text  # those of this process' requests
    html = client.get("/", headers=HEADERS).text
    assert "1-DP, replace one reward, central" in html
    assert html.count("<div class=") == 3


def test_regret_by_released_means():
    arms = [ArmMean(0, 10, 0.2, 0, 1), ArmMean(1, 30, 0.7, 0, 1)]
    assert regret_by_means(arms) == pytest.approx(5.0)
    assert regret_by_means([*arms, ArmMean(2, 0, float("nan"), 0, 1)]) is None
    assert regret_by_means([]) is None


def test_a_lost_store_is_one_line(client, tmp_path):
    (tmp_path / "a.db").unlink()
    answer = client.post("/ask", json={}, headers=HEADERS)
    assert (answer.status_code, "gone" in answer.json()["detail"]) == (503, True)


@pytest.mark.slow
def test_the_command_serves_on_loopback(tmp_path):
    settings = {**ARMS, "store": "r.db"}
    (tmp_path / "router.yaml").write_text(json.dumps(settings))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "bandana", "live", "serve", str(tmp_path / "router.yaml"), "--port", str(port)]
    child = subprocess.Popen(command, env={**os.environ, "BANDANA_LIVE_TOKEN": TOKEN}, stdout=subprocess.PIPE)
    try:
        for _ in range(600):
            try:
                answer = httpx.post(f"http://127.0.0.1:{port}/ask", json={}, headers=HEADERS)
                break
            except httpx.ConnectError:
                assert child.poll() is None
                time.sleep(0.2)
        assert answer.json()["action"] == 0
    finally:
        child.terminate()
        out, _ = child.communicate(timeout=60)
    assert json.loads(out.splitlines()[0]) == {"event": "ask", "number": 0}
