"""Answers as values: made once, kept under an idempotency key, and given again for it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
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
    """A successful answer.

    Attributes:
        body: a JSON value.
        headers: `Location` and `ETag`.
        replayed: it was given before, for the same key.
    """

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    replayed: bool = False

    def response(self) -> Response:
        """Return it as HTTP has it."""
        headers = {**self.headers, REPLAYED: "true"} if self.replayed else dict(self.headers)
        return Response(orjson.dumps(self.body), self.status, headers, "application/json")

    def kept(self, request_hash: bytes) -> KeptAnswer:
        """Return what is kept of it."""
        return KeptAnswer(request_hash, self.status, {"headers": dict(self.headers), "body": self.body})


@dataclass(frozen=True, slots=True)
class IdempotencyKeyHash:
    """An idempotency key of a request, and what the request was."""

    of: KeyOf
    request_hash: bytes

    @classmethod
    def make(cls, namespace: str, header: str | None, *request: object) -> IdempotencyKeyHash | None:
        """Make the key of a request; None where it came without one.

        Args:
            namespace: that the request acts in.
            header: `Idempotency-Key`.
            request: what it asks for: an act and JSON values.
        """
        if header is None:
            return None
        said = orjson.dumps(request, option=orjson.OPT_SORT_KEYS, default=str)
        return cls(KeyOf(namespace, header), hashlib.blake2b(said, digest_size=16).digest())

    def reply_of(self, kept: KeptAnswer) -> StoredResponse:
        """Return the answer that the key got before.

        Raises:
            ProblemError: to another request.
        """
        if kept.request_hash != self.request_hash:
            raise ProblemError(
                KEY_REUSED, f"Idempotency-Key {self.of.key!r} came with another request before"
            )
        return StoredResponse(kept.status, kept.body["body"], kept.body["headers"], replayed=True)

    def before(self, connection: psycopg.Connection) -> StoredResponse | None:
        """Return the answer to an earlier request with this key; until the transaction ends nobody adds one.

        Raises:
            ProblemError: the earlier request was another one.
        """
        kept = answers_before(connection, [self.of]).get(self.of)
        return None if kept is None else self.reply_of(kept)

    def keep(self, connection: psycopg.Connection, reply: StoredResponse) -> None:
        """Keep an answer in the transaction that it tells of."""
        keep_answers(connection, [(self.of, reply.kept(self.request_hash))])
