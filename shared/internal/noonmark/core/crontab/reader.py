"""Crontabs as cron reads them: user and system form, environment lines, `%`, nicknames.

The reading is cronie's (crontab(5)). A line that no schedule can stand for, or that cron's versions read
differently, is refused with its reason; a refused line takes nothing else with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from noonmark.core.crontab.fields import CrontabError, check_fields

MAX_LINE: Final = 131_072
"""Characters of the longest line that cron reads."""

MOST_LINES: Final = 100_000
MOST_VARIABLES: Final = 100
"""That a command may have: no script job has more, and every line holds those above it."""

_ENVIRONMENT: Final = re.compile(
    r"""(?P<quote>["']?)(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P=quote)[ \t]*=[ \t]*(?P<value>.*)""",
    re.DOTALL,
)
_COMMAND: Final = re.compile(r"(?:\\.|\\\Z|[^\\%])*", re.DOTALL)
"""A command up to its first `%` without a backslash of its own."""

_NICKNAMES: Final[Mapping[str, str]] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_NO_INSTANT: Final[Mapping[str, str]] = {
    "@reboot": "@reboot is not a time: noonmark does not know when a machine starts; leave it to init",
    "@every": "cron does not know @every; write five fields, such as */5 * * * * for every five minutes",
}
_ZONE: Final = "CRON_TZ"
_DELAY: Final = "RANDOM_DELAY"
_MAIL: Final = frozenset({"MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"})
_TOLD: Final[Mapping[str, str]] = {
    **dict.fromkeys(_MAIL, "noonmark sends no mail; output is kept with each attempt: `noonmark run logs`"),
    "LOGNAME": "cron sets it itself; a script runs as the user of its worker",
    "START_HOURS_RANGE": "it belongs to anacron and has no effect here",
}
"""Variables that mean something to cron and nothing to a job."""


@dataclass(frozen=True, slots=True)
class CronEntry:
    """A line that says what runs, and when.

    Attributes:
        line: its number, from 1.
        schedule: the five fields, nicknames written out.
        command: what the shell would get, `%` resolved.
        stdin: what the command reads; None: nothing.
        user: of the system form; None in the user form.
        environment: the variables above it, without those that are cron's own.
        zone: of `CRON_TZ` above it; None: the zone of the machine.
        delay_minutes: most minutes by which `RANDOM_DELAY` moves a start.
        quiet: a dash before the fields keeps cron from logging it.
    """

    line: int
    schedule: str
    command: str
    stdin: str | None = None
    user: str | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    zone: str | None = None
    delay_minutes: int = 0
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that becomes no job.

    Attributes:
        line: its number, from 1.
        reason: why, and what to do.
    """

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Crontab:
    """What a crontab holds.

    Attributes:
        lines: entries and refused lines, as they come.
        notes: line number and what is to be said about a line that counts otherwise.
    """

    lines: tuple[CronEntry | Refused, ...]
    notes: tuple[tuple[int, str], ...]


class _Above:
    """What the environment lines so far say."""

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self.zone: str | None = None
        self.delay_minutes = 0
        self.delay_problem: str | None = None
        self.too_many = False
        self._frozen: Mapping[str, str] | None = None

    @property
    def frozen(self) -> Mapping[str, str]:
        """The variables as they are, one value for all lines up to the next change."""
        if self._frozen is None:
            self._frozen = MappingProxyType(dict(self.variables))
        return self._frozen

    def set(self, name: str, value: str) -> str | None:
        """Take in one; return what is to be said about it."""
        if name == _ZONE:
            self.zone = value or None
        elif name == _DELAY:
            fits = value.isascii() and value.isdecimal() and len(value) <= 4
            self.delay_minutes = int(value) if fits else 0
            self.delay_problem = (
                None if fits or not value else f"RANDOM_DELAY above is {value[:24]!r}, not a number"
            )
        elif name in _TOLD:
            return f"{name}: {_TOLD[name]}" if value else None
        elif len(self.variables) == MOST_VARIABLES and name not in self.variables:
            self.too_many = True
        else:
            self.variables[name], self._frozen = value, None
            if name == "TZ":
                return "TZ is passed to the commands; schedules use the zone in CRON_TZ"
        return None


def parse_crontab(text: str, *, system: bool) -> Crontab:
    """Read a crontab.

    Args:
        text: of the file. Bytes that are no UTF-8 stand in it as lone surrogates (`surrogateescape`).
        system: whether each line names a user before its command, as in /etc/crontab and /etc/cron.d.

    Raises:
        CrontabError: it has more lines than any crontab.
    """
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        raise CrontabError(f"the file has {len(lines)} lines; at most {MOST_LINES} are allowed")
    above = _Above()
    found: list[CronEntry | Refused] = []
    notes: list[tuple[int, str]] = []
    for number, raw in enumerate(lines, start=1):
        line = raw.removesuffix("\r").strip(" \t")
        if not line or line.startswith("#"):
            continue
        try:
            _check_text(line)
            if (variable := _ENVIRONMENT.fullmatch(line)) is not None:
                if note := above.set(variable["name"], _unquoted(variable["value"])):
                    notes.append((number, note))
                continue
            found.append(_entry(line, number, above, system=system))
        except CrontabError as error:
            found.append(Refused(number, error.message))
    return Crontab(tuple(found), tuple(notes))


def is_system_path(path: str) -> bool:
    """Whether a file at this path names users in its lines."""
    return path == "/etc/crontab" or path.startswith("/etc/cron.d/")


def _check_text(line: str) -> None:
    if len(line) > MAX_LINE:
        raise CrontabError(f"the line has {len(line)} characters; cron reads at most {MAX_LINE}")
    if "\0" in line:
        raise CrontabError("the line holds a NUL character")
    if any("\udc80" <= char <= "\udcff" for char in line):
        raise CrontabError("the line is not UTF-8")


def _unquoted(value: str) -> str:
    """Return the value of an environment line: within quotes blanks at its ends count."""
    quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _entry(line: str, number: int, above: _Above, *, system: bool) -> CronEntry:
    """Read a line with a schedule and a command.

    Raises:
        CrontabError: it is none, or no job can stand for it.
    """
    quiet = line.startswith("-")
    line = line.removeprefix("-").lstrip(" \t")
    schedule, rest = _nickname(line) if line.startswith("@") else _five_fields(line)
    user = None
    if system:
        user, _, rest = _split(rest)
        if not rest:
            raise CrontabError(f"nothing follows {user!r}: the system form has a user, then the command")
    elif _split(rest)[0] == "root":
        raise CrontabError(
            "the command starts with 'root': is this the system form? read it with --system-form"
        )
    if not rest:
        raise CrontabError("no command follows the schedule")
    if rest.startswith("*"):
        raise CrontabError("the command starts with '*': cron has five time fields, no seconds and no year")
    if above.delay_problem is not None:
        raise CrontabError(above.delay_problem)
    if above.too_many:
        raise CrontabError(f"it has more than {MOST_VARIABLES} variables above it, which no job can have")
    command, stdin = split_input(rest)
    if not command.strip():
        raise CrontabError("the command is empty: everything is after a %")
    return CronEntry(
        number,
        schedule,
        command.strip(),
        stdin,
        user,
        above.frozen,
        above.zone,
        above.delay_minutes,
        quiet,
    )


def _nickname(line: str) -> tuple[str, str]:
    word, _, rest = _split(line)
    name = word.lower()
    if name in _NO_INSTANT:
        raise CrontabError(_NO_INSTANT[name])
    fields = _NICKNAMES.get(name)
    if fields is None:
        known = ", ".join(_NICKNAMES)
        raise CrontabError(f"{word[:24]!r} is not a nickname of cron ({known})")
    return fields, rest


def _five_fields(line: str) -> tuple[str, str]:
    fields: list[str] = []
    rest = line
    while len(fields) < 5 and rest:
        word, _, rest = _split(rest)
        fields.append(word)
    if len(fields) < 5:
        raise CrontabError(
            f"only {len(fields)} of the five time fields are given: minute hour day-of-month month"
            " day-of-week"
        )
    check_fields(fields)
    return " ".join(fields), rest


def _split(text: str) -> tuple[str, str, str]:
    """Return the first word of a text, the blanks behind it, and the rest."""
    found = re.match(r"([^ \t]*)([ \t]*)(.*)", text, re.DOTALL)
    assert found is not None
    return found[1], found[2], found[3]


def split_input(text: str) -> tuple[str, str | None]:
    r"""Return the command and what it reads: from the first `%` on, each further one a line's end.

    `\%` is a plain `%`. Before that first one a backslash may itself be escaped: the `%` of `\\%` ends the
    command. What is read ends with a line's end, as cron sees to; nothing behind the `%` is an empty input.
    """
    found = _COMMAND.match(text)
    assert found is not None
    command, input_ = found[0].replace("\\%", "%"), text[found.end() :]
    if not input_:
        return command, None
    data = re.sub(r"(?<!\\)%", "\n", input_[1:]).replace("\\%", "%")
    return command, data if not data or data.endswith("\n") else data + "\n"
