"""What a statement says of kinds of timers, and of owners and origins of runs, read from its text."""

from __future__ import annotations

import re
from typing import Final

from noonmark.store.database import statements

_TIMERS: Final = re.compile(r"\b(?:from|join|update|into)\s+timers\b")
_RUNS: Final = re.compile(r"\b(?:from|join|update|into)\s+runs\b")
_NAMED: Final = (
    re.compile(r"\bkind\s*(?:=|<>)\s*(\d)"),
    re.compile(r"\bkind\s+(?:not\s+)?in\s*\(([\d, ]+)\)"),
    re.compile(r"unnest\('\{([\d,]+)\}'::smallint\[\]\)\s+as\s+kinds?\s*\("),
    re.compile(r"unnest\(array\[([\d, ]+)\]\)\s+as\s+kinds?\s*\("),
)
_WRITTEN: Final = re.compile(r"insert into timers \(([^)]*)\)\s*select\b(?P<rest>.*)", re.DOTALL)
_OWNER: Final = re.compile(
    r"\bowner\s*(=|<>|is not distinct from)\s*(%\(\w+\)s|-?\d+|any|null|case|\w+\.\w+)"
)


def _plain(name: str) -> str:
    return re.sub(r"--[^\n]*", "", statements.statement(name))


def about_timers() -> list[str]:
    """The statements that read or write timers."""
    return [name for name in statements.names() if _TIMERS.search(_plain(name))]


def about_runs() -> list[str]:
    """The statements that read or write runs."""
    return [name for name in statements.names() if _RUNS.search(_plain(name))]


def about_owners() -> list[str]:
    """The statements that name an owner: that of a run, or the person who owns a job."""
    return [name for name in statements.names() if re.search(r"\bowner\b", _plain(name))]


def kinds_of(name: str) -> str:
    """The kinds of timers that a statement names, such as `0 1 3, writes 1`; `all` if it names none."""
    text = _plain(name)
    named = {
        digit for pattern in _NAMED for found in pattern.findall(text) for digit in re.findall(r"\d", found)
    }
    said = [" ".join(sorted(named))] if named else []
    said += ["given"] if "kind = %(kind)s" in text else []
    said = said or (["all"] if re.search(r"\b(?:from|join|update)\s+timers\b", text) else [])
    return ", ".join(said + [f"writes {kind}" for kind in _written(text)])


def _written(text: str) -> list[str]:
    """What each insert of timers puts into the column `kind`."""
    found = []
    for match in _WRITTEN.finditer(text):
        columns = [column.strip() for column in match[1].split(",")]
        found.append(_expressions(match["rest"])[columns.index("kind")])
    return found


def _expressions(rest: str) -> list[str]:
    """The expressions of a select list."""
    depth, parts = 0, [""]
    for token in re.findall(r"\bfrom\b|\w+|\s+|.", rest, re.DOTALL):
        depth += (token == "(") - (token == ")")
        if depth == 0 and token in {"from", ";"}:
            break
        if depth == 0 and token == ",":
            parts.append("")
        else:
            parts[-1] += token
    return [" ".join(part.split()) for part in parts]


def owners_of(name: str) -> str:
    """What a statement compares owners with, or sets them to."""
    found = {f"{compared} {value}" for compared, value in _OWNER.findall(_plain(name))}
    return ", ".join(sorted(found))


def origins_of(name: str) -> set[str]:
    """What a statement says of the origin of runs."""
    said = r"\borigin\s*((?:=|<>|is distinct from|when)\s*'\w+'|not in \([^)]*\))"
    return {" ".join(found.split()) for found in re.findall(said, _plain(name))} | {
        "written 'task'" for _ in re.findall(r"'task', request_id", _plain(name))
    }


def finds_runs_by_job(name: str) -> bool:
    """Whether a statement finds rows by the id of their job."""
    return bool(re.search(r"\bjob_id\s*=", _plain(name)))
