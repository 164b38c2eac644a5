"""YAML as job files hold it: plain words as JSON reads them, and written so that they are read back alike."""

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
"""What is more than text: YAML 1.1 also makes dates of instants, true of `on`, and 9000 of 2:30:00; schedules
are full of such words."""


@cache
def loader() -> Any:
    """Return the class of loaders that read plain words as JSON would."""
    import yaml  # noqa: PLC0415 - takes a while, for this form only

    class Loader(yaml.SafeLoader):
        """Null, true, false and numbers; all else is text."""

        yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    return _resolving(Loader)


@cache
def _dumper() -> Any:
    import yaml  # noqa: PLC0415

    class Dumper(yaml.SafeDumper):
        """Quotes what the loader above would take for more than text."""

        yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

        def ignore_aliases(self, _data: Any) -> bool:
            """Write everything out: files are for people."""
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
