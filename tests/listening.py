"""What a process and all that it started listen on, as the operating system tells."""

import ipaddress
import os
import socket
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path


def family(pid):
    """A process and all its descendants that are alive."""
    import psutil

    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def listening(pid):
    """(address, port) of every TCP socket on which the process or a descendant listens, and of every UDP socket."""
    import psutil

    found = set()
    for process in family(pid):
        try:
            sockets = process.net_connections(kind="inet")
        except psutil.NoSuchProcess:
            continue
        found |= {
            (one.laddr.ip, one.laddr.port)
            for one in sockets
            if one.laddr and not one.raddr and one.status in ("LISTEN", "NONE")
        }
    return found


def beyond_loopback(addresses):
    """Those that other machines reach."""
    return {(ip, port) for ip, port in addresses if not ipaddress.ip_address(ip).is_loopback}


def admits(port, crt=None, key=None):
    """Whether what listens there speaks TLS with a client that shows this certificate, or none, and trusts everybody."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if crt is not None:
        context.load_cert_chain(crt, key)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as plain, context.wrap_socket(plain) as wrapped:
            return bool(wrapped.recv(1))  # who was refused hears of it with the first byte; Dask's servers speak first
    except (ssl.SSLError, ConnectionError):
        return False


def shows_pages(port):
    """Whether what listens there answers plain HTTP."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as plain, suppress(ConnectionError):
        plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return plain.recv(4) == b"HTTP"
    return False


class Terminals:
    """Shells in one folder, each with the lines that every one of them starts with; all end with the context."""

    def __init__(self, folder: Path, start: str) -> None:
        self.folder, self.start = folder, start
        self.processes: list[subprocess.Popen[bytes]] = []
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "DASK_", "BANDANA_"))}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**kept, "PATH": path, "PREFECT_HOME": str(folder / "prefect"), "HOME": str(folder)}

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            members = family(process.pid)
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            for member in members:
                if member.is_running():
                    member.kill()
            process.wait(20)

    def run(self, lines: str) -> str:
        """Runs lines to their end, and returns what they print."""
        script = f"set -e\n{self.start}\n{lines}"
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def open(self, lines: str) -> int:
        """Starts lines whose last one stays, and returns the process that it becomes."""
        *before, last = lines.strip().splitlines()
        script = "\n".join(["set -e", self.start, *before, f"exec {last}"])
        with (self.folder / "terminals.log").open("ab") as log:
            process = subprocess.Popen(
                ["bash", "-c", script], cwd=self.folder, env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self.processes.append(process)
        return process.pid

    def wait(self, is_ready, seconds=240):
        """Waits until something is true of what runs here."""
        deadline = time.monotonic() + seconds
        while not is_ready():
            said = (self.folder / "terminals.log").read_text(errors="replace")
            assert all(process.poll() is None for process in self.processes), said
            assert time.monotonic() < deadline, said
            time.sleep(0.2)
