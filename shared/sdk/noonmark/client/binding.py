"""One definition of each call for both clients.

A method of a group only describes its call. On the blocking client it returns the result, on the async client
a coroutine; type checkers know which.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from noonmark.client.answers import Call, Page
from noonmark.client.drivers import Awaiting, Blocking
from noonmark.client.steps import Steps, execute

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D", Blocking, Awaiting)


class Group(Generic[D]):
    """Calls about one kind of resource."""

    def __init__(self, driver: D, namespace: str | None) -> None:
        """Make the group of a client; its namespace is used if a call names none."""
        self.driver: D = driver
        self.namespace = namespace


class operation(Generic[P, T]):  # noqa: N801 - a decorator
    """Turns a method that returns a call or its steps into a method of a group."""

    def __init__(self, build: Callable[Concatenate[Any, P], Call[T] | Steps[T]]) -> None:
        self.build = build
        update_wrapper(self, build)  # type: ignore[arg-type]  # help() and documentation see the method

    @overload
    def __get__(self, group: None, owner: type[Any]) -> Self: ...

    @overload
    def __get__(self, group: Group[Blocking], owner: type[Any]) -> Callable[P, T]: ...

    @overload
    def __get__(self, group: Group[Awaiting], owner: type[Any]) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, group: Group[Any] | None, owner: type[Any]) -> Any:
        """Return the method of a group."""
        if group is None:
            return self

        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            asked = self.build(group, *args, **kwargs)
            return group.driver.drive(steps_of(group, asked))

        return update_wrapper(method, self.build)


def steps_of(group: Group[Any], asked: Call[T] | Steps[T]) -> Steps[T]:
    """Return the steps of a call."""
    if isinstance(asked, Call):
        return execute(asked, group.driver.retries, group.driver.timeout)
    return asked


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list that is fetched page by page while you iterate."""

    driver: Blocking
    call: Call[Page[T]]

    def page(self, cursor: str | None = None) -> Page[T]:
        """Return one page: the first, or the one at a cursor."""
        call = _at(self.call, cursor)
        return self.driver.drive(execute(call, self.driver.retries, self.driver.timeout))

    def __iter__(self) -> Iterator[T]:
        cursor = None
        while True:
            page = self.page(cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return


@dataclass(frozen=True, slots=True)
class AsyncListing(Generic[T]):
    """A list that is fetched page by page while you iterate."""

    driver: Awaiting
    call: Call[Page[T]]

    async def page(self, cursor: str | None = None) -> Page[T]:
        """Return one page: the first, or the one at a cursor."""
        call = _at(self.call, cursor)
        return await self.driver.drive(execute(call, self.driver.retries, self.driver.timeout))

    async def __aiter__(self) -> AsyncIterator[T]:
        cursor = None
        while True:
            page = await self.page(cursor)
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return


class listing(Generic[P, T]):  # noqa: N801 - a decorator
    """Turns a method that returns the call of a page into a method that lists."""

    def __init__(self, build: Callable[Concatenate[Any, P], Call[Page[T]]]) -> None:
        self.build = build
        update_wrapper(self, build)  # type: ignore[arg-type]

    @overload
    def __get__(self, group: None, owner: type[Any]) -> Self: ...

    @overload
    def __get__(self, group: Group[Blocking], owner: type[Any]) -> Callable[P, Listing[T]]: ...

    @overload
    def __get__(self, group: Group[Awaiting], owner: type[Any]) -> Callable[P, AsyncListing[T]]: ...

    def __get__(self, group: Group[Any] | None, owner: type[Any]) -> Any:
        """Return the method of a group."""
        if group is None:
            return self

        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            call = self.build(group, *args, **kwargs)
            driver = group.driver
            return Listing(driver, call) if isinstance(driver, Blocking) else AsyncListing(driver, call)

        return update_wrapper(method, self.build)


def _at(call: Call[Page[T]], cursor: str | None) -> Call[Page[T]]:
    return call if cursor is None else replace(call, params={**call.params, "cursor": cursor})
