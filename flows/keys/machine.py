"""Features of a machine that numbers can depend on: platform, processor, instruction sets, BLAS kernels, and Numba's target.

No path, no address and no name of the machine is read here.
"""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

_CPUINFO = Path("/proc/cpuinfo")
UNKNOWN = "unknown"


class Blas(BaseModel):
    """A linear-algebra library in this process.

    Attributes:
      library: its name and version, such as `openblas 0.3.31`.
      kernel: the processor type that its kernels are written for; OPENBLAS_CORETYPE chooses another one.
      threads: how many it computes with.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    library: str
    kernel: str
    threads: int


@cache
def system() -> str:
    """Operating system, its version, machine and C library in one word."""
    return platform.platform()


@cache
def processor() -> str:
    """The processor's model name, as the operating system gives it."""
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next((name for name in named if name), platform.processor() or platform.machine() or UNKNOWN)


@cache
def target() -> str:
    """The processor type that Numba compiles for, such as `znver4`; NUMBA_CPU_NAME chooses another one."""
    if chosen := os.environ.get("NUMBA_CPU_NAME"):
        return chosen
    try:
        from llvmlite.binding import get_host_cpu_name
    except ImportError:
        return UNKNOWN
    return str(get_host_cpu_name())


@cache
def features() -> tuple[str, ...]:
    """The instruction sets that NumPy chose its loops by; NPY_DISABLE_CPU_FEATURES takes some away."""
    import numpy as np

    config: Any = np.show_config(mode="dicts")
    extensions = config.get("SIMD Extensions", {})
    return tuple(str(name) for name in (*extensions.get("baseline", ()), *extensions.get("found", ())))


@cache
def blas() -> tuple[Blas, ...]:
    """The BLAS libraries of this process, each kind once."""
    import scipy.linalg  # noqa: F401  (SciPy brings a library of its own)
    from threadpoolctl import threadpool_info

    kernels = {
        Blas(
            library=f"{item['internal_api']} {item.get('version') or UNKNOWN}",
            kernel=str(item.get("architecture") or UNKNOWN),
            threads=int(item["num_threads"]),
        )
        for item in threadpool_info()
        if item["user_api"] == "blas"
    }
    return tuple(sorted(kernels, key=lambda item: (item.library, item.kernel, item.threads)))
