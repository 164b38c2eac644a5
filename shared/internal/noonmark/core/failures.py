"""The facts about a failed attempt that retry rules can refer to, for every kind of job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

Range = tuple[int, int]
"""Lowest and highest number, both included."""

_MOST_NAMES: Final = 40


@dataclass(frozen=True, slots=True)
class Failure:
    """Facts about one failed attempt; what the kind does not know is None.

    Attributes:
        status: HTTP status that the target answered.
        grpc: name of the gRPC status, such as UNAVAILABLE.
        exception: class names of the exception and of its base classes, with and without their module.
        exit_code: of a script, 0 to 255.
        retry_after_seconds: the delay that the target asked for; an invalid value is ignored.
        retryable: whether the kind recommends another attempt; None counts as yes.
        unknown: whether the target acted cannot be determined.
        retry_in: delay in seconds that the handler chose.
    """

    status: int | None = None
    grpc: str | None = None
    exception: tuple[str, ...] = ()
    exit_code: int | None = None
    retry_after_seconds: float | None = None
    retryable: bool | None = None
    unknown: bool = False
    retry_in: float | None = None


NO_FACTS: Final = Failure()
"""A failure without any known facts."""


def exception_names(kind: type[BaseException]) -> tuple[str, ...]:
    """Name an exception class and its base classes, each with its module and bare, the nearest first."""
    names: dict[str, None] = {}
    for cls in kind.__mro__:
        if cls is not object:
            names[f"{cls.__module__}.{cls.__qualname__}"] = None
            names[cls.__name__] = None
    return tuple(names)[:_MOST_NAMES]


@dataclass(frozen=True, slots=True)
class FailureRules:
    """Which failures a rule matches: one matching fact is enough."""

    status: tuple[Range, ...] = ()
    grpc: frozenset[str] = frozenset()
    exceptions: frozenset[str] = frozenset()
    exit_codes: tuple[Range, ...] = ()

    @classmethod
    def of(cls, written: Mapping[str, Iterable[int | str]]) -> FailureRules:
        """Read rules as documents and `jobs.work` have them: numbers, ranges such as "500-599", names.

        Raises:
            ValueError: a range is not valid.
        """
        return cls(
            _ranges(written.get("status", ())),
            frozenset(str(name) for name in written.get("grpc", ())),
            frozenset(str(name) for name in written.get("exceptions", ())),
            _ranges(written.get("exit_codes", ())),
        )

    def written(self) -> dict[str, list[int | str]]:
        """Return the rules in the form that `of` reads, without empty ones."""
        full: dict[str, list[int | str]] = {
            "status": _texts(self.status),
            "grpc": sorted(self.grpc),
            "exceptions": sorted(self.exceptions),
            "exit_codes": _texts(self.exit_codes),
        }
        return {name: values for name, values in full.items() if values}

    def match(self, failure: Failure) -> bool:
        """Return whether the rules match this failure."""
        return (
            _within(failure.status, self.status)
            or _within(failure.exit_code, self.exit_codes)
            or failure.grpc in self.grpc
            or not self.exceptions.isdisjoint(failure.exception)
        )


def _within(value: int | None, ranges: tuple[Range, ...]) -> bool:
    return value is not None and any(low <= value <= high for low, high in ranges)


def _ranges(values: Iterable[int | str]) -> tuple[Range, ...]:
    found = []
    for value in values:
        low, dash, high = str(value).partition("-")
        found.append((int(low), int(high if dash else low)))
    return tuple(found)


def _texts(ranges: tuple[Range, ...]) -> list[int | str]:
    return [low if low == high else f"{low}-{high}" for low, high in ranges]
