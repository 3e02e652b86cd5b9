"""Which Dask cluster a run asks for, and which schedulers it refuses."""

import pytest

from bandana.flows.running.executors import Executor, Resources, task_runner
from bandana.flows.texts.mistakes import SpecError

BEYOND = ["tcp://10.0.0.5:8786", "10.0.0.5:8786", "tcp://[2001:db8::1]:8786", "tcp://scheduler:8786", "ucx://10.0.0.5:8786",
          "ws://10.0.0.5:8786", "tcp://0.0.0.0:8786", "tcp://127.0.0.1.example.org:8786", "tcp://127.0.0.1@10.0.0.5:8786",
          "tcp://localhost.example.org:8786"]  # fmt: skip
WITHIN = ["tcp://127.0.0.1:8786", "127.0.0.1:8786", "tcp://[::1]:8786", "tcp://localhost:8786", "tls://10.0.0.5:8786",
          "wss://scheduler:443/x"]  # fmt: skip


@pytest.mark.parametrize("address", BEYOND)
def test_a_scheduler_of_another_machine_needs_tls(address):
    pytest.importorskip("prefect_dask")
    with pytest.raises(SpecError, match=r"--dask-address: .* beyond this machine and not encrypted.*tls://.*--insecure"):
        Resources(executor=Executor.DASK, dask_address=address).check()
    Resources(executor=Executor.DASK, dask_address=address, insecure=True).check()


@pytest.mark.parametrize("address", WITHIN)
def test_a_scheduler_of_this_machine_or_with_tls_is_taken(address):
    pytest.importorskip("prefect_dask")
    Resources(executor=Executor.DASK, dask_address=address).check()


def test_dask_gets_processes_of_this_machine_that_listen_on_loopback_alone():
    pytest.importorskip("prefect_dask")
    runner = task_runner(Resources(executor=Executor.DASK, workers=3), Executor.LOCAL, "bandana.flows.suites.step_flows")
    wanted = {"n_workers": 3, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    assert wanted.items() <= runner.cluster_kwargs.items()
    elsewhere = Resources(executor=Executor.DASK, dask_address="tcp://127.0.0.1:8786")
    assert task_runner(elsewhere, Executor.LOCAL, "bandana.flows.suites.step_flows").address == "tcp://127.0.0.1:8786"
