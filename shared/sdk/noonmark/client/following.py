"""Streams of events that resume where they broke."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Concatenate, Generic, ParamSpec, Self, overload

from noonmark.client.answers import Call
from noonmark.client.binding import Group
from noonmark.client.drivers import Awaiting, Blocking
from noonmark.client.errors import ApiError, NoAnswerError
from noonmark.client.steps import PASSING, Retries
from noonmark.client.streams import EventParser, ServerEvent

P = ParamSpec("P")


@dataclass(slots=True)
class _Course:
    """The position in a stream, and how often in a row it broke."""

    call: Call[Any]
    retries: Retries
    parser: EventParser = field(default_factory=EventParser)
    failed: int = 0

    def request(self) -> Call[Any]:
        """Return the request that resumes after the last event."""
        headers = {**self.call.headers, "Accept": "text/event-stream", "Last-Event-ID": self.parser.last_id}
        return replace(self.call, headers=headers)

    def take(self, piece: str) -> list[ServerEvent]:
        """Parse received text."""
        self.failed = 0
        return self.parser.feed(piece)

    def broken(self, error: NoAnswerError | ApiError | None) -> float:
        """Return the seconds before the stream is opened again.

        Raises:
            ApiError: opening it again cannot help.
            NoAnswerError: it broke too often in a row.
        """
        self.parser.restart()
        self.failed += 1
        passing = not isinstance(error, ApiError) or error.status in PASSING
        if error is not None and (not passing or self.failed > self.retries.most):
            raise error
        return self.retries.delay(self.failed, self.parser.retry_seconds or 0.0)


def follow(driver: Blocking, call: Call[Any]) -> Iterator[ServerEvent]:
    """Yield the events of a stream until the server ends it or cannot be reached."""
    course = _Course(call, driver.retries)
    while True:
        problem: NoAnswerError | ApiError | None = None
        try:
            with driver.stream(course.request()) as pieces:
                if pieces is None:
                    return
                for piece in pieces:
                    for event in course.take(piece):
                        yield event
                        if _is_last(event):
                            return
        except (NoAnswerError, ApiError) as error:
            problem = error
        time.sleep(course.broken(problem))


async def follow_async(driver: Awaiting, call: Call[Any]) -> AsyncIterator[ServerEvent]:
    """Yield the events of a stream; see `follow`."""
    course = _Course(call, driver.retries)
    while True:
        problem: NoAnswerError | ApiError | None = None
        try:
            async with driver.stream(course.request()) as pieces:
                if pieces is None:
                    return
                async for piece in pieces:
                    for event in course.take(piece):
                        yield event
                        if _is_last(event):
                            return
        except (NoAnswerError, ApiError) as error:
            problem = error
        await asyncio.sleep(course.broken(problem))


def _is_last(event: ServerEvent) -> bool:
    """Return whether there is nothing to resume after an event: what the stream follows has finished."""
    return event.event == "end" and isinstance(event.data, dict) and event.data.get("reason") == "finished"


class streaming(Generic[P]):  # noqa: N801 - a decorator
    """Turns a method that returns the call of a stream into a method that yields events."""

    def __init__(self, build: Callable[Concatenate[Any, P], Call[Any]]) -> None:
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, group: None, owner: type[Any]) -> Self: ...

    @overload
    def __get__(self, group: Group[Blocking], owner: type[Any]) -> Callable[P, Iterator[ServerEvent]]: ...

    @overload
    def __get__(
        self, group: Group[Awaiting], owner: type[Any]
    ) -> Callable[P, AsyncIterator[ServerEvent]]: ...

    def __get__(self, group: Group[Any] | None, owner: type[Any]) -> Any:
        """Return the method of a group."""
        if group is None:
            return self

        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            call = self.build(group, *args, **kwargs)
            driver = group.driver
            return follow(driver, call) if isinstance(driver, Blocking) else follow_async(driver, call)

        method.__doc__ = self.build.__doc__
        return method
