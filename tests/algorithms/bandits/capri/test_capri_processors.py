"""CAPRI is a function of its seeds: the same actions with other BLAS kernels, more BLAS threads, other instructions.

Noisy sums differ in their last bits there; nothing that is chosen may hang on them.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from bandana.algorithms.bandits.capri.forms import CAPRI
from bandana.algorithms.environments.kernel_functions import PooledFunction, product_pool, random_function
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.rkhs.kernels import Matern, SquaredExponential
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, Interval, LiveLedger, ReproducibleNoise, TrustModel
from tests import nightly, processors

ROOT = Path(__file__).parents[4]
RANGE, HORIZON, REPLICATES = Interval(-1.0, 1.0), 1500, 3
EPSILONS = {TrustModel.JOINT: 50.0, TrustModel.LOCAL: 5000.0}
"""So large that actions are eliminated within these few rounds."""
VARIABLES = {"OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "NPY_DISABLE_CPU_FEATURES"}
TWO = {"OPENBLAS_NUM_THREADS": "2", "OPENBLAS_THREAD_TIMEOUT": "4"}
"""Threads that wait do not spin: beside other work, spinning takes minutes."""
ENVIRONMENTS = {
    "other processor, 2 threads": {**processors.other_processor(), **TWO},  # all that may differ, in one process
    "1 thread": {"OPENBLAS_NUM_THREADS": "1"},
    "2 threads": TWO,
    **processors.settings(),
}


def results():
    """Digest of all actions, number of actions left, and the last estimates, of each form on two kernels."""
    found = {}
    pool = product_pool(6, 40, (1, 1), np.random.SeedSequence(1))
    for kernel in (SquaredExponential(0.4), Matern(1.5, 0.8)):
        values = random_function(kernel, pool.points.reshape(-1, 2)[::30], np.random.SeedSequence(2))(pool.points)
        settings = CAPRI(pool, kernel, HORIZON, RANGE, error_scale=0.1, failure=0.1)
        forms = {"twin": settings.twin()}
        for trust, epsilon in EPSILONS.items():
            forms[str(trust)] = settings.private(ApproxDP(epsilon, 1e-5), trust, "tight")
        for name, form in forms.items():
            log = ActionLog()
            algorithm = dataclasses.replace(form, coins=np.arange(REPLICATES))
            stream = PooledFunction(pool, values, HORIZON, np.random.SeedSequence(3), RANGE, law="two-point")
            ledger = LiveLedger(REPLICATES, ReproducibleNoise(np.random.SeedSequence(4)))
            _, released = run(algorithm, stream, ledger, observers=[log])
            digest = sha256(np.array(log.actions).tobytes()).hexdigest()
            left = released.active.sum(axis=(1, 2)).tolist()
            found[f"{name} {kernel}"] = [digest, left, released.estimate[:, ::50].ravel().tolist()]
    return found


def _elsewhere(changes):
    environment = {key: value for key, value in os.environ.items() if key not in VARIABLES}
    environment |= {"PYTHONPATH": str(ROOT), **changes}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def here():
    return json.loads(json.dumps(results()))


def test_actions_are_eliminated(here):
    """Where all stay, nothing could hang on last bits."""
    assert all(max(left) < 240 for _, left, _ in here.values())


@pytest.mark.parametrize("name", nightly.first(1, ENVIRONMENTS))
def test_actions_depend_on_no_processor_and_no_number_of_threads(here, name):
    """In `make test`: all that may differ, at once; by itself nightly, which names the cause."""
    there = _elsewhere(ENVIRONMENTS[name])
    for form, (digest, left, estimates) in here.items():
        assert there[form][:2] == [digest, left], form
        np.testing.assert_allclose(there[form][2], estimates, atol=1e-6, err_msg=form)


if __name__ == "__main__":
    json.dump(results(), sys.stdout)
