"""What users of noonmark rely on, in one document without prose: `tests/contract/public_surface.json`.

Written by `python -m tests.support.public_surface > tests/contract/public_surface.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tests.support.public_surface import documents, operating, packages

FILE: Final = Path(__file__).resolve().parents[2] / "contract" / "public_surface.json"
COMMAND: Final = "python -m tests.support.public_surface > tests/contract/public_surface.json"

Section = dict[str, Any]
"""Entries by name; each is one line of the file."""

SECTIONS: Final[dict[str, Callable[[], Section]]] = {
    "packages": packages.packages,
    "told to import": lambda: {path: True for path, _ in packages.told_to_import()},
    "settings": operating.settings,
    "metrics": operating.metrics,
    "log events": operating.log_events,
    "rest": documents.rest,
    "problems": documents.problems,
    "events": documents.events,
    "channels": documents.channels,
    "command line": operating.command_line,
    "chart values": operating.chart_values,
    "topics": operating.topics,
    "entry points": operating.entry_points,
}
"""All but the database, which needs one."""

DATABASE: Final = "database"


def encode(surface: dict[str, Section]) -> str:
    """Return the document: sections and entries sorted, one entry per line."""
    parts = []
    for name in sorted(surface):
        lines = [f"    {_line(key)}: {_line(value)}" for key, value in sorted(surface[name].items())]
        parts.append(f"  {_line(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def recorded() -> dict[str, Section]:
    """Return what the file says."""
    found: dict[str, Section] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def differences(before: Section, after: Section) -> Iterator[str]:
    """Yield a line for each entry that is gone, was changed or is new."""
    after = json.loads(_line(after))
    for key in sorted(before.keys() - after.keys()):
        yield f"gone     {key}: {_line(before[key])}"
    for key in sorted(before.keys() & after.keys()):
        if before[key] != after[key]:
            yield f"changed  {key}\n             was {_line(before[key])}\n             is  {_line(after[key])}"
    for key in sorted(after.keys() - before.keys()):
        yield f"new      {key}: {_line(after[key])}"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
