"""Opens callbacks for attempts whose target can report the result later (docs/webhooks.md)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.store.outcomes.callback_rows import NewCallback, open_callbacks
from noonmark.store.runs.worker_lease import Identity
from noonmark.worker.kinds.lookups import PostgresLookups

_TOKEN_BYTES: Final = 32
_MOST_AT_ONCE: Final = 500

_Waiting = tuple[NewCallback, "asyncio.Future[bool]"]


class CallbackTokens:
    """Issues callback tokens; the digest of each is in Postgres before its request is sent.

    One statement opens the callbacks of attempts that begin together.
    """

    def __init__(self, lookups: PostgresLookups, identity: Callable[[], Identity]) -> None:
        """Use these look-ups; `identity` returns the current lease of the worker."""
        self._lookups = lookups
        self._identity = identity
        self._waiting: list[_Waiting] = []
        self._writer: asyncio.Task[None] | None = None

    async def open(self, attempt: RunningAttempt) -> str | None:
        """Return the token of an attempt; None if this worker does not own the run any more.

        Raises:
            psycopg.Error: the database is down, so the request must not be sent.
        """
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        wanted = NewCallback(attempt.run.id, attempt.run.scheduled_for, attempt.fence, token)
        self._waiting.append((wanted, answer))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())
        return token if await answer else None

    async def _write(self) -> None:
        try:
            while self._waiting:
                group = self._waiting[:_MOST_AT_ONCE]
                del self._waiting[:_MOST_AT_ONCE]
                await self._write_some(group)
        finally:
            self._writer = None

    async def _write_some(self, group: Sequence[_Waiting]) -> None:
        identity = self._identity()
        query = partial(
            open_callbacks,
            worker=identity.worker,
            epoch=identity.epoch,
            wanted=[wanted for wanted, answer in group if not answer.done()],
        )
        try:
            opened = await self._lookups.call(query)
        except Exception as error:  # noqa: BLE001 - every waiting attempt must be informed
            for _, answer in group:
                if not answer.done():
                    answer.set_exception(error)
            return
        for wanted, answer in group:
            if not answer.done():
                answer.set_result(wanted.run_id in opened)
