"""An object store that speaks S3, on the loopback interface, for benchmarks and tests.

It is moto's server, which keeps everything in memory. Its threads may pass between the check of `If-None-Match` and the
write (12 of 400 races had two winners), so this one answers one request after the other: the first writer wins, as on S3.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

HOST = "127.0.0.1"


class Server:
    """The server in a thread of this process; it may stop, and start again with all that it held."""

    def __init__(self) -> None:
        self.port = 0
        self.start()

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs."""
        return environment_of(self.port)

    def start(self) -> None:
        """Listens, on the same port as before."""
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        application: Any = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(HOST, self.port, application, threaded=False)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Refuses connections from now on."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def make_bucket(self, name: str) -> None:
        """A new bucket."""
        make_bucket(self.environment, name)


def environment_of(port: int) -> dict[str, str]:
    """Environment variables of a client."""
    return {
        "AWS_ENDPOINT_URL": f"http://{HOST}:{port}", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "loopback", "AWS_SECRET_ACCESS_KEY": "loopback",
    }  # fmt: skip


def make_bucket(environment: dict[str, str], name: str) -> None:
    """A new bucket on the server that the environment names."""
    request = urllib.request.Request(f"{environment['AWS_ENDPOINT_URL']}/{name}", method="PUT")
    urllib.request.urlopen(request, timeout=60).close()


@contextmanager
def in_own_process() -> Iterator[dict[str, str]]:
    """The server in a process of its own, which ends with the context; yields the environment of its clients."""
    with subprocess.Popen([sys.executable, "-m", __name__], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield environment_of(int(process.stdout.readline()))
        finally:
            process.kill()


def main() -> None:
    """Prints the port, and serves until its parent ends."""
    from bandana.flows.running.processes import end_with

    end_with(os.getppid())
    server = Server()
    print(server.port, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    os.environ.pop("AWS_ENDPOINT_URL", None)
    main()
