"""Changes of calendars: added and removed entries, and the output about a change."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from noonmark.cli.terminal.output import Row, show_json
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from noonmark.core.calendars.calendar import Calendar

    Edit = Callable[[Calendar | None, str], Calendar]
    """Returns the new contents of a calendar from the old ones (None: no calendar) and the namespace."""

_SHOWN: Final = 10
KEYS: Final = ("dates", "ranges", "weekdays", "yearly")
_DONE: Final = {"created": "created", "changed": "changed", "unchanged": "already has these days"}
_FORESEEN: Final = {**_DONE, "created": "would be created", "changed": "would be changed"}


@dataclass(frozen=True, slots=True)
class Change:
    """Old and new contents of a calendar, and the API's answer to the change."""

    before: Calendar | None
    now: Calendar
    answer: Mapping[str, Any]


def read_ranges(ranges: Sequence[str]) -> list[dict[str, str]]:
    """Parse `--range` into the form of the document.

    Raises:
        CliError: a range does not have two ends.
    """
    read = []
    for given in ranges:
        first, dots, last = given.partition("..")
        if not dots:
            raise CliError(
                f"--range {given!r} has no end; write both days, such as 2026-12-24..2027-01-01",
                ExitCode.USAGE,
            )
        read.append({"first": first, "last": last})
    return read


def summary(body: Row) -> str:
    """Return a short text of a calendar's contents."""
    parts = []
    for key, one, many in (("dates", "date", "dates"), ("ranges", "range", "ranges")):
        if count := len(body.get(key, ())):
            parts.append(f"{count} {one if count == 1 else many}")
    if body.get("weekdays"):
        parts.append("every " + " ".join(body["weekdays"]))
    if count := len(body.get("yearly", ())):
        parts.append(f"{count} day{'' if count == 1 else 's'} of every year")
    return ", ".join(parts) or "no days"


def entries_edit(name: str, add: Sequence[str], remove: Sequence[str]) -> Edit:
    """Return the edit that adds and removes single entries of a calendar that exists.

    Args:
        name: name of the calendar.
        add: days, ranges, weekdays and yearly days, in the form of the options.
        remove: the same for entries to remove.

    Raises:
        CliError: an entry is invalid.
    """
    from noonmark.core.calendars.calendar import Calendar, CalendarError  # noqa: PLC0415

    more, less = _read_entries(add, "--add"), _read_entries(remove, "--remove")

    def edit(before: Calendar | None, namespace: str) -> Calendar:
        if before is None:
            raise CalendarError(
                "",
                f"calendar {name!r} does not exist in namespace {namespace}; create it with all its days",
            )
        held = set(entries(before))
        for entry in entries(less):
            if entry not in held:
                raise CalendarError(
                    "",
                    f"--remove {entry}: calendar {name} has no such entry; run `noonmark calendar show {name}"
                    f" --namespace {namespace}`",
                )
        return Calendar(
            **{
                key: tuple(
                    one
                    for one in (*getattr(before, key), *getattr(more, key))
                    if one not in getattr(less, key)
                )
                for key in KEYS
            }
        )

    return edit


def entries(calendar: Calendar) -> list[str]:
    """Return the entries of a calendar in the form of the options."""
    body = calendar.body()
    ranges = [f"{one['first']}..{one['last']}" for one in body.get("ranges", ())]
    return [*body.get("dates", ()), *ranges, *body.get("weekdays", ()), *body.get("yearly", ())]


def _read_entries(given: Sequence[str], option: str) -> Calendar:
    """Parse entries; their form determines their kind."""
    from noonmark.core.calendars.calendar import WEEKDAYS, Calendar, CalendarError  # noqa: PLC0415

    body: dict[str, list[Any]] = {key: [] for key in KEYS}
    for entry in given:
        if ".." in entry:
            body["ranges"] += read_ranges([entry])
        elif re.fullmatch(r"\d{4}-.*", entry):
            body["dates"].append(entry)
        elif re.fullmatch(r"\d{2}-\d{2}", entry):
            body["yearly"].append(entry)
        elif entry[:3].upper() in WEEKDAYS:
            body["weekdays"].append(entry)
        else:
            raise CliError(
                f"{option} {entry!r} is not a calendar entry; expected a day such as 2026-12-25, days such"
                " as 2026-12-24..2027-01-01, a weekday such as SAT, or a day of every year such as 12-25",
                ExitCode.USAGE,
            )
    try:
        return Calendar.parse(body)
    except CalendarError as error:
        raise CliError(f"{option}: {error.message}", ExitCode.USAGE) from error


def show_change(change: Change, hint: str | None, *, as_json: bool, read: dict[str, Any] | None) -> None:
    """Print a change of a calendar: its entries, its jobs, and the jobs left without a next instant.

    Args:
        change: the old and new contents, and the API's answer.
        hint: hint about a namespace without jobs.
        as_json: print JSON.
        read: numbers of an import.
    """
    answer = change.answer
    added, removed = _difference(change)
    if as_json:
        shown = {**answer, "added": added, "removed": removed}
        if read:
            end = read["written_out_to"]
            shown |= {**read, "written_out_to": end.isoformat() if end else None}
        show_json(shown)
        return
    if read:
        print(f"{read['events']} events read, {read['cancelled']} of them cancelled")
    done = (_FORESEEN if answer["dry_run"] else _DONE)[answer["change"]]
    print(f"calendar {answer['name']} {done}: {summary(change.now.body())}")
    if change.before is not None and (added or removed):
        print("; ".join(_counted(*part) for part in ((added, "added"), (removed, "removed")) if part[0]))
    _show_users(answer)
    if hint:
        print(hint)
    if read and read["written_out_to"] is not None:
        print(
            f"recurring events are expanded up to {read['written_out_to']}; import the file again before then"
        )


def _show_users(answer: Mapping[str, Any]) -> None:
    used_by, jobs, without_next = answer["used_by"], answer["jobs"], answer["without_next_instant"]
    if not used_by or answer["change"] == "unchanged":
        return
    if answer["dry_run"]:
        total = f"more than {jobs:,}" if answer["not_all_looked_at"] else str(jobs)
        print(f"jobs that use it: {total}: {_named(used_by, jobs)}")
    else:
        # All jobs that were counted when the calendar was changed.
        planned = f"{jobs}, {answer['replanned']} of them replanned"
        print(f"jobs that use it: {planned}: {_named(used_by, jobs)}")
    if without_next:
        have = "would have" if answer["dry_run"] else "have"
        checked = " of the first jobs checked" if answer["not_all_looked_at"] else ""
        print(
            f"warning: {len(without_next)}{checked} {have} no next instant left:"
            f" {_named(without_next, len(without_next))}"
        )


def _difference(change: Change) -> tuple[list[str], list[str]]:
    before = entries(change.before) if change.before is not None else []
    now = entries(change.now)
    had, has = set(before), set(now)
    return [one for one in now if one not in had], [one for one in before if one not in has]


def _counted(found: Sequence[str], what: str) -> str:
    return f"{len(found)} {what}: {_named(found, len(found))}"


def _named(names: Sequence[str], total: int) -> str:
    """Return the first names and the number of others."""
    shown = names[:_SHOWN]
    more = f" and {total - len(shown):,} more" if total > len(shown) else ""
    return ", ".join(shown) + more
