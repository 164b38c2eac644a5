"""Time zones: periods of constant offset, read from zone data that the project pins, never from the host.

The data come from the `tzdata` package, or from a directory that the operator names (`use_zone_data`). Each
year of a zone is computed on first use and cached.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from itertools import pairwise
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from noonmark.core.instants import as_utc, shortened

MIN_AT: Final = datetime.min.replace(tzinfo=UTC)
MAX_AT: Final = datetime.max.replace(tzinfo=UTC)

UNKNOWN_ZONE: Final = "is not in zone data"
"""What errors say of a name that no zone has."""

ZONE_RULE: Final = "an IANA name such as 'Europe/Berlin', 'America/New_York' or 'UTC'"

REACH: Final = timedelta(days=3)
"""Further than one change of the clocks can matter: offsets stay below 24 h, so a change stays below 48 h."""

_STEP: Final = timedelta(days=6)
"""Of the search for changes: two that cancel each other out are found if they lie this far apart.

The closest pairs in all zone data, such as Recife's in October 2000, lie 6 days and 23 hours apart.
"""
_KEPT_YEARS: Final = 400
_UTC_NAMES: Final = frozenset(
    {"UTC", "UCT", "Universal", "Zulu", "Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu"}
)
_NOT_ZONES: Final = frozenset({"posix", "right", "localtime", "posixrules"})
_VERSION: Final = re.compile(r"(?:# version )?([0-9]{4}[0-9A-Za-z._+~-]{1,28})\s*")
_MAX_NAME: Final = 64


class ZoneError(ValueError):
    """A zone name is unknown, or the zone data cannot be used.

    Attributes:
        near: known names that are similar to the refused one; empty for other problems.
    """

    def __init__(self, message: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.near = near


def plus(at: datetime, delta: timedelta) -> datetime:
    """Return `at + delta`, or the nearest datetime there is when the sum leaves the years 1 to 9999."""
    try:
        return at + delta
    except OverflowError:
        edge = MIN_AT if delta < timedelta(0) else MAX_AT
        return edge.replace(tzinfo=at.tzinfo)


@dataclass(frozen=True, slots=True)
class Segment:
    """A period [start, end) of UTC in which local time is UTC + `offset`.

    A segment may be cut where nothing changes; `before` or `after` then equals `offset`. A cut lies at least
    `REACH` from every change.

    Attributes:
        before: the offset just before `start`.
        after: the offset from `end` on.
        local_start: local time at `start`, naive.
        local_end: local time that `end` would have without the change, naive.
    """

    start: datetime
    end: datetime
    offset: timedelta
    before: timedelta
    after: timedelta
    local_start: datetime = field(init=False, compare=False, repr=False)
    local_end: datetime = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "local_start", plus(self.start.replace(tzinfo=None), self.offset))
        object.__setattr__(self, "local_end", plus(self.end.replace(tzinfo=None), self.offset))


class Zone:
    """A zone of one version of the data. Two zones are equal only if they are the same object.

    Instants are aware, local times naive. Years 1 to 9999 are answered; within `REACH` of the ends of that
    range no change is looked for.

    Attributes:
        name: the IANA name as asked for; links keep their own name.
        version: the version of the zone data; "" for `UTC_ZONE`.
        is_utc: the name says UTC: no zone data matter.
    """

    __slots__ = ("_always", "_offset_at", "_years", "is_utc", "name", "version")

    def __init__(self, name: str, version: str, offset_at: Callable[[datetime], timedelta] | None) -> None:
        """Make the zone `name` whose offset at an aware UTC instant is `offset_at`; None means UTC."""
        zero = timedelta(0)
        self.name = name
        self.version = version
        self.is_utc = offset_at is None
        self._offset_at = offset_at or (lambda _: zero)
        self._always = Segment(MIN_AT, MAX_AT, zero, zero, zero)
        self._years: dict[int, tuple[list[datetime], list[Segment]]] = {}

    def __repr__(self) -> str:
        return f"Zone({self.name!r}, {self.version!r})"

    def segment(self, at: datetime) -> Segment:
        """Return the segment that contains the instant."""
        if self.is_utc:
            return self._always
        at = as_utc(at)
        starts, segments = self._years.get(at.year) or self._read_year(at.year)
        if at < starts[0]:
            starts, segments = self._years.get(at.year - 1) or self._read_year(at.year - 1)
        return segments[bisect_right(starts, at) - 1]

    def offset(self, at: datetime) -> timedelta:
        """Return local time minus UTC at the instant."""
        return self.segment(at).offset

    def local(self, at: datetime) -> datetime:
        """Return the naive local time of the instant, at the ends of the calendar the nearest there is."""
        return plus(as_utc(at).replace(tzinfo=None), self.segment(at).offset)

    def images(self, local: datetime) -> tuple[datetime, ...]:
        """Return the instants that show a naive local time, oldest first: 0 in a gap, 2 in an overlap."""
        found = []
        around = local.replace(tzinfo=UTC)
        last = plus(around, REACH)
        segment = self.segment(plus(around, -REACH))
        while True:
            if segment.local_start <= local < segment.local_end:
                found.append(around - segment.offset)
            if segment.end > last or segment.end == MAX_AT:
                return tuple(found)
            segment = self.segment(segment.end)

    def _read_year(self, year: int) -> tuple[list[datetime], list[Segment]]:
        """Find the segments from the turn into `year` to the turn out of it, and keep them."""
        start, end = self._turn_of(year), self._turn_of(year + 1)
        changes = list(self._changes(start, end))
        first = self._offset_at(max(start, MIN_AT + REACH))
        starts = [start, *(at for at, _ in changes)]
        offsets = [first, first, *(offset for _, offset in changes)]
        offsets.append(offsets[-1])
        segments = [
            Segment(low, high, offsets[i + 1], offsets[i], offsets[i + 2])
            for i, (low, high) in enumerate(pairwise([*starts, end]))
        ]
        if len(self._years) >= _KEPT_YEARS:
            self._years.clear()
        self._years[year] = starts, segments
        return starts, segments

    def _turn_of(self, year: int) -> datetime:
        """Return where `year` is cut from the year before: from 1 January on, `REACH` from any change."""
        if not 1 < year <= 9999:
            return MIN_AT if year <= 1 else MAX_AT
        cut = datetime(year, 1, 1, tzinfo=UTC)
        while (change := next(self._changes(cut - REACH, cut + REACH), None)) is not None:
            cut = change[0] + REACH
        return cut

    def _changes(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, timedelta]]:
        """Yield the instants in (start, end] at which the offset changes, to the second, with the new one."""
        start = max(start, MIN_AT + REACH)
        end = min(end, MAX_AT.replace(microsecond=0) - REACH)
        offset = self._offset_at(start)
        while start < end:
            probe = min(plus(start, _STEP), end)
            if self._offset_at(probe) == offset:
                start = probe
                continue
            same, changed = 0, int((probe - start).total_seconds())
            while changed - same > 1:
                middle = (same + changed) // 2
                if self._offset_at(start + timedelta(seconds=middle)) == offset:
                    same = middle
                else:
                    changed = middle
            start += timedelta(seconds=changed)
            offset = self._offset_at(start)
            yield start, offset


UTC_ZONE: Final = Zone("UTC", "", None)


class ZoneData:
    """One version of the zone data. Old and new versions may be loaded at once, when planning again.

    Attributes:
        version: the IANA version, such as "2026f".
    """

    def __init__(self, root: Traversable, version: str, names: Callable[[], frozenset[str]]) -> None:
        """Use `packaged` or `from_directory` instead."""
        self.version = version
        self._root = root
        self._list_names = names
        self._zones: dict[str, Zone] = {}

    @classmethod
    def packaged(cls) -> ZoneData:
        """Return the data of the installed `tzdata` package.

        Raises:
            ZoneError: the package is not installed.
        """
        try:
            version = str(import_module("tzdata").IANA_VERSION)
        except ImportError as error:
            raise ZoneError(
                "no zone data: the Python package 'tzdata' is not installed; install it"
            ) from error
        root = resources.files("tzdata")
        return cls(
            root.joinpath("zoneinfo"),
            version,
            lambda: frozenset(root.joinpath("zones").read_text(encoding="ascii").split()),
        )

    @classmethod
    def from_directory(cls, path: Path) -> ZoneData:
        """Return the compiled data (TZif files) below a directory.

        Its version is read from the first line of the file `tzdata.zi` there (`# version 2026b`) or from
        the file `version`.

        Raises:
            ZoneError: the directory cannot be read or has no version.
        """
        for name in ("tzdata.zi", "version"):
            try:
                with path.joinpath(name).open(encoding="utf-8", errors="replace") as file:
                    found = _VERSION.fullmatch(file.readline(200))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise ZoneError(f"zone data at {path}: file '{name}' cannot be read: {error}") from error
            if found is not None:
                return cls(path, found.group(1), lambda: _names_below(path))
        raise ZoneError(
            f"zone data at {path} have no version: add a file 'tzdata.zi' whose first line is like "
            "'# version 2026b', or a file 'version' with '2026b'"
        )

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all zones, links among them."""
        return self._list_names()

    def zone(self, name: str) -> Zone:
        """Return the zone of that name, always the same object.

        Raises:
            ZoneError: the data have no such zone, or its file is broken. The message suggests similar names.
        """
        zone = self._zones.get(name)
        if zone is None:
            # The list of names protects the path: only files in it are ever opened.
            if name not in self.names:
                raise self._unknown(name)
            zone = self._zones.setdefault(name, self._load(name))
        return zone

    def _load(self, name: str) -> Zone:
        if name in _UTC_NAMES:
            return UTC_ZONE if name == "UTC" else Zone(name, self.version, None)
        try:
            with self._root.joinpath(*name.split("/")).open("rb") as file:
                info = ZoneInfo.from_file(file, key=name)
        except Exception as error:  # zoneinfo raises errors of many types
            raise ZoneError(f"zone '{name}' of zone data {self.version} cannot be read: {error}") from error

        def offset_at(at: datetime) -> timedelta:
            offset = at.astimezone(info).utcoffset()
            assert offset is not None
            return offset

        return Zone(name, self.version, offset_at)

    def _unknown(self, name: str) -> ZoneError:
        near = self._near(name)
        hint = f"did you mean {' or '.join(repr(each) for each in near)}?" if near else f"use {ZONE_RULE}"
        return ZoneError(f"time zone {shortened(name)} {UNKNOWN_ZONE} {self.version}; {hint}", near)

    def _near(self, name: str) -> tuple[str, ...]:
        """Return up to three similar names: another case, the same city, or similar letters."""
        wanted = name.strip().replace(" ", "_").casefold()
        if not wanted or len(wanted) > _MAX_NAME:
            return ()
        folded = {each.casefold(): each for each in sorted(self.names)}
        if wanted in folded:
            return (folded[wanted],)
        cities = [each for low, each in folded.items() if low.rpartition("/")[2] == wanted]
        return tuple(
            cities[:3] or (folded[low] for low in get_close_matches(wanted, folded, n=3, cutoff=0.7))
        )


def _names_below(root: Path) -> frozenset[str]:
    """Return the names of the TZif files below `root`, without the host's own and the leap-second copies."""
    names = set()
    try:
        for path in root.rglob("*"):
            parts = path.relative_to(root).parts
            if parts[0] not in _NOT_ZONES and path.is_file():
                with path.open("rb") as file:
                    if file.read(4) == b"TZif":
                        names.add("/".join(parts))
    except OSError as error:
        raise ZoneError(f"zone data at {root} cannot be read: {error}") from error
    return frozenset(names)


class _Active:
    """The zone data of this process: the packaged data until others are set."""

    data: ZoneData | None = None


def zone_data() -> ZoneData:
    """Return the zone data that this process uses."""
    if _Active.data is None:
        _Active.data = ZoneData.packaged()
    return _Active.data


def use_zone_data(directory: Path | None) -> None:
    """Use the data in `directory` from now on, or those of the `tzdata` package for None.

    Zones returned before keep the old data. On an error nothing changes.

    Raises:
        ZoneError: see `ZoneData.from_directory` and `ZoneData.packaged`.
    """
    _Active.data = ZoneData.packaged() if directory is None else ZoneData.from_directory(directory)


def zone_data_version() -> str:
    """Return the version of the zone data that this process uses, such as "2026f"."""
    return zone_data().version


def load_zone(name: str) -> Zone:
    """Return the zone of that IANA name from the data that this process uses.

    Raises:
        ZoneError: no such zone; the message suggests similar names.
    """
    return zone_data().zone(name)
