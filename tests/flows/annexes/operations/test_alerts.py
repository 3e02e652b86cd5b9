"""Alerts of `bandana serve`, sent by a real Prefect server to a webhook on the loopback interface."""

import json
import os
import subprocess
import sys
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from http_answers import answering

from bandana.flows.annexes.operations.alerts import check, longest_gap
from bandana.flows.texts.mistakes import SpecError

_ROOT = Path(__file__).parents[4]

PROGRAM = """
import sys, uuid
from datetime import timedelta
from pathlib import Path

import os
from bandana.flows.running import login
from bandana.flows.annexes.operations.service import server, service_settings

port, data, url = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
(data / "prefect").mkdir(parents=True)
os.environ.update(service_settings(port, login.keep(data / "prefect" / "login")))
os.environ["PREFECT_HOME"] = str(data / "prefect")

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.client.schemas.sorting import AutomationSort
from bandana.flows.annexes.operations import alerts

@flow(name="night")
def night():
    pass

with server(port, data / "server.log"):
    with get_client(sync_client=True) as client:
        flow_id = client.create_flow(night)
        ids = [client.create_deployment(flow_id, name) for name in ("loud", "silent")]
        alerts.watch(url, {"stale": alerts.Watched(str(ids[0]), timedelta(hours=1))})
        alerts.watch(url, {"loud": alerts.Watched(str(ids[0]), timedelta(hours=1)),
                           "silent": alerts.Watched(str(ids[1]), timedelta(seconds=10))})
        names = sorted(one.name for one in client.read_automations(sort=AutomationSort.NAME_ASC))
        print(*names, sep="|", flush=True)
        for kind, name, message in (("COMPLETED", "Completed", "fine"), ("FAILED", "Failed", "1 of 3 audits did not pass")):
            run = client.create_flow_run_from_deployment(ids[0], name=f"night {name}")
            client.set_flow_run_state(run.id, State(type=kind, name=name, message=message), force=True)
        sys.stdin.read()
        alerts.watch(None, {})
        print(len(client.read_automations(sort=AutomationSort.NAME_ASC)), flush=True)
"""


@pytest.mark.parametrize("url", ["https://", "nothing", "ftp://example.org/x", "mailto://", ""])
def test_an_address_that_nothing_can_be_sent_to_is_refused(url):
    with pytest.raises(SpecError, match=r"--alert: .*must be a webhook"):
        check(url)


@pytest.mark.parametrize(
    "url", ["https://example.org/hook", "http://127.0.0.1:9/x", "mailto://ann:pass@example.org?to=bob@example.org"]
)
def test_webhooks_and_mailboxes_are_taken(url):
    check(url)


@pytest.mark.parametrize(
    ("cron", "gap"), [("0 2 * * *", timedelta(days=1)), ("0 2 * * 1-5", timedelta(days=3)), ("0 3 * * 0", timedelta(days=7))]
)
def test_the_longest_gap_of_a_schedule(cron, gap):
    assert longest_gap(cron, "UTC") + timedelta(hours=1) == gap + timedelta(hours=1)


@pytest.fixture
def hook():
    """A webhook on the loopback interface, and all that it was sent."""
    sent = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

    with answering(Hook) as url:
        yield f"{url}/bandana?token=secret", sent


@pytest.mark.nightly
def test_a_failed_night_and_a_missing_one_reach_the_webhook(hook, tmp_path, free_port):
    """The failed run is told of within a minute, the completed one never; the silent deployment after its silence."""
    url, sent = hook
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment = {**kept, "PYTHONPATH": os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(free_port), str(tmp_path / "data"), url],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    try:
        names = process.stdout.readline().strip().split("|")
        assert names == [f"Bandana alert: {name}" for name in ("loud failed", "no loud", "no silent", "silent failed")]
        began = time.monotonic()
        while len({one["subject"] for one in sent}) < 2 and time.monotonic() - began < 60:
            time.sleep(0.2)
        assert {one["subject"] for one in sent} == {"Bandana: loud: night Failed is Failed", "Bandana: silent did not run"}
        (failed,) = (one for one in sent if "loud" in one["subject"])
        assert "1 of 3 audits did not pass" in failed["body"]
        assert "/runs/flow-run/" in failed["body"]
        assert failed["text"] == f"{failed['subject']}\n{failed['body']}"
        rest, _ = process.communicate("", timeout=60)
        assert rest.strip() == "0", "without an address no alert is left"
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
