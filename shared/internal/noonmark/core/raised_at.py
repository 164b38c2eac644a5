"""Where an exception was raised: the last line of the user's own code, and where a library raised it."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Final

_INSTALLED: Final = ("site-packages", "dist-packages")
NOONMARK: Final = "noonmark"
_STANDARD: Final = tuple(
    f"{path.rstrip('/')}/" for path in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
)


@dataclass(frozen=True, slots=True)
class Place:
    """One frame of a traceback.

    Attributes:
        function: name of the function.
        line: number of the line in the file.
        path: path of the file, or a name such as `<string>`.
        package: first part of the module's name; empty if there is none.
    """

    function: str
    line: int
    path: str
    package: str

    @property
    def file(self) -> str:
        """Name of the file, without its folder."""
        return self.path.rsplit("/", 1)[-1]


def raised_at(error: BaseException) -> tuple[Place, ...]:
    """Return the places to show of an exception.

    Returns:
        The innermost frame of the user's own code, and the innermost frame of all if it is another one.
        Own code is neither noonmark nor the standard library nor installed; if all of it is installed, the
        package that noonmark called counts as the user's. Empty for an exception without a traceback.
    """
    places = list(_places(error.__traceback__))
    if not places:
        return ()
    foreign = [place for place in places if not (place.package == NOONMARK or _is_standard(place))]
    own = [place for place in foreign if not _is_installed(place)] or [
        place for place in foreign if place.package == foreign[0].package
    ]
    if not own or own[-1] is places[-1]:
        return (places[-1],)
    return (own[-1], places[-1])


def _places(trace: TracebackType | None) -> Iterator[Place]:
    while trace is not None:
        code, module = trace.tb_frame.f_code, trace.tb_frame.f_globals.get("__name__")
        # Handlers can give a module any name, even one that is no text.
        package = module.partition(".")[0] if type(module) is str else ""
        # The import system says nothing about an error in an imported module.
        if not (code.co_filename.startswith("<frozen ") or package == "importlib"):
            yield Place(code.co_name, trace.tb_lineno, code.co_filename, package)
        trace = trace.tb_next


def _is_standard(place: Place) -> bool:
    return place.path.startswith(_STANDARD) and not _is_installed(place)


def _is_installed(place: Place) -> bool:
    return not set(_INSTALLED).isdisjoint(place.path.split("/"))
