"""From lines of a crontab to job documents that do what cron did, each checked by a second evaluation."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from noonmark.core.crontab.reader import CronEntry, Crontab
from noonmark.core.crontab.shell import Program, ShellNeededError, program_of

USER_LABEL: Final = "noonmark.dev/crontab-user"
"""Label with the user that a line of the system form named."""

CHECKED: Final = 100
"""Instants of each schedule that are compared with cron's."""

DEFAULT_TIMEOUT_SECONDS: Final = 86_400.0
"""Cron ends nothing; a day is the longest that noonmark lets an attempt run."""

_DEFAULT_SHELL: Final = "/bin/sh"
_FIRST_WORD: Final = re.compile(r"[^ \t|&;<>()]+")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Rules:
    """How lines become jobs.

    Attributes:
        zone: of schedules that no `CRON_TZ` stands above.
        users: whose lines of the system form are meant.
        allow_shell: hand commands that need one to a shell.
        prefix: of every name.
        namespace: of the jobs; None: left to whoever applies them.
        pool: likewise.
        timeout_seconds: of an attempt.
    """

    zone: str
    users: frozenset[str] = frozenset()
    allow_shell: bool = False
    prefix: str = "cron-"
    namespace: str | None = None
    pool: str | None = None
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True)
class ConvertedLine:
    """What became of a line.

    Attributes:
        number: from 1.
        schedule: its five fields; None where it has none.
        document: the job; None where it becomes none.
        reason: why it becomes none.
        next_at: its next instant.
        checked: instants that are the same as cron's.
    """

    number: int
    schedule: str | None = None
    zone: str | None = None
    document: Mapping[str, Any] | None = None
    reason: str | None = None
    next_at: datetime | None = None
    checked: int = 0


class _NoJobError(ValueError):
    """A line becomes no job; the message says why."""


def convert(
    crontab: Crontab, rules: Rules, *, now: datetime, count: int = CHECKED
) -> Iterable[ConvertedLine]:
    """Yield what becomes of each line, in their order.

    Args:
        crontab: as it was read.
        rules: how lines become jobs.
        now: instants after it are compared.
        count: how many of them.
    """
    entries = [entry for entry in crontab.lines if isinstance(entry, CronEntry)]
    names = dict(zip((entry.line for entry in entries), _names(entries, rules.prefix), strict=True))
    for entry in crontab.lines:
        if not isinstance(entry, CronEntry):
            yield ConvertedLine(entry.line, reason=entry.reason)
            continue
        zone = entry.zone or rules.zone
        try:
            document = _document(entry, names[entry.line], zone, rules)
            next_at, checked = _check(document, entry.schedule, now, count)
        except _NoJobError as error:
            yield ConvertedLine(entry.line, entry.schedule, zone, reason=str(error))
        else:
            yield ConvertedLine(entry.line, entry.schedule, zone, document, next_at=next_at, checked=checked)


def _document(entry: CronEntry, name: str, zone: str, rules: Rules) -> dict[str, Any]:
    """Return the job of a line: as cron runs it, alone, without retries, beside itself, never late."""
    if entry.user is not None and entry.user not in rules.users:
        raise _NoJobError(
            f"it runs as {entry.user!r}, and noonmark switches no users: give --user {entry.user} where the"
            " pool's workers run as that user"
        )
    seconds = rules.timeout_seconds
    schedule: dict[str, Any] = {"cron": entry.schedule, "timezone": zone}
    if entry.delay_minutes:
        schedule["jitter_seconds"] = entry.delay_minutes * 60
    document: dict[str, Any] = {"name": name}
    if rules.namespace is not None:
        document["namespace"] = rules.namespace
    document |= {"type": "script", "schedule": schedule, "payload": _payload(entry, rules)}
    if rules.pool is not None:
        document["pool"] = rules.pool
    document |= {
        "timeout_seconds": int(seconds) if seconds.is_integer() else seconds,
        "max_retries": 0,
        "misfire": "skip",
        "overlap": "allow",
        "delivery": "at_most_once",
    }
    if entry.user is not None:
        document["labels"] = {USER_LABEL: entry.user}
    return document


def _payload(entry: CronEntry, rules: Rules) -> dict[str, Any]:
    environment = dict(entry.environment)
    shell, home = environment.get("SHELL") or _DEFAULT_SHELL, environment.get("HOME")
    try:
        program = program_of(entry.command, shell)
    except ShellNeededError as error:
        if not rules.allow_shell:
            raise _NoJobError(
                f"{error}; --allow-shell hands it to {shell}, if workers may run that; or write a script"
            ) from None
        program = Program((shell, "-c", entry.command))
    environment |= program.environment
    folder = program.folder or (home if home and home.startswith("/") else None)
    payload: dict[str, Any] = {"argv": [_executable(program.argv[0], folder), *program.argv[1:]]}
    if environment:
        payload["env"] = environment
    if entry.stdin is not None:
        payload["stdin"] = entry.stdin
    if folder is not None:
        payload["cwd"] = folder
    return payload


def _executable(word: str, folder: str | None) -> str:
    """Return the executable as a worker finds it: cron starts commands in the home folder."""
    if "/" not in word or word.startswith("/"):
        return word
    if folder is None:
        raise _NoJobError(
            f"{word[:100]!r} is relative to the user's home, which the crontab does not name: write the whole"
            " path, or set HOME above it"
        )
    return posixpath.normpath(posixpath.join(folder, word))


def _check(
    document: Mapping[str, Any], fields: str, now: datetime, count: int
) -> tuple[datetime | None, int]:
    """Check the document as intake does, and its instants against cron's; return the next one and how many.

    Raises:
        _NoJobError: it is refused, or its instants are not cron's.
    """
    from noonmark.core.crontab.evaluation import compare  # noqa: PLC0415 - pydantic and zones take a while to load
    from noonmark.core.zones.zones import MAX_AT, load_zone  # noqa: PLC0415
    from noonmark.schemas.jobs.job import parse_job  # noqa: PLC0415
    from noonmark.schemas.problems.refusal import Refused  # noqa: PLC0415

    try:
        schedule = parse_job(document, now=now, ledger_floor=now).schedule
    except Refused as refused:
        raise _NoJobError("; ".join(map(str, refused.errors))) from None
    assert schedule is not None
    planned = schedule.between(now, MAX_AT, count)
    offset_at = load_zone(document["schedule"]["timezone"]).offset
    difference = compare(planned, fields, offset_at, now, count)
    if difference is not None:
        raise _NoJobError(
            f"instant {difference.number} would be {difference.planned or 'none'}, and cron's is"
            f" {difference.expected or 'none'}: this is a fault of noonmark, please report it"
        )
    return (planned[0] if planned else None), len(planned)


def _names(entries: Sequence[CronEntry], prefix: str) -> list[str]:
    """Return a name for each entry, the same whenever the same lines are read.

    The first entry of a program is called as that, so that its job keeps its name when others come below it.
    These are told apart by a hash of what they are, and equal ones are counted.
    """
    seen: Counter[str] = Counter()
    names = []
    for entry in entries:
        name = stem = _stem(entry)
        seen[stem] += 1
        if seen[stem] > 1:
            name = f"{stem}-{_digest(entry)}"
            seen[name] += 1
            name = name if seen[name] == 1 else f"{name}-{seen[name]}"
        names.append(prefix + name)
    return names


def _stem(entry: CronEntry) -> str:
    """Return what the program is called."""
    try:
        word = program_of(entry.command).argv[0]
    except ShellNeededError:
        found = _FIRST_WORD.search(entry.command)
        word = found[0] if found else ""
    return _NOT_IN_NAMES.sub("-", posixpath.basename(word)).strip("-.")[:60] or "line"


def _digest(entry: CronEntry) -> str:
    told = "\0".join((entry.schedule, entry.zone or "", entry.user or "", entry.command, entry.stdin or ""))
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:6]
