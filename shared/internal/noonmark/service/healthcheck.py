"""Asks a service of this machine whether it is well, for the health check of a container.

Imports nothing but the standard library: `python -m noonmark.service.healthcheck` is run every few seconds.
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
_EVERY_ADDRESS: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - asked, not bound
"""Where to ask what listens on every address."""


class HealthcheckError(ValueError):
    """There is no address to ask; the message says what to set."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service said.

    Attributes:
        good: it answered 200.
        text: its answer, or why there is none.
    """

    good: bool
    text: str


def metrics_address(environment: Mapping[str, str]) -> tuple[str, int]:
    """Return host and port that a service with these settings answers on.

    Raises:
        HealthcheckError: they name no port, or one that is chosen when it starts.
    """
    host = environment.get("NOONMARK_METRICS_HOST", "127.0.0.1")
    given = environment.get("NOONMARK_METRICS_PORT", "0")
    if not given.isascii() or not given.isdecimal() or not 1 <= int(given) <= 65_535:
        raise HealthcheckError(
            f"NOONMARK_METRICS_PORT is {given!r}: set it, as for the service, to a port from 1 to 65535"
        )
    return _EVERY_ADDRESS.get(host, host), int(given)


def ask(host: str, port: int, path: str, *, seconds: float = _SECONDS) -> Answer:
    """Ask `/livez` or `/readyz` once; whatever goes wrong is an answer too."""
    connection = http.client.HTTPConnection(host, port, timeout=seconds)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read(_BODY_BYTES).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return Answer(good=False, text=f"no answer from {host}, port {port}: {error or type(error).__name__}")
    finally:
        connection.close()
    return Answer(good=response.status == http.client.OK, text=text)


def main() -> int:
    """Ask `/livez` where the environment says; exit code 0 where it is well, else 1."""
    try:
        answer = ask(*metrics_address(os.environ), "/livez")
    except HealthcheckError as error:
        answer = Answer(good=False, text=str(error))
    print(answer.text, file=sys.stdout if answer.good else sys.stderr)
    return 0 if answer.good else 1


if __name__ == "__main__":
    sys.exit(main())
