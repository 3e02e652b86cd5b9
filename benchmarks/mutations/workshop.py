"""Copies of the checkout in which tests run, and the servers that run them; the checkout itself is never changed."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

PRODUCT = ("privacy_core", "algorithms", "audits", "flows")
_TOOL = Path(__file__).parents[2]
_NEVER_PRELOADED = {"prefect", "mlflow", "prefect_dask", "dask", "distributed", "playwright", "mkdocs", "yaml_env_tag"}
"""They read the environment when they are imported, and tests set it before."""


def tracked_files(root: Path) -> list[str]:
    """Files of the checkout that git knows or would add, relative to the root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode().split("\0")
    return sorted(path for path in listed if path and (root / path).is_file())


def links(root: Path) -> list[str]:
    """The packages' places below their import name: links to folders, relative to the root."""
    return sorted(path.relative_to(root).as_posix() for path in (root / "bandana").glob("*") if path.is_symlink())


def fingerprint(root: Path, paths: Iterable[str]) -> str:
    """Changes with the content of any of the files."""
    digest = sha256()
    for path in sorted(paths):
        content = (root / path).read_bytes()
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def synchronize(root: Path, copy: Path) -> None:
    """Makes the copy's files those of the checkout; what is equal is not touched, so that compiled code stays valid."""
    wanted = set(tracked_files(root))
    for path in wanted:
        source, target = root / path, copy / path
        is_same = target.exists() and target.stat().st_mtime == source.stat().st_mtime
        if not is_same or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    for path in links(root):
        if not (copy / path).is_symlink():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).symlink_to((root / path).readlink())
    for target in [path for path in copy.rglob("*.py") if "__pycache__" not in path.parts]:
        if target.relative_to(copy).as_posix() not in wanted:
            target.unlink()
    if not (copy / ".git").exists():  # some tests ask git for the checkout's files
        subprocess.run(["git", "init", "-q", "."], cwd=copy, check=True)
    subprocess.run(["git", "add", "-A", "."], cwd=copy, check=True, capture_output=True)


class Result(NamedTuple):
    """How a job ended.

    Attributes:
      code: pytest's exit status; -1 if a signal ended the process.
      ended_by: the signal, `late` for the limit in wall time; empty if it ended by itself.
      cpu: processor seconds.
      written: what the job wrote; empty if it did not come to that.
      last_test: the test that was running when a signal ended it.
      log: the end of pytest's output.
    """

    code: int
    ended_by: str
    cpu: float
    written: dict[str, Any]
    last_test: str
    log: str


class Workshop:
    """One copy of the checkout with a server; use it as a context.

    Attributes:
      copy: the folder.
      kernels: where Numba keeps what it compiled in this copy.
    """

    def __init__(self, root: Path, folder: Path, preloaded: list[str], environment: dict[str, str] | None = None) -> None:
        self.copy = folder / "checkout"
        self.kernels = folder / "kernels"
        self._folder = folder
        self._root = root
        self._preloaded = preloaded
        self._environment = environment or {}
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> Workshop:
        synchronize(self._root, self.copy)
        return self

    def __exit__(self, *error: object) -> None:
        if self._server is not None and self._server.stdin is not None:
            self._server.stdin.close()
            self._server.wait()

    def _started(self) -> subprocess.Popen[str]:
        if self._server is None:
            foreign = ("PREFECT_", "MLFLOW_", "PYTEST_", "BANDANA_")
            environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
            has_tool = (self.copy / "benchmarks" / "mutations").exists()
            path = [str(self.copy)] if has_tool else [str(self.copy), str(_TOOL)]
            environment |= {
                "PYTHONPATH": os.pathsep.join(path), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
                "NUMBA_CACHE_DIR": str(self.kernels), **self._environment,
            }  # fmt: skip
            self._server = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.mutations.server"], cwd=self.copy, env=environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=(self._folder / "server.log").open("w"),
            )  # fmt: skip
            self._say(json.dumps(self._preloaded))
            self._hear()
        return self._server

    def _say(self, line: str) -> None:
        assert self._server is not None
        assert self._server.stdin is not None
        self._server.stdin.write(line + "\n")
        self._server.stdin.flush()

    def _hear(self) -> str:
        assert self._server is not None
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            raise RuntimeError(f"the server ended: {(self._folder / 'server.log').read_text()[-2000:]}")
        return line

    def run(self, job: dict[str, Any]) -> Result:
        """Runs a job; its folder is emptied before and kept after."""
        place = self._folder / "job"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        self._started()
        self._say(json.dumps({**job, "folder": str(place)}))
        ended = json.loads(self._hear())
        written = json.loads((place / "result.json").read_text()) if (place / "result.json").exists() else {}
        last = (place / "progress").read_text(encoding="utf-8") if (place / "progress").exists() else ""
        log = (place / "log").read_bytes()[-4000:].decode(errors="replace")
        shutil.rmtree(place / "tmp", ignore_errors=True)
        return Result(**ended, written=written, last_test=last, log=log)

    def replace(self, path: str, text: str) -> None:
        """Writes a file of the copy, with a time made of its content: compiled code is known by time and size."""
        target = self.copy / path
        target.write_text(text, encoding="utf-8")
        past = 1_000_000_000 + int(sha256(text.encode()).hexdigest()[:7], 16)
        os.utime(target, (past, past))

    def restore(self, path: str) -> None:
        """Puts the checkout's version back."""
        shutil.copy2(self._root / path, self.copy / path)


def third_party(root: Path, paths: Iterable[str]) -> list[str]:
    """Modules from elsewhere that the files import, by dotted names, as far as they may be imported before a test."""
    own = {"bandana"} | {Path(path).parts[0].removesuffix(".py") for path in paths} | {Path(path).stem for path in paths}
    found: set[str] = set()
    for path in paths:
        for node in ast.walk(ast.parse((root / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module)
    return sorted(name for name in found if name.partition(".")[0] not in own | _NEVER_PRELOADED)
