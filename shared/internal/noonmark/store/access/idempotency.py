"""Responses to requests with an idempotency key: a repeated request gets the same one and changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
import psycopg

from noonmark.store.database.statements import statement


class KeyOf(NamedTuple):
    """An idempotency key of a client; it is unique within its namespace."""

    namespace: str
    key: str


class KeptAnswer(NamedTuple):
    """The stored response to a request.

    Attributes:
        request_hash: hash of the request; a different request must not use its key.
        status: HTTP status.
        body: a JSON value.
    """

    request_hash: bytes
    status: int
    body: Any


def answers_before(connection: psycopg.Connection, keys: Sequence[KeyOf]) -> dict[KeyOf, KeptAnswer]:
    """Wait for requests in flight with these keys, and return the stored responses.

    Others with these keys wait until the caller's transaction ends. Call this before taking other locks.
    """
    if not keys:
        return {}
    which = {"namespaces": [key.namespace for key in keys], "keys": [key.key for key in keys]}
    rows = connection.execute(statement("read_idempotent_responses"), which).fetchall()
    return {KeyOf(row[0], row[1]): KeptAnswer(bytes(row[2]), row[3], row[4]) for row in rows}


def keep_answers(connection: psycopg.Connection, answers: Sequence[tuple[KeyOf, KeptAnswer]]) -> None:
    """Store responses in the transaction that locked their keys."""
    if not answers:
        return
    connection.execute(
        statement("store_idempotent_responses"),
        {
            "namespaces": [key.namespace for key, _ in answers],
            "keys": [key.key for key, _ in answers],
            "hashes": [answer.request_hash for _, answer in answers],
            "statuses": [answer.status for _, answer in answers],
            "bodies": [orjson.dumps(answer.body).decode() for _, answer in answers],
        },
    )
