"""The registry of handlers, by name; each is checked when it is registered."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, get_args, overload

from noonmark.handlers.context import Context

F = TypeVar("F", bound=Callable[..., Any])

RunMode = Literal["loop", "thread", "process"]
_MODES: Final[tuple[str, ...]] = get_args(RunMode)
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")


class HandlerError(ValueError):
    """A handler cannot be registered; the message contains its name, the reason and what to write instead."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered handler.

    Attributes:
        name: its name in job documents.
        function: called with the context as its only argument.
        is_async: whether it returns an awaitable.
        run: where it runs: on the event loop, on a thread, or in a separate process.
    """

    name: str
    function: Callable[[Context], Any]
    is_async: bool
    run: RunMode


class Registry:
    """Handlers by name. Users need only the registry of the process, through `handler`."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def __len__(self) -> int:
        return len(self._handlers)

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers.values())

    def get(self, name: str) -> Handler | None:
        """Return the handler registered under exactly this name, or None."""
        return self._handlers.get(name)

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._handlers)

    def add(
        self, function: Callable[..., Any], *, name: str | None = None, run: str | None = None
    ) -> Handler:
        """Check a function and register it.

        Args:
            function: sync or async, called with one `Context`.
            name: the dotted path of the function by default.
            run: `loop`, `thread` or `process`. Default: async functions on the loop, others on a thread.

        Raises:
            HandlerError: the function, its name or its run mode is not valid.
        """
        _check_callable(function)
        full_name = _name_of(function) if name is None else name
        _check_name(full_name, given=name is not None)
        _check_function(full_name, function)
        is_async = inspect.iscoroutinefunction(_code_of(function))
        mode = _mode_of(full_name, run, is_async=is_async)
        known = self._handlers.get(full_name)
        if known is not None:
            raise HandlerError(
                f"two handlers are named {full_name!r}: {_place(known.function)} and {_place(function)}; "
                'change one of the names: @handler("other.name")'
            )
        entry = Handler(full_name, function, is_async, mode)
        self._handlers[full_name] = entry
        return entry


REGISTRY: Final = Registry()
"""The handlers of this process."""


@overload
def handler(function: F, /) -> F: ...


@overload
def handler(name: str | None = None, /, *, run: RunMode | None = None) -> Callable[[F], F]: ...


def handler(target: Any = None, /, *, run: RunMode | None = None) -> Any:
    """Register a function as a handler; the function itself is not changed.

    Use it as `@handler`, as `@handler("mails.welcome")`, or as `@handler(run="process")`. The function takes
    the context: `def send(ctx): ...`, sync (runs on a thread) or async (runs on the event loop). In a
    process, both can be killed without affecting other handlers. The returned value is stored as the result
    of the run and must be JSON of at most 64 KB; an exception fails the attempt.

    Args:
        target: the function, or the name of the handler; by default its dotted path.
        run: `process`, or the default: `loop` for async functions, `thread` for others.

    Raises:
        HandlerError: at import time, if the function, its name or its run mode is not valid.
    """
    if target is None or isinstance(target, str):

        def register(function: F) -> F:
            REGISTRY.add(function, name=target, run=run)
            return function

        return register
    REGISTRY.add(target, run=run)
    return target


def _code_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a call executes: itself, the function of a partial, or `__call__`."""
    inner = inspect.unwrap(function)
    while hasattr(inner, "func") and hasattr(inner, "keywords"):
        inner = inner.func
    if inspect.isroutine(inner):
        return inner
    call: Callable[..., Any] = type(inner).__call__
    return call


def _check_callable(function: object) -> None:
    if isinstance(function, type):
        raise HandlerError(
            f"{function.__module__}.{function.__qualname__} is a class; a handler is a function: "
            "def send(ctx): ..."
        )
    if not callable(function):
        raise HandlerError(f"{function!r} is not callable; a handler is a function: def send(ctx): ...")


def _name_of(function: Callable[..., Any]) -> str:
    qualname = getattr(function, "__qualname__", None)
    if qualname is None:
        raise HandlerError(f'{function!r} has no name; set one: handler("mails.send")(function)')
    if "<" in qualname:
        raise HandlerError(
            f"{function.__module__}.{qualname} is defined inside a function or is a lambda, so its path "
            'cannot be imported; set a name: @handler("mails.send")'
        )
    return f"{function.__module__}.{qualname}"


def _check_name(name: str, *, given: bool) -> None:
    if _NAME.fullmatch(name) is None:
        hint = "" if given else '; set a name: @handler("mails.send")'
        raise HandlerError(
            f"{name!r} cannot name a handler: use 1 to 200 ASCII letters, digits, dots, dashes and "
            f"underscores, the first a letter, digit or underscore{hint}"
        )


def _mode_of(name: str, run: str | None, *, is_async: bool) -> RunMode:
    natural: RunMode = "loop" if is_async else "thread"
    if run is None or run == natural:
        return natural
    if run == "process":
        return "process"
    if run not in _MODES:
        raise HandlerError(f"handler {name!r} has run={run!r}; use one of {', '.join(_MODES)}")
    what = "async, so it runs on the event loop" if is_async else "not async, so it runs on a thread"
    raise HandlerError(f'handler {name!r} has run={run!r}, but it is {what}; leave run out, or use "process"')


def _check_function(name: str, function: Callable[..., Any]) -> None:
    code = _code_of(function)
    if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
        raise HandlerError(
            f"handler {name!r} is a generator (it has a yield), so calling it would run nothing; "
            "return the result instead"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise HandlerError(
            f"handler {name!r} has no signature that can be checked; wrap it: def send(ctx): ..."
        ) from None
    try:
        signature.bind(None)
    except TypeError:
        raise HandlerError(
            f"handler {name!r} takes {signature}; it is called with one argument, the context: "
            "def send(ctx): ..."
        ) from None


def _place(function: Callable[..., Any]) -> str:
    code = getattr(_code_of(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
