"""Server-sent events: a parser without I/O."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event of a stream.

    Attributes:
        event: its kind; `message` if the server names none.
        data: decoded if it is JSON, else text.
        id: the position to resume from; the last one given if it has none itself.
    """

    event: str
    data: Any
    id: str | None


class EventParser:
    """Reads a stream of server-sent events in pieces of any size."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self.retry_seconds: float | None = None
        self._rest = ""
        self._id: str | None = None
        self._event = ""
        self._data: list[str] = []

    def feed(self, text: str) -> list[ServerEvent]:
        """Add a piece of the stream and return the events that it completes."""
        text = self._rest + text
        # A CR at the end may be half of a line break: wait for its other half.
        held = "\r" if text.endswith("\r") else ""
        whole = text.removesuffix(held) if held else text
        lines = re.split("\r\n|\r|\n", whole)
        self._rest = lines.pop() + held
        return [event for line in lines if (event := self._line(line)) is not None]

    def restart(self) -> None:
        """Drop what is incomplete: the stream broke, and restarts after the last id."""
        self._rest, self._id, self._event, self._data = "", self.last_id, "", []

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            return self._complete()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isdecimal():
            self.retry_seconds = int(value) / 1000
        return None

    def _complete(self) -> ServerEvent | None:
        # Not earlier: a stream that breaks within an event is resumed before that event.
        self.last_id = self._id
        event, data = self._event or "message", "\n".join(self._data)
        had = bool(self._data)
        self._event, self._data = "", []
        return ServerEvent(event, _decoded(data), self.last_id) if had else None


def _decoded(data: str) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data
