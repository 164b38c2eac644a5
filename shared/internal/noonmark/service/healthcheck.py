"""Checks whether a service on this machine is healthy, for the health check of a container.

Imports only the standard library, because `python -m noonmark.service.healthcheck` runs every few seconds.
"""

from __future__ import annotations

import http.client
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_SECONDS: Final = 3.0
_BODY_BYTES: Final = 65_536
_EVERY_ADDRESS: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - called, not bound
"""The address to call if a service listens on all addresses."""


class HealthcheckError(ValueError):
    """The address of the service is unknown; the message contains what to set."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a check.

    Attributes:
        good: whether the service answered 200.
        text: its response, or why there is none.
    """

    good: bool
    text: str


def metrics_address(environment: Mapping[str, str]) -> tuple[str, int]:
    """Return the host and port on which a service with these settings serves its health.

    Raises:
        HealthcheckError: the settings contain no port, or one that is chosen at the start.
    """
    host = environment.get("NOONMARK_METRICS_HOST", "127.0.0.1")
    given = environment.get("NOONMARK_METRICS_PORT", "0")
    if not given.isascii() or not given.isdecimal() or not 1 <= int(given) <= 65_535:
        raise HealthcheckError(
            f"NOONMARK_METRICS_PORT is {given!r}: set it, as for the service, to a port from 1 to 65535"
        )
    return _EVERY_ADDRESS.get(host, host), int(given)


def ask(host: str, port: int, path: str, *, seconds: float = _SECONDS) -> Answer:
    """Request `/livez` or `/readyz` once; a failure is returned as a result, too."""
    connection = http.client.HTTPConnection(host, port, timeout=seconds)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read(_BODY_BYTES).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return Answer(
            good=False, text=f"no response from {host}, port {port}: {error or type(error).__name__}"
        )
    finally:
        connection.close()
    return Answer(good=response.status == http.client.OK, text=text)


def main() -> int:
    """Check `/livez` at the address from the environment; exit with 0 if healthy, otherwise with 1."""
    try:
        answer = ask(*metrics_address(os.environ), "/livez")
    except HealthcheckError as error:
        answer = Answer(good=False, text=str(error))
    print(answer.text, file=sys.stdout if answer.good else sys.stderr)
    return 0 if answer.good else 1


if __name__ == "__main__":
    sys.exit(main())
