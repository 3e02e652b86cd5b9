"""A pool whose worker is killed ends at once, also when it is killed while another one is being started."""

import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from threading import Thread

import pytest
from prefect import flow, task
from prefect.task_runners import ProcessPoolTaskRunner, ThreadPoolTaskRunner

from bandana.flows.running.executors import _start_worker, cores_each
from bandana.flows.running.process_pool import ProcessPool, WorkerPool

pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest.fixture
def pool():
    with WorkerPool(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


def _nothing():
    pass


def test_prefect_s_runner_still_has_the_parts_that_are_replaced():
    """Fails with a version of Prefect that keeps its pool in another way: `flows/running/process_pool.py` follows then."""
    with ProcessPoolTaskRunner(max_workers=3, initializer=_nothing) as runner:
        theirs, queue = runner._executor, runner._subprocess_message_queue
        assert type(theirs) is ProcessPoolExecutor
        assert callable(theirs._initializer)
        assert (theirs._initargs[0], theirs._initargs[1]) == (queue, _nothing)
        assert callable(queue.cancel_join_thread)
        assert theirs._processes == {}, "no worker was started yet"
        assert runner._max_workers == 3


def test_the_standard_library_s_pool_still_has_the_parts_that_are_patched(pool):
    """Fails with a version of Python whose pool has no thread that ends its workers, or never calls it by this name."""
    assert pool._executor_manager_thread is None
    assert pool._broken is False
    pool.submit(_nothing).result(timeout=60)
    manager = pool._executor_manager_thread
    assert manager.executor_reference() is pool
    assert manager.shutdown_lock is pool._shutdown_lock
    assert callable(manager.terminate_broken)


def _killed(executor):
    (worker,) = executor._processes.values()
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()


def test_a_worker_that_is_started_while_another_one_dies_is_ended_too(pool, monkeypatch):
    first = pool.submit(time.sleep, 3600)
    start = pool._spawn_process

    def start_slowly():
        start()  # it has begun, and the pool does not know it yet
        pid, process = pool._processes.popitem()
        _killed(pool)
        time.sleep(0.5)  # the pool has time to see that it is broken
        pool._processes[pid] = process

    monkeypatch.setattr(pool, "_spawn_process", start_slowly)
    second = pool.submit(time.sleep, 3600)
    for future in (first, second):
        with pytest.raises(BrokenProcessPool):
            future.result(timeout=30)
    ending = Thread(target=pool.shutdown)
    ending.start()
    ending.join(30)
    left = multiprocessing.active_children()
    for child in left:
        child.kill()  # lest the test hangs where it should fail
    assert not left


def test_a_worker_that_dies_before_it_knows_its_work_breaks_the_pool(monkeypatch):
    def fails(*_args, **_kwargs):
        raise BrokenPipeError

    with ProcessPool(max_workers=1) as runner:
        monkeypatch.setattr(runner._executor, "_spawn_process", fails)
        future = runner.submit(task(_nothing), {})
        with pytest.raises(BrokenProcessPool, match="worker process died"):
            future.wrapped_future.result(timeout=30)


def test_few_tasks_have_several_cores_each():
    asked = flow(cores_each, name="asked", persist_result=False)
    runners = (ProcessPool(max_workers=6), ThreadPoolTaskRunner(max_workers=6))
    pool, threads = ([asked.with_options(task_runner=runner)(n) for n in (0, 1, 2, 4, 9)] for runner in runners)
    assert pool == [6, 6, 3, 1, 1]
    assert threads == [1, 1, 1, 1, 1]
    assert cores_each(1) == 1


def test_a_task_is_sent_without_the_settings_that_a_worker_has_already(monkeypatch):
    given = {}
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:4200/api")
    monkeypatch.setattr(ProcessPoolTaskRunner, "_resolve_futures_and_submit", lambda _, **kept: given.update(kept))
    context = {"settings_context": {"settings": 1}, "flow_run_context": {"flow": 2}}
    ProcessPool(max_workers=1)._resolve_futures_and_submit(task=3, context=context)
    assert given == {"task": 3, "context": {"settings_context": {}, "flow_run_context": {"flow": 2}}}
    assert context["settings_context"] == {"settings": 1}, "which Prefect keeps for the next task"
    monkeypatch.delenv("PREFECT_API_URL")
    ProcessPool(max_workers=1)._resolve_futures_and_submit(task=3, context=context)
    assert given["context"] is context, "these stand in this process alone"


_clients = []


def _about_prefect():
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL

    _clients.append(get_client(sync_client=True))  # kept, so that no other one gets its place in memory
    return os.getpid(), id(_clients[-1]), PREFECT_API_URL.value()


@pytest.mark.slow
@pytest.mark.parametrize("is_inherited", [True, False])
def test_a_worker_asks_the_server_of_its_parent_and_its_tasks_share_a_client(is_inherited, monkeypatch):
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL

    for setting in (PREFECT_API_URL, PREFECT_API_AUTH_STRING):
        monkeypatch.delenv(setting.name, raising=False)
    if is_inherited:
        monkeypatch.setenv("PREFECT_API_URL", PREFECT_API_URL.value())
        monkeypatch.setenv("PREFECT_API_AUTH_STRING", PREFECT_API_AUTH_STRING.value())
    started = partial(_start_worker, "bandana.flows.suites.step_flows")

    @flow(task_runner=ProcessPool(max_workers=1, initializer=started), persist_result=False)
    def three():
        return [future.result() for future in [task(_about_prefect).submit() for _ in range(3)]]

    workers, clients, addresses = zip(*three(), strict=True)
    assert set(addresses) == {PREFECT_API_URL.value()}
    assert (len(set(workers)), len(set(clients)) == 1) == (1, is_inherited)
    assert os.getpid() not in workers
