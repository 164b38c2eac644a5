"""Responses as values: stored under an idempotency key, and replayed for repeats."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
import psycopg
from starlette.responses import Response

from noonmark.api.http.problems import ProblemError
from noonmark.schemas.problems.types import KEY_REUSED
from noonmark.store.access.idempotency import KeptAnswer, KeyOf, answers_before, keep_answers

REPLAYED: Final = "Idempotent-Replayed"


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A successful response.

    Attributes:
        body: a JSON value.
        headers: headers such as `Location` and `ETag`.
        replayed: True if it is the stored response of an earlier request with the same key.
    """

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    replayed: bool = False

    def response(self) -> Response:
        """Return it as HTTP response."""
        return Response(orjson.dumps(self.body), self.status, dict(self._headers()), "application/json")

    def encoded(self) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Return the headers and body of what `response` returns."""
        body = orjson.dumps(self.body)
        headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in self._headers()
        ]
        headers += ((b"content-length", b"%d" % len(body)), (b"content-type", b"application/json"))
        return headers, body

    def _headers(self) -> Iterator[tuple[str, str]]:
        yield from self.headers.items()
        if self.replayed:
            yield REPLAYED, "true"

    def kept(self, request_hash: bytes) -> KeptAnswer:
        """Return the part that is stored."""
        return KeptAnswer(request_hash, self.status, {"headers": dict(self.headers), "body": self.body})


@dataclass(frozen=True, slots=True)
class IdempotencyKeyHash:
    """The idempotency key of a request, and a hash of the request."""

    of: KeyOf
    request_hash: bytes

    @classmethod
    def make(cls, namespace: str, header: str | None, *request: object) -> IdempotencyKeyHash | None:
        """Create the key of a request; None if the request has none.

        Args:
            namespace: namespace of the request.
            header: value of `Idempotency-Key`.
            request: content of the request: the action and JSON values.
        """
        if header is None:
            return None
        said = orjson.dumps(request, option=orjson.OPT_SORT_KEYS, default=str)
        return cls(KeyOf(namespace, header), hashlib.blake2b(said, digest_size=16).digest())

    def reply_of(self, kept: KeptAnswer) -> StoredResponse:
        """Return the stored response of the key.

        Raises:
            ProblemError: if it belongs to another request.
        """
        if kept.request_hash != self.request_hash:
            raise ProblemError(KEY_REUSED, f"Idempotency-Key {self.of.key!r} was used for another request")
        return StoredResponse(kept.status, kept.body["body"], kept.body["headers"], replayed=True)

    def before(self, connection: psycopg.Connection) -> StoredResponse | None:
        """Return the response to an earlier request with this key. Locks the key until the transaction ends.

        Raises:
            ProblemError: if the earlier request was a different one.
        """
        kept = answers_before(connection, [self.of]).get(self.of)
        return None if kept is None else self.reply_of(kept)

    def keep(self, connection: psycopg.Connection, reply: StoredResponse) -> None:
        """Store a response, in the transaction of its change."""
        keep_answers(connection, [(self.of, reply.kept(self.request_hash))])
