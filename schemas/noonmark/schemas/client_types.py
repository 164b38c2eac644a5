"""Generates the client's static types of API responses from the models of `noonmark.schemas.api`.

    python -m noonmark.schemas.client_types shared/sdk/noonmark/client/types

The client returns JSON as received, so that a response of a newer or older server is never an error. For type
checkers, each response is a TypedDict, generated from the model that the API uses.
"""

from __future__ import annotations

import sys
import textwrap
import types
from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel

from noonmark.schemas import api
from noonmark.schemas.api.common import Answer

_WIDTH: Final = 110
_PLAIN: Final = {UUID: "str", datetime: "str", Any: "Any", object: "Any", type(None): "None"}
_HEAD: Final = (
    '"""{doc}\n\n'
    "Generated from `{module}` by `noonmark.schemas.client_types`; do not edit it by hand.\n"
    '"""\n\n'
    "from __future__ import annotations\n\n"
)


def pages() -> dict[str, str]:
    """Return the text of each generated module, by name."""
    names = sorted(module.name for module in iter_modules(api.__path__))
    texts = {}
    for name in names:
        module = import_module(f"{api.__name__}.{name}")
        models = list(_answers(module))
        if models:
            texts[name] = _module(module, models)
    return texts


def _answers(module: types.ModuleType) -> Iterator[type[BaseModel]]:
    """Yield the response models that a module defines, in order; the client defines generic ones itself."""
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and issubclass(value, Answer)
            and value is not Answer
            and value.__module__ == module.__name__
            and not value.__pydantic_generic_metadata__["parameters"]
        ):
            yield value


def _module(module: types.ModuleType, models: list[type[BaseModel]]) -> str:
    writer = _Writer(module.__name__)
    classes = [writer.typed_dict(model) for model in models]
    head = _HEAD.format(doc=(module.__doc__ or "").strip(), module=module.__name__)
    return head + writer.imports() + "\n\n" + "\n\n\n".join(classes) + "\n"


class _Writer:
    """Writes the types of one module, and collects the imports that they need."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._typing: set[str] = {"TypedDict"}
        self._others: dict[str, set[str]] = {}

    def imports(self) -> str:
        """Return the imports of the written types."""
        lines = [f"from typing import {', '.join(sorted(self._typing))}"]
        if self._others:
            lines.append("")
        for module, names in sorted(self._others.items()):
            lines.append(f"from noonmark.client.types.{module} import {', '.join(sorted(names))}")
        return "\n".join(lines) + "\n"

    def typed_dict(self, model: type[BaseModel]) -> str:
        """Return a model as a TypedDict."""
        base: Any = model.__mro__[1]
        inherits = base.__name__ if base is not Answer else "TypedDict"
        known: dict[str, Any] = base.model_fields if base is not Answer else {}
        if base is not Answer:
            self._name_of(base)
        lines = [f"class {model.__name__}({inherits}):", *_docstring(model.__doc__ or "", " " * 4)]
        for name, field in model.model_fields.items():
            if name in known:
                continue
            lines += ["", *self._field(field.alias or name, self.type_of(field.annotation))]
            lines += _docstring(field.description, " " * 4) if field.description else []
        return "\n".join(lines)

    def type_of(self, annotation: Any) -> str:
        """Return the type of an annotation's JSON form."""
        origin, arguments = get_origin(annotation), get_args(annotation)
        if annotation in _PLAIN:
            text = _PLAIN[annotation]
        elif origin is Annotated:
            text = self.type_of(arguments[0])
        elif origin is Literal:
            text = self._literal(arguments)
        elif origin in {Union, types.UnionType}:
            text = " | ".join(dict.fromkeys(self.type_of(one) for one in arguments))
        elif origin is list:
            text = f"list[{self.type_of(arguments[0])}]"
        elif origin is dict:
            text = f"dict[str, {self.type_of(arguments[1])}]"
        elif isinstance(annotation, type) and issubclass(annotation, Enum):
            text = self._literal(tuple(one.value for one in annotation))
        elif isinstance(annotation, type) and issubclass(annotation, Answer):
            text = self._name_of(annotation)
        elif annotation in {str, int, float, bool}:
            text = annotation.__name__
        else:
            raise TypeError(f"{annotation!r} has no known JSON type")
        self._typing |= {"Any"} & {text}
        return text

    def _literal(self, values: tuple[Any, ...]) -> str:
        self._typing.add("Literal")
        return (
            "Literal["
            + ", ".join(f'"{value}"' if isinstance(value, str) else repr(value) for value in values)
            + "]"
        )

    def _name_of(self, model: type[BaseModel]) -> str:
        if model.__module__ != self._module:
            self._others.setdefault(model.__module__.rpartition(".")[2], set()).add(model.__name__)
        return model.__name__

    @staticmethod
    def _field(name: str, text: str) -> list[str]:
        line = f"    {name}: {text}"
        if len(line) <= _WIDTH or not text.startswith("Literal["):
            return [line]
        values, _, rest = text.removeprefix("Literal[").partition("]")
        return [
            f"    {name}: Literal[",
            *(f"        {value}," for value in values.split(", ")),
            f"    ]{rest}",
        ]


def _docstring(text: str, indent: str) -> list[str]:
    """Return the lines of a docstring with wrapped paragraphs."""
    first, *rest = textwrap.dedent("    " + text).strip().split("\n\n")
    lines = textwrap.wrap(" ".join(first.split()), _WIDTH - len(indent) - 6)
    for paragraph in rest:
        lines += ["", *textwrap.wrap(" ".join(paragraph.split()), _WIDTH - len(indent))]
    if len(lines) == 1:
        return [f'{indent}"""{lines[0]}"""']
    return [f'{indent}"""{lines[0]}', *(f"{indent}{line}".rstrip() for line in lines[1:]), f'{indent}"""']


def write(folder: Path) -> None:
    """Write the modules into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(
        '"""Static types of API responses; at run time they are plain dicts."""\n'
    )
    for name, text in pages().items():
        (folder / f"{name}.py").write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
