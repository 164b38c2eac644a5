"""Free loopback ports for servers that are killed and restarted on the same port."""

from __future__ import annotations

import random
import socket
from contextlib import closing
from pathlib import Path

from noonmark.devstack.processes.errors import DevStackError

LOOPBACK = "127.0.0.1"
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_240
_TRIES = 200
_RANDOM = random.SystemRandom()
"""Not seeded: test processes that seed `random` alike would all try the same ports."""


def _lowest_ephemeral_port() -> int:
    try:
        return int(_EPHEMERAL_RANGE.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        # As servers do: a port whose last connections linger in TIME_WAIT is free for them.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def answers(port: int) -> bool:
    """Whether something accepts connections on this loopback port."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0


def free_port(preferred: int | None = None, *, other_than: int | None = None) -> int:
    """Finds a free port below the range the system hands out for outgoing connections.

    A port from that range is a trap for a server that is killed and started again: a client which
    keeps reconnecting to it can be given the very same number as its own, connect to itself and so
    take the port away from the server.

    Args:
        preferred: Used if it is free, so that addresses stay the same across restarts.
        other_than: A port that the caller has chosen, but does not listen on yet.

    Raises:
        DevStackError: No free port was found.
    """
    if preferred is not None and is_free(preferred):
        return preferred
    upper = max(_lowest_ephemeral_port(), _LOWEST + 1_000)
    for _ in range(_TRIES):
        candidate = _RANDOM.randrange(_LOWEST, upper)
        if candidate != other_than and is_free(candidate):
            return candidate
    raise DevStackError(
        f"No free port was found on {LOOPBACK} between {_LOWEST} and {upper}.",
        remedy="Stop programs that use many ports, and try again.",
    )


def require_free(port: int, *, name: str, option: str) -> int:
    """Checks a port that the user chose.

    Raises:
        DevStackError: Another program listens there.
    """
    if is_free(port):
        return port
    raise DevStackError(
        f"Port {port} on {LOOPBACK}, chosen for {name}, is in use by another program.",
        remedy=f"Choose another with {option}, or leave the option out to use a free one.",
    )
