"""Answers to requests that carried a key, so that a repeat gets the same one and changes nothing again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
import psycopg

from noonmark.store.database.statements import statement


class KeyOf(NamedTuple):
    """A key as its client gave it; another namespace may have the same."""

    namespace: str
    key: str


class KeptAnswer(NamedTuple):
    """What a request was answered.

    Attributes:
        request_hash: of the request; another request must not use its key.
        status: HTTP status.
        body: a JSON value.
    """

    request_hash: bytes
    status: int
    body: Any


def answers_before(connection: psycopg.Connection, keys: Sequence[KeyOf]) -> dict[KeyOf, KeptAnswer]:
    """Wait for requests under way with these keys, and return what is known of them.

    Whoever else asks waits until the caller's transaction ends. To be asked before other locks are taken.
    """
    if not keys:
        return {}
    which = {"namespaces": [key.namespace for key in keys], "keys": [key.key for key in keys]}
    rows = connection.execute(statement("read_idempotent_responses"), which).fetchall()
    return {KeyOf(row[0], row[1]): KeptAnswer(bytes(row[2]), row[3], row[4]) for row in rows}


def keep_answers(connection: psycopg.Connection, answers: Sequence[tuple[KeyOf, KeptAnswer]]) -> None:
    """Keep answers inside the transaction that asked for their keys."""
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
