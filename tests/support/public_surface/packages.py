"""What users import: names, signatures, attributes and bases, and the types that these lead to."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import re
import textwrap
import typing
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tests.support.public_surface.spelling import classes_in, hints_of, plain, signature, spell

ROOT: Final = Path(__file__).resolve().parents[3]
PACKAGES: Final = ("client", "handlers", "outbox", "receiver", "testing")

_IMPORT: Final = re.compile(
    r"^[ \t>]*(?:>>> )?from (noonmark(?:\.\w+)*) import (\([^)]*\)|[^\n#]+)", re.MULTILINE
)
_MENTION: Final = re.compile(rf"\bnoonmark\.(?:{'|'.join(PACKAGES)})(?:\.\w+)+\b")


def packages() -> dict[str, Any]:
    """Return the names of the five packages, and what each is."""
    found: dict[str, Any] = {}
    walk = _Walk()
    for package in PACKAGES:
        module = import_module(f"noonmark.{package}")
        found[f"noonmark.{package}"] = sorted(module.__all__)
        for name in module.__all__:
            found |= walk.describe(f"noonmark.{package}.{name}", getattr(module, name))
    for path, thing in told_to_import():
        if not path.startswith(tuple(f"noonmark.{package}" for package in PACKAGES)):
            found |= walk.describe(path, thing)
    for path in ("Client", "AsyncClient"):
        found |= walk.groups(path)
    return found | walk.types()


def told_to_import() -> Iterator[tuple[str, Any]]:
    """Yield each name that pages and examples import or mention, and what is found there.

    Raises:
        ImportError, AttributeError: it is not there.
    """
    paths = set()
    for file in _pages():
        text = file.read_text(encoding="utf-8")
        for module, names in _IMPORT.findall(text):
            bare = re.sub(r"#[^\n]*", "", names).strip("() \n")
            paths |= {f"{module}.{name.split(' as ')[0].strip()}" for name in bare.split(",") if name.strip()}
        paths |= set(_MENTION.findall(text)) if file.suffix == ".md" else set()
    for path in sorted(paths):
        yield path, _thing(path)


def _pages() -> Iterator[Path]:
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))
    for suffix in ("md", "py"):
        yield from sorted((ROOT / "examples").rglob(f"*.{suffix}"))


def _thing(path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except AttributeError:
        return import_module(path)
    except ModuleNotFoundError:
        return getattr(_thing(module), name)


class _Walk:
    """Describes things, and keeps the classes that are named on the way."""

    def __init__(self) -> None:
        self._named: set[type] = set()
        self._done: set[type] = set()

    def describe(self, path: str, thing: Any) -> dict[str, Any]:
        if isinstance(thing, type):
            self._done.add(thing)
            return self._class(path, thing, made=True)
        if inspect.ismodule(thing):
            return {}
        if inspect.isfunction(thing):
            return self._function(path, thing)
        kind = type(thing)
        return {path: {"kind": "value", "type": spell(kind), "value": plain(thing)}}

    def groups(self, client: str) -> dict[str, Any]:
        """Describe what is reached through a client: its groups of calls, each with the result it gives."""
        made = getattr(import_module("noonmark.client"), client)("http://127.0.0.1:9", "key")
        found: dict[str, Any] = {}
        for attribute, group in sorted(vars(made).items()):
            if attribute.startswith("_") or not type(group).__module__.startswith("noonmark."):
                continue
            for name in dir(type(group)):
                call = inspect.getattr_static(type(group), name)
                if name.startswith("_") or not hasattr(call, "__get__") or isinstance(call, type):
                    continue
                found[f"noonmark.client.{client}.{attribute}.{name}"] = self._call(call, client)
        return found

    def types(self) -> dict[str, Any]:
        """Describe the documents that signatures lead to and no package exports: their fields and values."""
        found: dict[str, Any] = {}
        records = {one for one in self._named if dataclasses.is_dataclass(one) and one.__name__[0] != "_"}
        while waiting := {one for one in self._named - self._done if _is_document(one) or one in records}:
            for kind in waiting:
                self._done.add(kind)
                found |= self._class(f"type {kind.__qualname__}", kind, made=False)
        return found

    def _function(self, path: str, function: Any, *, bound: bool = False) -> dict[str, Any]:
        for hint in hints_of(function).values():
            self._named |= set(classes_in(hint))
        overloads = typing.get_overloads(function)
        if overloads:
            return {path: [signature(one, bound=bound) for one in overloads]}
        return {path: signature(function, bound=bound, returns=self._second_result(function))}

    def _second_result(self, function: Any) -> str | None:
        """Spell the result of a function that passes what it wraps to another, and returns what that does."""
        if not hasattr(function, "__wrapped__"):
            return None
        for after in inspect.getclosurevars(function).nonlocals.values():
            if inspect.isfunction(after) and after is not function.__wrapped__:
                result = hints_of(after)["return"]
                self._named |= set(classes_in(result))
                waits = inspect.iscoroutinefunction(after)
                return f"Coroutine[Any, Any, {spell(result)}]" if waits else spell(result)
        return None

    def _call(self, call: Any, client: str) -> str:
        """Spell a call as the client gives it: what the method builds is an internal description of the call."""
        if inspect.isfunction(call):
            return str(self._function("", call, bound=True)[""])
        build = next(part for part in vars(call).values() if inspect.isfunction(part))
        hints = hints_of(build)
        waits = client.startswith("Async")
        overloaded = typing.get_overloads(type(call).__get__)
        _, result = typing.get_args(hints_of(overloaded[2 if waits else 1])["return"])
        listed = not isinstance(result, typing.TypeVar) and "Listing" in spell(result)
        inner = typing.get_args(hints["return"])[0 if spell(hints["return"]).startswith("Call[") else -1]
        inner = typing.get_args(inner)[0] if listed else inner
        self._named |= set(classes_in(inner)) | set(classes_in(result))
        for name, hint in hints.items():
            if name != "return":
                self._named |= set(classes_in(hint))
        return signature(build, bound=True, returns=re.sub(r"\bT\b", lambda _: spell(inner), spell(result)))

    def _class(self, path: str, kind: type, *, made: bool) -> dict[str, Any]:
        bases = [spell(base) for base in kind.__mro__[1:-1] if _is_told(base)]
        found: dict[str, Any] = {path: {"kind": "class", **({"bases": bases} if bases else {})}}
        if issubclass(kind, enum.Enum):
            return found | {f"{path}.{one.name}": plain(one.value) for one in kind}
        if typing.is_typeddict(kind):
            return found | self._fields(path, kind, kind.__required_keys__)  # type: ignore[attr-defined]
        if made and not getattr(kind, "_is_protocol", False):
            found |= self._made(path, kind)
        members: dict[str, Any] = {}
        for base in reversed(kind.__mro__):
            if base.__module__.split(".")[0] == "noonmark":
                members |= self._members(path, base, made=made)
        return found | members

    def _made(self, path: str, kind: type) -> dict[str, Any]:
        init = kind.__init__  # type: ignore[misc]
        if not inspect.isfunction(init):
            return {}
        return self._function(f"{path}()", init, bound=True)

    def _fields(self, path: str, kind: type, required: frozenset[str]) -> dict[str, Any]:
        found = {}
        for name, hint in hints_of(kind).items():
            self._named |= set(classes_in(hint))
            found[f"{path}.{name}"] = spell(hint) + ("" if name in required else ", not required")
        return found

    def _members(self, path: str, kind: type, *, made: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        fields = (
            {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
        )
        hints = hints_of(kind)
        for name in (*inspect.get_annotations(kind), *_set_in_init(kind)):
            if name.startswith("_"):
                continue
            named = set(classes_in(hints.get(name)))
            if not made and not all(map(_is_document, named)):
                continue
            self._named |= named
            shown = spell(hints[name]) if name in hints else "?"
            found[f"{path}.{name}"] = f"attribute: {shown}"
        for name, member in vars(kind).items():
            public = not name.startswith("_") or name in _SPECIAL
            if not public or name in fields or isinstance(member, type):
                continue
            found |= self._member(f"{path}.{name}", member)
        return found

    def _member(self, path: str, member: Any) -> dict[str, Any]:
        match member:
            case property():
                self._function(path, member.fget)
                return {path: f"property: {spell(hints_of(member.fget).get('return'))}"}
            case cached_property():
                return {path: f"property: {spell(hints_of(member.func).get('return'))}"}
            case staticmethod():
                return {path: f"static {self._function(path, member.__func__)[path]}"}
            case classmethod():
                return {path: f"class {self._function(path, member.__func__, bound=True)[path]}"}
        if inspect.isfunction(member):
            return self._function(path, member, bound=True)
        if inspect.ismemberdescriptor(member) or hasattr(member, "__get__"):
            return {}
        return {path: f"attribute: {spell(type(member))} = {plain(member)!r}"}


_SPECIAL: Final = frozenset(
    {
        *("__call__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__", "__aiter__"),
        *("__len__", "__getitem__", "__contains__", "__next__", "__anext__"),
    }
)


def _is_document(kind: type) -> bool:
    return typing.is_typeddict(kind) or issubclass(kind, enum.Enum)


def _is_told(base: type) -> bool:
    """Whether a base is part of what users may rely on: exceptions by their names, and nothing of the inside."""
    if base.__module__.split(".")[0] == "noonmark":
        return any(
            getattr(import_module(f"noonmark.{package}"), name, None) is base
            for package in PACKAGES
            for name in import_module(f"noonmark.{package}").__all__
        )
    return base.__module__ in {"builtins", "enum"}


def _set_in_init(kind: type) -> Iterator[str]:
    """Yield the attributes that the constructor sets and nothing declares."""
    init = vars(kind).get("__init__")
    if not inspect.isfunction(init) or dataclasses.is_dataclass(kind) or typing.is_typeddict(kind):
        return
    if getattr(kind, "_is_protocol", False):
        return
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(init)))):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and ast.unparse(node.value) == "self"
        ):
            yield node.attr
