"""Convert crontab lines to job documents, and check each against a second evaluation of the line."""

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
"""Label with the user of a line in the system form."""

CHECKED: Final = 100
"""Number of instants to compare with cron's."""

DEFAULT_TIMEOUT_SECONDS: Final = 86_400.0
"""Cron has no timeout; a day is noonmark's longest."""

_DEFAULT_SHELL: Final = "/bin/sh"
_FIRST_WORD: Final = re.compile(r"[^ \t|&;<>()]+")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Rules:
    """Options for converting lines to jobs.

    Attributes:
        zone: zone of lines without a `CRON_TZ` above them.
        users: convert only the lines of these users (system form).
        allow_shell: pass commands with shell syntax to a shell.
        prefix: prefix of every job name.
        namespace: namespace of the jobs; None leaves it to the apply.
        pool: pool of the jobs; None leaves it to the apply.
        timeout_seconds: timeout of an attempt.
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
    """Result of converting a line.

    Attributes:
        number: line number, from 1.
        schedule: its five fields, if any.
        document: the job; None if the line cannot be converted.
        reason: why it cannot be converted.
        next_at: the next instant of the job.
        checked: number of instants that are the same as cron's.
    """

    number: int
    schedule: str | None = None
    zone: str | None = None
    document: Mapping[str, Any] | None = None
    reason: str | None = None
    next_at: datetime | None = None
    checked: int = 0


class _NoJobError(ValueError):
    """A line cannot be converted; the message says why."""


def convert(
    crontab: Crontab, rules: Rules, *, now: datetime, count: int = CHECKED
) -> Iterable[ConvertedLine]:
    """Yield the result of each line, in order.

    Args:
        crontab: the parsed crontab.
        rules: options for the conversion.
        now: compare instants after this one.
        count: number of instants to compare.
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
    """Return the job of a line with cron's behaviour: no retries, overlapping runs, no late runs."""
    if entry.user is not None and entry.user not in rules.users:
        raise _NoJobError(
            f"it runs as {entry.user!r}, and noonmark cannot switch users: pass --user {entry.user} if the"
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
        "overlap": "skip" if entry.single else "allow",
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
                f"{error}; pass --allow-shell to run it in {shell} if workers may run that, or write a script"
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
    """Return the path of the executable for a worker: cron starts commands in the home folder."""
    if "/" not in word or word.startswith("/"):
        return word
    if folder is None:
        raise _NoJobError(
            f"{word[:100]!r} is relative to the user's home, which the crontab does not set; write the whole"
            " path, or set HOME above it"
        )
    return posixpath.normpath(posixpath.join(folder, word))


def _check(
    document: Mapping[str, Any], fields: str, now: datetime, count: int
) -> tuple[datetime | None, int]:
    """Check the document as intake does, and its instants against cron's; return the next one and the count.

    Raises:
        _NoJobError: it is rejected, or its instants differ from cron's.
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
            f" {difference.expected or 'none'}: this is a bug in noonmark, please report it"
        )
    return (planned[0] if planned else None), len(planned)


def _names(entries: Sequence[CronEntry], prefix: str) -> list[str]:
    """Return a name for each entry; the same lines always get the same names.

    The first entry has the program's name, so that its job keeps its name if you add lines below.
    Further entries get a hash of their contents, and equal ones a number.
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
    """Return the name of the program."""
    try:
        word = program_of(entry.command).argv[0]
    except ShellNeededError:
        found = _FIRST_WORD.search(entry.command)
        word = found[0] if found else ""
    return _NOT_IN_NAMES.sub("-", posixpath.basename(word)).strip("-.")[:60] or "line"


def _digest(entry: CronEntry) -> str:
    contents = "\0".join(
        (entry.schedule, entry.zone or "", entry.user or "", entry.command, entry.stdin or "")
    )
    return hashlib.sha256(contents.encode("utf-8", "surrogatepass")).hexdigest()[:6]
