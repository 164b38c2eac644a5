"""One bounded POST or GET to an address that an operator gave: no redirects, and no address in any text."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Final

import httpx

TIMEOUT_SECONDS: Final = 10.0
"""For each step of a call, and for its answer as a whole."""

_MOST_ANSWER: Final = 64 * 1024
_MOST_SHOWN: Final = 300
_AGENT: Final = f"noonmark/{version('noonmark')}"

# It logs every address, and these hold secrets.
logging.getLogger("httpx").setLevel(logging.WARNING)


class NotTakenError(Exception):
    """A call was not answered with success; the message says why, and shows nothing of the address.

    Attributes:
        status: of the answer; None where none came.
    """

    def __init__(self, told: str, status: int | None = None) -> None:
        super().__init__(told)
        self.status = status


class Poster:
    """Makes calls over connections of its own. Thread-safe."""

    def __init__(self, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """Connect when first asked."""
        self._timeout_seconds = timeout_seconds
        # Neither proxies nor .netrc of the environment: what is sent may go to the given host alone.
        self._client = httpx.Client(timeout=timeout_seconds, follow_redirects=False, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def call(self, url: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> int:
        """POST a body of JSON, or GET where there is none; return the status of success.

        Raises:
            NotTakenError: it did not succeed.
        """
        sent = {"user-agent": _AGENT, **(headers or {})}
        if body is not None:
            sent["content-type"] = "application/json"
        method = "GET" if body is None else "POST"
        try:
            with self._client.stream(method, url, content=body, headers=sent) as answer:
                told = self._read(answer)
        except httpx.TimeoutException:
            raise NotTakenError(f"no answer within {self._timeout_seconds:g} s") from None
        except httpx.ConnectError as error:
            raise NotTakenError(f"cannot be reached: {error}"[:_MOST_SHOWN]) from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            # The library's own text may quote the address.
            raise NotTakenError(f"no usable answer ({type(error).__name__})") from None
        status = answer.status_code
        if 300 <= status < 400:
            raise NotTakenError(
                f"answered {status}: redirects are not followed, name the address itself", status
            )
        if not 200 <= status < 300:
            raise NotTakenError(f"answered {status}: {told}" if told else f"answered {status}", status)
        return status

    def _read(self, answer: httpx.Response) -> str:
        """Read an answer to its end, so that its connection serves again; return how it begins."""
        until = time.monotonic() + self._timeout_seconds
        kept, size = b"", 0
        for part in answer.iter_raw():
            size += len(part)
            kept += part[: _MOST_SHOWN - len(kept)]
            if size > _MOST_ANSWER or time.monotonic() > until:
                break
        text = kept.decode("utf-8", "replace")
        return "".join(one if one.isprintable() else " " for one in text).strip()
