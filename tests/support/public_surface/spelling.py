"""How types, signatures and defaults are spelt: the same wherever the classes live."""

from __future__ import annotations

import ast
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import cache
from pathlib import PurePath
from typing import Any, Final, TypeVar

import pydantic

_OWN: Final = "noonmark"
_T = TypeVar("_T")


def hints_of(thing: Any) -> dict[str, Any]:
    """Return the annotations of a function or class as types, aliases resolved."""
    names: dict[str, Any] = {}
    for owner in thing.__mro__ if isinstance(thing, type) else (thing,):
        names |= _for_type_checkers(owner.__module__) | _quoted_aliases(owner)
    return typing.get_type_hints(thing, localns=names, include_extras=True)


def _quoted_aliases(thing: Any) -> dict[str, Any]:
    """Return a class of one parameter for each alias that is written as a string: only its argument counts."""
    aliases = {}
    for name, value in getattr(thing, "__globals__", {}).items():
        if isinstance(value, str) and any(f"{name}[" in str(hint) for hint in thing.__annotations__.values()):
            aliases[name] = types.new_class(
                name, (typing.Generic[_T],), exec_body=lambda body: body.update(__module__="typing")
            )
    return aliases


@cache
def _for_type_checkers(module: str) -> dict[str, Any]:
    """Return what a module of noonmark imports below `if TYPE_CHECKING`."""
    if module.split(".", maxsplit=1)[0] != _OWN:
        return {}
    names: dict[str, Any] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), module, "exec"), names)
    return names


def spell(kind: Any) -> str:
    """Return a type in one line: classes by their bare names, those of other distributions with their package."""
    if kind is None or kind is type(None):
        return "None"
    if kind is ...:
        return "..."
    if isinstance(kind, TypeVar | typing.ParamSpec):
        return str(kind.__name__)
    if isinstance(kind, list):
        return f"[{', '.join(map(spell, kind))}]"
    if isinstance(kind, str):
        return kind
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return spell(arguments[0])
    if origin in {typing.Union, types.UnionType}:
        return " | ".join(map(spell, arguments))
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is not None:
        name = _name(origin)
        return f"{name}[{', '.join(map(spell, arguments))}]" if arguments else name
    return _name(kind)


def classes_in(kind: Any) -> Iterator[type]:
    """Yield the classes of noonmark that a type names."""
    if isinstance(kind, list):
        arguments: Iterable[Any] = kind
    else:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        for one in (kind, origin):
            if isinstance(one, type) and one.__module__.split(".")[0] == _OWN:
                yield one
        if origin is typing.Literal:
            return
    for argument in arguments:
        yield from classes_in(argument)


def signature(function: Callable[..., Any], *, bound: bool = False, returns: str | None = None) -> str:
    """Return parameters with kinds, types and defaults, and the type of the result.

    Args:
        function: plain; a coroutine function is marked as such.
        bound: leave its first parameter out.
        returns: the result where it is not what the function says.
    """
    hints = hints_of(function)
    parts = list(_parameters(inspect.signature(function), hints, bound=bound))
    result = returns if returns is not None else spell(hints["return"]) if "return" in hints else "?"
    word = "async " if inspect.iscoroutinefunction(function) else ""
    return f"{word}({', '.join(parts)}) -> {result}"


def plain(value: Any) -> Any:
    """Return a default as JSON can hold it."""
    match value:
        case Enum():
            return plain(value.value)
        case pydantic.SecretStr():
            return value.get_secret_value()
        case bool() | int() | float() | str() | None:
            return value
        case PurePath():
            return str(value)
        case tuple() | list():
            return [plain(one) for one in value]
        case set() | frozenset():
            return sorted(plain(one) for one in value)
        case dict():
            return {str(key): plain(one) for key, one in sorted(value.items())}
    return f"<{_name(value if isinstance(value, type) else type(value))}>"


def _parameters(found: inspect.Signature, hints: dict[str, Any], *, bound: bool) -> Iterator[str]:
    parameters = list(found.parameters.values())[1 if bound else 0 :]
    starred = False
    for place, parameter in enumerate(parameters):
        kind = parameter.kind
        if kind is kind.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or kind is kind.VAR_POSITIONAL
        stars = {kind.VAR_POSITIONAL: "*", kind.VAR_KEYWORD: "**"}.get(kind, "")
        text = stars + parameter.name
        if parameter.name in hints:
            text += f": {spell(hints[parameter.name])}"
        if parameter.default is not parameter.empty:
            text += f" = {_default(parameter.default)}"
        yield text
        after = parameters[place + 1].kind if place + 1 < len(parameters) else None
        if kind is kind.POSITIONAL_ONLY and after is not kind.POSITIONAL_ONLY:
            yield "/"


def _default(value: Any) -> str:
    if value is ...:
        return "..."
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, bool | int | float | str | bytes | tuple | frozenset | None):
        return repr(value)
    return "..." if "FACTORY" in type(value).__name__ else str(plain(value))


def _name(kind: Any) -> str:
    name = getattr(kind, "__qualname__", None) or getattr(kind, "_name", None) or repr(kind)
    package = str(getattr(kind, "__module__", "")).split(".")[0]
    inside = package in {_OWN, "builtins", "typing", "collections", "_contextvars", "abc"}
    known = inside or package in _STANDARD
    return str(name) if known else f"{package}.{name}"


_STANDARD: Final = frozenset({"datetime", "uuid", "types", "enum", "contextlib", "pathlib", "dataclasses"})
