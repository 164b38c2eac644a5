"""Catalogues: what the live workers of each pool can run, as registered; read when a job is submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

import orjson
import psycopg

from noonmark.schemas.problems.refusal import printable
from noonmark.store.database.statements import statement

_MOST_NAMES: Final = 20
_MOST_NEAR: Final = 3


class Misfit(NamedTuple):
    """Why no live worker of a pool can run a job: JSON pointer, what is wrong, what is possible."""

    pointer: str
    message: str
    expected: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What the live workers of one pool can run together.

    Attributes:
        kinds: kinds of jobs.
        handlers: names of Python handlers.
        complete: whether each of the workers registered what it can run; older versions do not.
    """

    kinds: frozenset[str]
    handlers: frozenset[str]
    complete: bool

    def misfit(self, pool: str, kind: str, handler: str | None) -> Misfit | None:
        """Return why no worker of the pool can run a job; None if one can, or if that is not known."""
        if not self.complete:
            return None
        if kind not in self.kinds:
            kinds = _names(self.kinds)
            return Misfit("/type", f"no live worker of pool {pool!r} runs jobs of type {kind!r}", kinds)
        if kind != "python" or handler is None or handler in self.handlers:
            return None
        near = get_close_matches(handler[:200], self.handlers, n=_MOST_NEAR, cutoff=0.6)
        guess = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        message = f"no live worker of pool {pool!r} has a handler {printable(handler)!r}{guess}"
        return Misfit("/handler", message, _names(self.handlers))


def live_catalogues(connection: psycopg.Connection) -> Mapping[str, Catalogue]:
    """Return the catalogues of the live workers by pool; pools without live workers are left out."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for pool, said in connection.execute(statement("read_live_catalogues")).fetchall():
        found.setdefault(pool, []).append(said)
    return {pool: _together(said) for pool, said in found.items()}


def catalogue_text(kinds: Sequence[str], handlers: Mapping[str, str]) -> str:
    """Return the catalogue that a worker registers: JSON with its kinds, and the mode of each handler."""
    return orjson.dumps({"kinds": list(kinds), "handlers": dict(sorted(handlers.items()))}).decode()


def _together(said: list[Mapping[str, Any]]) -> Catalogue:
    return Catalogue(
        frozenset(kind for one in said for kind in one.get("kinds", ())),
        frozenset(name for one in said for name in one.get("handlers", ())),
        complete=all("kinds" in one for one in said),
    )


def _names(names: frozenset[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - _MOST_NAMES} more" if len(listed) > _MOST_NAMES else ""
    if not listed:
        return "one of a live worker; none has registered any"
    return f"one of: {', '.join(listed[:_MOST_NAMES])}{more}"
