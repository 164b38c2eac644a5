"""YAML of job files: plain words have the types of JSON, in reading and in writing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

_WORDS: Final = (
    ("null", r"(?:null|~|)", ["n", "~", ""]),
    ("bool", r"(?:true|false)", ["t", "f"]),
    ("int", r"-?(?:0|[1-9][0-9]*)", list("-0123456789")),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", list("-0123456789")),
    ("merge", r"<<", ["<"]),
)
"""Plain words that are not strings. YAML 1.1 would also read instants as dates, `on` as true, and 2:30:00 as
9000; schedules contain such words."""


_PROBLEMS: Final = (
    ("alias", "* begins an alias that does not exist; put an expression that starts with * in quotes"),
    ("mapping values are not allowed", "a colon is not allowed here; put text that contains one in quotes"),
    ("cannot start any token", "this character cannot begin a value; use spaces, not tabs, and quotes"),
    ("could not find expected ':'", "a key has no colon after it"),
    ("expected <block end>", "the indentation does not match the lines above"),
    ("expected ',' or", "a comma is missing, or a bracket is not closed"),
    ("end of stream", "a quote or a bracket is not closed"),
    ("expected the node content", "a value is missing"),
    ("expected <document start>", "a line is not indented like the lines above, or --- is missing"),
    ("unknown escape character", "this escape does not exist; use single quotes, or two backslashes"),
    ("unhashable key", "a key is a list or an object; put text with brackets in quotes"),
    ("could not determine a constructor", "a tag that starts with ! is not supported"),
    ("special characters are not allowed", "a control character is not allowed"),
)
"""Parts of the parser's messages, with ours."""


class YamlProblem(NamedTuple):
    """Why a text is not YAML.

    Attributes:
        line: from 1; None if unknown.
        column: from 1; None if unknown.
        reason: a clause.
    """

    line: int | None
    column: int | None
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.reason}" if self.line else self.reason


def yaml_problem(error: Exception) -> YamlProblem:
    """Return the position and the reason of a parser's error, in our words."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    raw = " ".join(str(error).split())
    if isinstance(error, RecursionError):
        reason = "it is nested too deeply"
    elif isinstance(error, ValueError) and mark is None:
        # Our own checks: their message is for users.
        reason = raw
    else:
        reason = next((ours for part, ours in _PROBLEMS if part in raw), "the text is not valid here")
    return (
        YamlProblem(mark.line + 1, mark.column + 1, reason)
        if mark is not None
        else YamlProblem(None, None, reason)
    )


@cache
def loader() -> Any:
    """Return the loader class that reads plain words as the types of JSON."""
    import yaml  # noqa: PLC0415 - takes a while, for this form only

    class Loader(yaml.SafeLoader):
        """Reads null, true, false and numbers; everything else is a string."""

        yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    return _resolving(Loader)


@cache
def _dumper() -> Any:
    import yaml  # noqa: PLC0415

    class Dumper(yaml.SafeDumper):
        """Quotes strings that the loader would not read as strings."""

        yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

        def ignore_aliases(self, _data: Any) -> bool:
            """Write no aliases: people read these files."""
            return True

    def text(dumper: Any, value: str) -> Any:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return _resolving(Dumper)


def dump(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return documents as a YAML stream, their fields in the order given."""
    import yaml  # noqa: PLC0415

    written: str = yaml.dump_all(
        documents, Dumper=_dumper(), sort_keys=False, explicit_start=True, allow_unicode=True, width=100
    )
    return written


def _resolving(kind: Any) -> Any:
    for tag, pattern, first in _WORDS:
        kind.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), first)
    return kind
