"""Which starts count for the objective, and which of them meet it."""

from datetime import timedelta

import pytest
from tests.unit.worker.hands import NOW, hand

from noonmark.core.states import Lane
from noonmark.telemetry.metrics import REGISTRY
from noonmark.worker.engine.start_delays import measure_starts

OBJECTIVES = (5.0, 30.0, 300.0)


def counted(lane):
    return [
        REGISTRY.get_sample_value(name, {"lane": lane}) or 0
        for name in (
            "noonmark_start_slo_total",
            "noonmark_start_slo_good_total",
            "noonmark_start_delay_seconds_count",
        )
    ]


def begun(lane, after, **more):
    return hand(lane=int(lane), started_at=NOW + timedelta(seconds=after), **more)


@pytest.mark.parametrize(
    ("lane", "delays", "good"),
    [(Lane.HIGH, [0, 5, 5.001], 2), (Lane.NORMAL, [29, 31], 1), (Lane.LOW, [-1, 300, 301, 9000], 2)],
)
def test_a_start_is_good_within_the_objective_of_its_lane(lane, delays, good):
    before = counted(lane.label)
    measure_starts([begun(lane, delay) for delay in delays], OBJECTIVES)
    after = counted(lane.label)
    assert [b - a for a, b in zip(before, after, strict=True)] == [len(delays), good, len(delays)]


def test_backfills_and_later_attempts_owe_no_start():
    before = counted("high")
    measure_starts(
        [
            begun(Lane.HIGH, 1, origin="backfill"),
            begun(Lane.HIGH, 1, attempt=2),
            begun(Lane.HIGH, 1, losses=1),
        ],
        OBJECTIVES,
    )
    after = counted("high")
    # The instant of a backfill counts as a delay as ever.
    assert [b - a for a, b in zip(before, after, strict=True)] == [0, 0, 1]
