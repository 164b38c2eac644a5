"""Carries out, in the worker, what a handler in a child process calls on its context."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import orjson

from noonmark.attempts.secrets import SecretError
from noonmark.core.kinds.emitted_event import EmitRefusedError, event_from_wire
from noonmark.handlers.context import MAX_MESSAGE_CHARS
from noonmark.handlers.effects import Effects, Fenced, Saved
from noonmark.handlers.results import ResultError, encode_checkpoint
from noonmark.worker.processes.frames import FrameError


class ChildMessageHandler:
    """Handles the messages of one run, on the event loop."""

    def __init__(self, effects: Effects, send: Callable[[Mapping[str, Any]], None]) -> None:
        """Handle the messages of a run.

        Args:
            effects: the effects of its attempt.
            send: sends a message to the child without waiting.
        """
        self._effects = effects
        self._send = send
        self._saved: Saved | None = None
        self._waiting: asyncio.Future[None] | None = None

    def handle(self, message: Mapping[str, Any]) -> None:
        """Carry out a message, and reply if it is a request.

        Raises:
            FrameError: the message is unknown, or its contents are not valid. The handler controls its
                process, so everything that its context checks is checked again.
        """
        kind = message["type"]
        if kind == "log":
            self._effects.log(str(message["line"]))
        elif kind == "progress":
            self._effects.progress(
                _fraction(message["fraction"]), str(message["message"])[:MAX_MESSAGE_CHARS]
            )
        elif kind == "checkpoint":
            self._saved = self._effects.checkpoint(_checkpoint(str(message["data"])))
        elif kind == "saved":
            self._waiting = asyncio.ensure_future(self._reply_saved(message["id"]))
        elif kind in {"last_checkpoint", "secret", "emit"}:
            self._send({"type": "answer", "id": message["id"], **self._reply_to(kind, message)})
        else:
            raise FrameError(f"unknown message type {kind!r}")

    def _reply_to(self, kind: str, message: Mapping[str, Any]) -> dict[str, Any]:
        try:
            if kind == "secret":
                return {"value": self._effects.secret(str(message["name"]))}
            if kind == "emit":
                return {"value": self._effects.emit(event_from_wire(message))}
        except SecretError as error:
            return {"error": str(error), "kind": "secret", "retryable": error.retryable}
        except EmitRefusedError as error:
            return {"error": str(error), "kind": "emit"}
        kept = self._effects.last_checkpoint()
        return {"value": kept.decode() if kept is not None else None}

    async def _reply_saved(self, number: int) -> None:
        """Reply when the newest checkpoint is written, and all before it with it."""
        answer: dict[str, Any] = {"value": None}
        try:
            if self._saved is not None:
                await self._saved
        except Fenced as error:
            answer = {"error": str(error), "kind": "fenced"}
        except Exception as error:  # noqa: BLE001 - whatever it was, the handler waits for a reply
            answer = {"error": str(error), "kind": ""}
        with suppress(OSError, RuntimeError):
            self._send({"type": "answer", "id": number, **answer})


def _fraction(value: object) -> float | None:
    if value is None or (isinstance(value, int | float) and 0 <= value <= 1):
        return value
    raise FrameError("the progress is not between 0 and 1")


def _checkpoint(text: str) -> bytes:
    try:
        return encode_checkpoint(orjson.loads(text))
    except (orjson.JSONDecodeError, ResultError) as error:
        raise FrameError(f"the checkpoint cannot be stored: {error}") from None
