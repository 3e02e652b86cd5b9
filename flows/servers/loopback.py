"""Ports of the loopback interface, where all servers listen."""

from __future__ import annotations

import ipaddress
import socket

from bandana.flows.texts.mistakes import SpecError

HOST = "127.0.0.1"


def why_unusable(port: int) -> str | None:
    """Why a server cannot listen on a port of the loopback interface; None where it can."""
    with socket.socket() as probe:
        # As a server asks: a port whose last owner just went is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            return error.strerror or str(error)
    return None


def is_loopback(host: str | None) -> bool:
    """True if a host, by name or by address, is this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def check_port(port: int) -> None:
    """Refuses a port that is in use or needs more rights, with SpecError."""
    if reason := why_unusable(port):
        raise SpecError(f"--port: {port} cannot be used ({reason}): choose another one")
