"""A real S3 server on the loopback interface, shared by all tests here; each has a bucket and machines of its own."""

import itertools

import pytest

from benchmarks.object_server import Server

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def server():
    return Server()


@pytest.fixture
def bucket(server, monkeypatch):
    """Name of a new bucket, which the environment's credentials open."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    name = f"lab-{next(_NUMBERS)}"
    server.make_bucket(name)
    return name


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Moves this process to a machine of that name: a local folder that no other one sees, and nothing held in memory."""
    from bandana.flows.annexes.machines.object_files import files_at

    def go(name):
        monkeypatch.setenv("BANDANA_LOCAL", str(tmp_path / name))
        files_at.cache_clear()
        return tmp_path / name

    yield go
    files_at.cache_clear()
