"""A Prefect server that runs already, for `bandana serve --server`: its address, its password, and what is told of it."""

from __future__ import annotations

import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from bandana.flows.annexes.operations.service import FAILED, HEARTBEAT
from bandana.flows.running.interrupt import stop
from bandana.flows.servers import login as logins
from bandana.flows.servers.loopback import is_loopback
from bandana.flows.servers.prefect_health import ServerError, unanswered, watch
from bandana.flows.texts.mistakes import SpecError

_TIMEOUT = 30.0


def check_address(api: str, insecure: bool) -> None:
    """Refuses an address that is none, or that a password would travel to in the clear, with SpecError.

    Args:
      api: the value of `--server`.
      insecure: whether plain HTTP beyond this machine is allowed.
    """
    parts = urlsplit(api)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise SpecError(
            f"--server: {api[:200]!r} is not the address of Prefect's API, such as http://127.0.0.1:4200/api; its password "
            f"is read from {logins.CLIENT}"
            if parts.username is None
            else f"--server: no password belongs into the address: set {logins.CLIENT}"
        )
    if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname):
        raise SpecError(
            f"--server: {api[:200]!r} is beyond this machine and not encrypted; who reads its password runs code as "
            "you: put TLS before it and write https://, or allow --insecure"
        )


def client_settings(api: str) -> dict[str, str]:
    """The environment of a service whose server is another process."""
    return {"PREFECT_API_URL": api, "PREFECT_LOGGING_LEVEL": "INFO", "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT)}


@contextmanager
def connected(api: str) -> Iterator[str]:
    """A server that answers and takes the login, for as long as the context lasts; also SIGTERM leaves the context.

    The address of its pages is yielded. A server that is gone for half a minute ends this process, in one line.

    Raises:
      ServerError: it does not answer, or refuses the login.
    """
    if failure := unanswered(f"{api}/health"):
        raise ServerError(f"Prefect's server at {api} does not answer ({failure}): start it, or check --server")
    request = urllib.request.Request(f"{api}/flows/count", b"{}", {"Content-Type": "application/json"})
    if login := os.environ.get(logins.CLIENT):
        request.add_header("Authorization", logins.authorization(login))
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT):
            pass
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            raise ServerError(
                f"Prefect's server at {api} denies access: set {logins.CLIENT} to the user:password that it was started with"
            ) from None
        raise ServerError(f"{api} is no Prefect server: it answers {error.code}; an address ends with /api") from None
    except OSError as error:
        raise ServerError(f"Prefect's server at {api} does not answer ({error})") from None
    previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    watch(lambda words: stop(words, FAILED))
    try:
        yield api.removesuffix("/api")
    finally:
        signal.signal(signal.SIGTERM, previous)
