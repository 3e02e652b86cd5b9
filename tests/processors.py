"""This machine as another processor: environments in which NumPy, SciPy and OpenBLAS take other kernels than by default.

    python -m tests.processors                     the environments that this machine can stand for
    python -m tests.processors pytest -m numeric   Python's module pytest, as another processor

The libraries choose their kernels by the instructions that they find: sums run in another order, exponentials take another
polynomial, and last bits differ. What hangs on them is red on the next machine.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import scipy.linalg  # noqa: F401  (its own OpenBLAS is seen only if it is loaded)
from threadpoolctl import threadpool_info

CORES = ("Haswell", "SkylakeX")
"""Kernels of OpenBLAS for x86 with and without AVX-512; nearly every processor of these years takes one of them."""
_NEEDS = {"SkylakeX": ("AVX512_SKX", "X86_V4"), "Haswell": ("AVX2", "X86_V3")}
"""Instructions of which the processor must know one."""


def own_cores() -> set[str]:
    """The kernels that OpenBLAS takes here, by NumPy's copy of it and by SciPy's."""
    return {info["architecture"] for info in threadpool_info() if info.get("internal_api") == "openblas"}


def newer_instructions() -> list[str]:
    """The instruction sets for which NumPy has code beside the baseline, of those that this processor knows."""
    return list(np.show_config(mode="dicts")["SIMD Extensions"].get("found", []))


def settings() -> dict[str, dict[str, str]]:
    """Name -> environment variables: each other BLAS kernel, NumPy without newer instructions, and both at once."""
    features = newer_instructions()
    cores = [core for core in CORES if {core} != own_cores() and any(name in features for name in _NEEDS[core])]
    found = {f"{core} kernels": {"OPENBLAS_CORETYPE": core} for core in cores}
    if features:
        found["old instructions"] = {"NPY_DISABLE_CPU_FEATURES": " ".join(features)}
        found["other processor"] = {**(found[f"{cores[0]} kernels"] if cores else {}), **found["old instructions"]}
    return found


def other_processor() -> dict[str, str]:
    """The environment that differs most from this processor; none where there is no choice."""
    return next(reversed(settings().values()), {})


def main() -> None:
    if len(sys.argv) == 1:
        for name, changes in settings().items():
            print(f"{name}: {' '.join(f'{key}={value!r}' for key, value in changes.items())}")
        return
    changes = other_processor()
    told = " ".join(f"{key}={value!r}" for key, value in changes.items())
    print(told or "this processor can stand for no other", file=sys.stderr, flush=True)
    os.execve(sys.executable, [sys.executable, "-m", *sys.argv[1:]], {**os.environ, **changes})


if __name__ == "__main__":
    main()
