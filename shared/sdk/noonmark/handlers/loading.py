"""Imports the modules that the operator lists, and no others."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from noonmark.core.raised_at import NOONMARK, raised_at
from noonmark.handlers.registry import REGISTRY, HandlerError, Registry

_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


class HandlerLoadError(RuntimeError):
    """A module of handlers cannot be used; the message contains its name, the reason and what to do."""


def load_handlers(modules: Iterable[str], path: str | os.PathLike[str] | None = None) -> Registry:
    """Import modules and return the registry of the process, with their handlers.

    Args:
        modules: dotted names.
        path: folder that is searched first, as with `--path`.

    Raises:
        HandlerLoadError: a module is missing, fails at import, or registers nothing.
    """
    if path is not None:
        _search_first(Path(path))
    for module in modules:
        _load(module)
    return REGISTRY


def _search_first(directory: Path) -> None:
    if not directory.is_dir():
        raise HandlerLoadError(f"--path {directory} is not a folder; pass the one that contains your modules")
    place = str(directory.resolve())
    if place in sys.path:
        sys.path.remove(place)
    sys.path.insert(0, place)
    importlib.invalidate_caches()


def _load(name: str) -> None:
    if _MODULE.fullmatch(name) is None or name.endswith(".py"):
        guess = name.removesuffix(".py").strip("./").replace("/", ".")
        hint = f"; did you mean {guess}?" if _MODULE.fullmatch(guess) else ""
        raise HandlerLoadError(f"{name!r} is not a module name; write it with dots, as in an import{hint}")
    known, imported = len(REGISTRY), name in sys.modules
    try:
        importlib.import_module(name)
    except HandlerError as error:
        raise HandlerLoadError(f"module {name}: {error}") from error
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            wanted = "" if error.name == name else f" (needed for {name})"
            raise HandlerLoadError(
                f"module {error.name}{wanted} not found; install its package, or pass its folder with --path"
            ) from error
        raise HandlerLoadError(f"module {name} needs {error.name!r}, which is not installed") from error
    except (Exception, SystemExit) as error:
        raise HandlerLoadError(f"module {name} fails at import: {_last_line(error)}") from error
    if len(REGISTRY) == known and not imported:
        raise HandlerLoadError(
            f"module {name} registers no handler; decorate its functions: "
            "from noonmark.handlers import handler"
        )


def _last_line(error: BaseException) -> str:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    places = ", raised at ".join(
        f"{one.path}:{one.line}" for one in raised_at(error) if one.package != NOONMARK
    )
    return f"{what} ({places})" if places else what
