"""The settings of an installation that job documents are read with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from noonmark.core.calendars.calendar import Calendar

_NONE: Final[Mapping[str, Calendar]] = {}
_NO_LIMITS: Final[frozenset[str]] = frozenset()


class _Same(dict[str, Mapping[str, Calendar]]):
    """The same calendars for every namespace."""

    def __init__(self, calendars: Mapping[str, Calendar]) -> None:
        super().__init__()
        self._calendars = calendars

    def get(self, _namespace: str, _default: object = None) -> Mapping[str, Calendar]:
        """Return them."""
        return self._calendars


@dataclass(frozen=True, slots=True)
class TimeFacts:
    """Default zones, calendars, pauses and limits of namespaces.

    Attributes:
        number: increases with every change.
        zones: default zones of the namespaces whose default is not UTC.
        paused: paused namespaces.
        calendars: by namespace and name.
        limits: names of limits, by namespace.
        capped: namespaces with a cap on their runs in flight.
        bounded: namespaces with a quota of jobs.
    """

    number: int = 0
    zones: Mapping[str, str] = field(default_factory=dict)
    paused: frozenset[str] = frozenset()
    calendars: Mapping[str, Mapping[str, Calendar]] = field(default_factory=dict)
    limits: Mapping[str, frozenset[str]] = field(default_factory=dict)
    capped: frozenset[str] = frozenset()
    bounded: frozenset[str] = frozenset()

    def zone_of(self, namespace: str) -> str:
        """Return the zone of a schedule that names none."""
        return self.zones.get(namespace, "UTC")

    def anywhere(self) -> TimeFacts:
        """Return facts to check a document whose namespace is not known yet."""
        every = {name: calendar for named in self.calendars.values() for name, calendar in named.items()}
        return replace(self, calendars=_Same(every))

    def calendars_of(self, namespace: str) -> Mapping[str, Calendar]:
        """Return the calendars that jobs of a namespace can name."""
        return self.calendars.get(namespace, _NONE)

    def limits_of(self, namespace: str) -> frozenset[str]:
        """Return the names of the limits that jobs of a namespace can name."""
        return self.limits.get(namespace, _NO_LIMITS)
