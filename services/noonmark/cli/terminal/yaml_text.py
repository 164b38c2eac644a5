"""YAML of job files: plain words have the types of JSON, in reading and in writing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

_WORDS: Final = (
    ("null", r"(?:null|~|)", ["n", "~", ""]),
    ("bool", r"(?:true|false)", ["t", "f"]),
    ("int", r"-?(?:0|[1-9][0-9]*)", list("-0123456789")),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", list("-0123456789")),
    ("merge", r"<<", ["<"]),
)
"""Plain words that are not strings. YAML 1.1 would also read instants as dates, `on` as true, and 2:30:00 as
9000; schedules contain such words."""


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
