"""A pool whose worker is killed ends at once, also when it is killed while another one is being started."""

import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool, _ExecutorManagerThread
from threading import Thread

import pytest
from prefect import flow, task
from prefect.task_runners import ThreadPoolTaskRunner

from bandana.flows.running.executors import cores_each
from bandana.flows.running.process_pool import ProcessPool, mark_and_terminate_broken

pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest.fixture
def pool(monkeypatch):
    monkeypatch.setattr(_ExecutorManagerThread, "terminate_broken", mark_and_terminate_broken)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


def _nothing():
    pass


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
