"""Crontabs as cron reads them: user and system form, environment lines, `%`, nicknames.

It reads crontabs as cronie does (crontab(5)). A line without an equivalent schedule, or one that versions of
cron read differently, is refused with the reason; other lines are not affected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from noonmark.core.crontab.fields import CrontabError, check_fields

MAX_LINE: Final = 131_072
"""The most characters of a line that cron reads."""

MOST_LINES: Final = 100_000
MOST_VARIABLES: Final = 100
"""The most variables of a command: a script job has no more, and each line has all those above it."""

_ENVIRONMENT: Final = re.compile(
    r"""(?P<quote>["']?)(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P=quote)[ \t]*=[ \t]*(?P<value>.*)""",
    re.DOTALL,
)
_COMMAND: Final = re.compile(r"(?:\\.|\\\Z|[^\\%])*", re.DOTALL)
"""A command up to its first `%` without a backslash."""

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
_FLAGS: Final = re.compile(r"-[nqs]+")
_ZONE: Final = "CRON_TZ"
_DELAY: Final = "RANDOM_DELAY"
_MAIL: Final = frozenset({"MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"})
_WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    **dict.fromkeys(_MAIL, "noonmark sends no mail; output is kept with each attempt: `noonmark run logs`"),
    "LOGNAME": "cron sets it itself; a script runs as the user of its worker",
    "START_HOURS_RANGE": "it belongs to anacron and has no effect here",
}
"""Variables that have a meaning for cron but not for a job."""


@dataclass(frozen=True, slots=True)
class CronEntry:
    """A line with a schedule and a command.

    Attributes:
        line: its number, from 1.
        schedule: the five fields, nicknames written out.
        command: what the shell would receive, `%` resolved.
        stdin: the standard input of the command; None: no input.
        user: of the system form; None in the user form.
        environment: the variables above it, without those of cron itself.
        zone: of `CRON_TZ` above it; None: the zone of the machine.
        delay_minutes: the most minutes by which `RANDOM_DELAY` delays a start.
        quiet: a dash before the fields, or `-q` before the command, tells cron not to log it.
        single: `-s` before the command tells cron not to start it while it still runs.
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
    single: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that does not become a job.

    Attributes:
        line: its number, from 1.
        reason: why, and what to do.
    """

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Crontab:
    """The content of a crontab.

    Attributes:
        lines: entries and refused lines, in order.
        notes: line number and a note about a line that is accepted.
    """

    lines: tuple[CronEntry | Refused, ...]
    notes: tuple[tuple[int, str], ...]


class _Above:
    """The values of the environment lines so far."""

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self.zone: str | None = None
        self.delay_minutes = 0
        self.delay_problem: str | None = None
        self.too_many = False
        self._frozen: Mapping[str, str] | None = None

    @property
    def frozen(self) -> Mapping[str, str]:
        """The current variables, one object for all lines up to the next change."""
        if self._frozen is None:
            self._frozen = MappingProxyType(dict(self.variables))
        return self._frozen

    def set(self, name: str, value: str) -> str | None:
        """Set a variable; return a note about it, if any."""
        if name == _ZONE:
            self.zone = value or None
        elif name == _DELAY:
            fits = value.isascii() and value.isdecimal() and len(value) <= 4
            self.delay_minutes = int(value) if fits else 0
            self.delay_problem = (
                None if fits or not value else f"RANDOM_DELAY above is {value[:24]!r}, not a number"
            )
        elif name in _WITHOUT_EFFECT:
            return f"{name}: {_WITHOUT_EFFECT[name]}" if value else None
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
        text: of the file. Bytes that are not UTF-8 are lone surrogates in it (`surrogateescape`).
        system: whether each line names a user before its command, as in /etc/crontab and /etc/cron.d.

    Raises:
        CrontabError: it has too many lines.
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
    """Return the value of an environment line; inside quotes, spaces at its ends count."""
    quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _entry(line: str, number: int, above: _Above, *, system: bool) -> CronEntry:
    """Read a line with a schedule and a command.

    Raises:
        CrontabError: it is not an entry, or has no equivalent job.
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
    flags, rest = _flags(rest)
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
        quiet or "q" in flags,
        "s" in flags,
    )


def _flags(text: str) -> tuple[str, str]:
    """Return the options of cron in front of a command (`-n -q -s`, also `-ns`), and the command.

    Raises:
        CrontabError: an option is unknown, or no command follows.
    """
    flags = ""
    while text.startswith("-"):
        word, _, text = _split(text)
        if not _FLAGS.fullmatch(word):
            raise CrontabError(
                f"{word[:24]!r} before the command is not an option of cron: -n (no mail after a success), -q"
                " (no log) and -s (not while it still runs) are"
            )
        flags += word[1:]
        if not text:
            raise CrontabError(f"no command follows {word}")
    return flags, text


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
    """Return the first word of a text, the spaces after it, and the rest."""
    found = re.match(r"([^ \t]*)([ \t]*)(.*)", text, re.DOTALL)
    assert found is not None
    return found[1], found[2], found[3]


def split_input(text: str) -> tuple[str, str | None]:
    r"""Return the command and its input: the text after the first `%`, where each further `%` is a line end.

    `\%` is a plain `%`. Before that first one a backslash may itself be escaped: the `%` of `\\%` ends the
    command. The input ends with a line end, as cron adds it; nothing after the `%` is an empty input.
    """
    found = _COMMAND.match(text)
    assert found is not None
    command, input_ = found[0].replace("\\%", "%"), text[found.end() :]
    if not input_:
        return command, None
    data = re.sub(r"(?<!\\)%", "\n", input_[1:]).replace("\\%", "%")
    return command, data if not data or data.endswith("\n") else data + "\n"
