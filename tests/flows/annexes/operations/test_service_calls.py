"""The service without its server: what it asks of Prefect."""

import asyncio
import signal
from datetime import timedelta
from types import SimpleNamespace

import pytest

from bandana.flows.annexes.operations import service


@pytest.fixture
def signals():
    """Handlers as they were, whatever the service made of them."""
    before = {sign: signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM)}
    yield
    for sign, handler in before.items():
        signal.signal(sign, handler)


def test_a_run_that_misses_one_heartbeat_in_three_is_taken_for_dead(monkeypatch):
    created = []

    class Automation:
        def __init__(self, **fields):
            self.trigger = fields["trigger"]

        @staticmethod
        def read(name):
            raise ValueError(name)

        def create(self):
            created.append(self.trigger)

    monkeypatch.setattr("prefect.automations.Automation", Automation)
    service._watch_for_zombies()
    (trigger,) = created
    assert (trigger.posture.value, trigger.threshold) == ("Proactive", 1), "fewer than one event in that time"
    assert trigger.within == timedelta(seconds=90)


def test_deployments_that_run_now_are_started_and_not_waited_for(monkeypatch, signals):
    started, stopped = [], []
    monkeypatch.setattr("prefect.deployments.run_deployment", lambda name, **options: started.append((name, options)))
    monkeypatch.setattr(service, "mark_stopped", lambda ids, why: stopped.append(ids))

    async def start():
        assert started
        raise asyncio.CancelledError

    served = service.Served(SimpleNamespace(start=start), ("id",), {})
    service.run_until_stopped(served, ["suite/night", "suite/week"])
    assert started == [("suite/night", {"timeout": 0}), ("suite/week", {"timeout": 0})]
    assert stopped == [("id",)]


def test_a_deployment_is_registered_with_the_time_of_its_own_next_run(monkeypatch):
    """The first run of each that is scheduled from now on, asked for by the deployment's number."""
    requests = []

    class Client:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def request(self, method, path, json):
            requests.append((method, path, json))
            (number,) = json["deployments"]["id"]["any_"]
            hour = {"id of night": 3, "id of week": 5}[number]
            return SimpleNamespace(json=lambda: [{"expected_start_time": f"2030-01-01T0{hour}:00:00+00:00"}])

    monkeypatch.setattr("prefect.client.orchestration.get_client", lambda sync_client: Client())
    monkeypatch.setattr("prefect.runner.Runner", lambda name: SimpleNamespace(add_deployment=lambda d: f"id of {d.name}"))
    monkeypatch.setattr(service, "_watch_for_zombies", lambda: None)
    monkeypatch.setattr(service, "mark_stopped", lambda ids, why: None)
    served = service.register([SimpleNamespace(name="night"), SimpleNamespace(name="week")])
    assert served.ids == ("id of night", "id of week")
    assert {name: time.hour for name, time in served.times.items()} == {"night": 3, "week": 5}
    for method, path, wanted in requests:
        assert (method, path, wanted["limit"], wanted["sort"]) == ("POST", "/flow_runs/filter", 1, "EXPECTED_START_TIME_ASC")
        assert wanted["flow_runs"]["state"] == {"type": {"any_": ["SCHEDULED"]}}
