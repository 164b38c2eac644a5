"""The product against the oracle: every zone, ten years, every gap rule with every overlap rule.

Around each change of the clocks four days are compared instant by instant; the days between are sampled.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from tests.support.time_oracle import counts
from tests.support.time_oracle.clock import wall_clock
from tests.support.time_oracle.inputs import (
    FIRST_YEAR,
    LAST_YEAR,
    REMARKABLE,
    ZONES,
    Expression,
    Remarkable,
    expressions,
    sampled_days,
    seconds_of,
    windows,
)
from tests.support.time_oracle.walk import DAY, GAP_RULES, OVERLAP_RULES, Sighting, fires, look, stretch

from noonmark.core.schedules.schedule import Schedule, parse_schedule

RULES = tuple(product(GAP_RULES, OVERLAP_RULES))
AS_MANY_AS_THERE_ARE = 1_000_000
SHOWN = 12
"""Differences that a failing test prints."""
COMPARED: set[Expression] = set()

Span = tuple[int, int]


def utc(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def text(seconds: set[int]) -> str:
    listed = [utc(second).isoformat() for second in sorted(seconds)]
    return ", ".join(listed[:4]) + (f" … ({len(listed)})" if len(listed) > 4 else "") or "none"


class Comparison:
    """Compares one zone and remembers what differed."""

    def __init__(self, zone: str, dtstart: str, created_at: datetime) -> None:
        self.zone = zone
        self.dtstart = dtstart
        self.created_at = created_at
        self.instants = 0
        self.windows = 0
        self.differences: list[str] = []

    def schedules(self, expression: Expression) -> dict[tuple[str, str], Schedule]:
        return {
            (gap, overlap): parse_schedule(
                expression.document(self.zone, gap, overlap, self.dtstart), created_at=self.created_at
            )
            for gap, overlap in RULES
        }

    def differ(
        self, what: str, expression: Expression, rules: tuple[str, str], span: Span, detail: str
    ) -> None:
        gap, overlap = rules
        self.differences.append(
            f"{what}: {expression} {self.zone} gap={gap} overlap={overlap} "
            f"in ({utc(span[0] - 1).isoformat()}, {utc(span[1] - 1).isoformat()}]: {detail}"
        )

    def between(
        self,
        expression: Expression,
        rules: tuple[str, str],
        schedule: Schedule,
        span: Span,
        expected: list[int],
    ) -> None:
        after, until = utc(span[0] - 1), utc(span[1] - 1)
        got = [int(at.timestamp()) for at in schedule.between(after, until, AS_MANY_AS_THERE_ARE)]
        self.instants += len(expected)
        self.windows += 1
        if got != expected:
            want, have = set(expected), set(got)
            detail = f"left out {text(want - have)}; too many {text(have - want)}"
            if want == have:
                detail = "out of order, or an instant twice"
            self.differ("between", expression, rules, span, detail)

    def ends(
        self,
        expression: Expression,
        rules: tuple[str, str],
        schedule: Schedule,
        span: Span,
        expected: list[int],
    ) -> None:
        """Ask the same window for its number of fires, and from its far end for the last."""
        after, until = utc(span[0] - 1), utc(span[1] - 1)
        count = schedule.count(after, until)
        if count != len(expected):
            self.differ("count", expression, rules, span, f"{count}, not {len(expected)}")
        if expected:
            last = schedule.previous(until)
            if last != utc(expected[-1]):
                self.differ(
                    "previous", expression, rules, span, f"{last}, not {utc(expected[-1]).isoformat()}"
                )

    def finish(self) -> None:
        counts.add("oracle", windows=self.windows, instants_compared=self.instants)
        shown = "\n".join(self.differences[:SHOWN])
        assert not self.differences, f"{len(self.differences)} differences from the oracle\n{shown}"


def sight(
    zone: str, expression: Expression, spans: list[Span], step: int = 60
) -> list[tuple[Span, Sighting]]:
    cron = expression.read()
    return [(span, look(cron, stretch(zone, *span, step))) for span in spans]


def due(sighting: Sighting, expression: Expression, rules: tuple[str, str], *, wild: bool) -> list[int]:
    return fires(sighting, *rules, wild=wild, rrule=expression.rrule is not None)


@pytest.mark.parametrize("zone", ZONES)
def test_the_product_fires_when_the_oracle_does(zone: str) -> None:
    comparison = Comparison(zone, f"{FIRST_YEAR - 1}-12-20T00:00:00", utc(seconds_of(FIRST_YEAR - 1)))
    chosen = expressions(zone, seconds_of(FIRST_YEAR), seconds_of(LAST_YEAR + 1))
    near, between = windows(zone), sampled_days(zone)
    for expression in chosen:
        wild = expression.read().wild
        schedules = comparison.schedules(expression)
        for turn, (span, sighting) in enumerate(sight(zone, expression, near)):
            for rules, schedule in schedules.items():
                expected = due(sighting, expression, rules, wild=wild)
                comparison.between(expression, rules, schedule, span, expected)
            rules = RULES[turn % len(RULES)]
            expected = due(sighting, expression, rules, wild=wild)
            comparison.ends(expression, rules, schedules[rules], span, expected)
        for turn, (span, sighting) in enumerate(sight(zone, expression, between)):
            rules = RULES[turn % len(RULES)]
            expected = due(sighting, expression, rules, wild=wild)
            comparison.between(expression, rules, schedules[rules], span, expected)
    COMPARED.update(chosen)
    counts.add("oracle", zones=1, changes=len(near))
    counts.top("oracle", years=LAST_YEAR - FIRST_YEAR + 1)
    counts.top("oracle", expressions=len(COMPARED), rule_pairs=len(RULES))
    comparison.finish()


@pytest.mark.parametrize("what", REMARKABLE, ids=lambda r: f"{r.zone}-{r.around}")
def test_the_product_follows_remarkable_changes(what: Remarkable) -> None:
    around = datetime.fromisoformat(what.around + "T00:00:00+00:00")
    second = int(around.timestamp())
    [change] = wall_clock(what.zone).changes(second - 3 * DAY, second + 3 * DAY)
    margin = 4 * DAY if what.step == 60 else 6 * 3600
    span = (change - margin - change % 3600, change + margin - change % 3600)
    long_ago = around - timedelta(days=40)
    comparison = Comparison(what.zone, long_ago.strftime("%Y-%m-%dT00:00:00"), long_ago)
    chosen = expressions(what.zone, second - 3 * DAY, second + 3 * DAY)
    for expression in chosen:
        wild = expression.read().wild
        [(_, sighting)] = sight(what.zone, expression, [span], what.step)
        for rules, schedule in comparison.schedules(expression).items():
            expected = due(sighting, expression, rules, wild=wild)
            comparison.between(expression, rules, schedule, span, expected)
            comparison.ends(expression, rules, schedule, span, expected)
    COMPARED.update(chosen)
    counts.add("oracle", remarkable_changes=1)
    counts.top("oracle", expressions=len(COMPARED))
    comparison.finish()
