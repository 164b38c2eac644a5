import json

import pytest
from benchmarks.figures import Spread, percentile, total, with_ratios
from tests.unit.benchmarks import samples


@pytest.mark.parametrize(
    ("share", "expected"), [(0.01, 1), (0.5, 50), (0.505, 51), (0.99, 99), (0.991, 100), (1.0, 100)]
)
def test_a_percentile_is_a_value_that_was_measured(share: float, expected: int) -> None:
    assert percentile(list(range(1, 101)), share) == expected


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 0.0), ([1.0], 1.01)])
def test_a_percentile_that_does_not_exist_is_refused(values: list[float], share: float) -> None:
    with pytest.raises(ValueError, match=r"percentile|share"):
        percentile(values, share)


def test_a_spread_is_told_in_milliseconds_whatever_the_order() -> None:
    spread = Spread.of_seconds([0.003, 0.001, 0.002])
    assert spread == Spread(count=3, mean=2.0, p50=2.0, p95=3.0, p99=3.0, max=3.0)


def test_nothing_has_no_spread() -> None:
    assert Spread.of_seconds([]) is None


def test_the_benchmark_itself_is_not_part_of_a_total() -> None:
    assert total({"worker": 1.0, "postgres": 2.0, "kafka": 3.0, "benchmark": 100.0}) == 6.0


def test_claims_are_set_in_relation_to_the_smallest_backlog() -> None:
    claims = with_ratios([samples.claim(1_000_000, 12.0, 30.0), samples.claim(10_000, 10.0, 20.0)])
    assert [(one.ratio_ms, one.ratio_cpu) for one in claims] == [(1.2, 1.5), (1.0, 1.0)]


def test_the_json_holds_what_other_tools_read() -> None:
    shown = json.loads(json.dumps(samples.report().as_json()))
    assert {"runs", "runs_per_s", "cpu_us_per_run", "wal_bytes_per_run", "lost", "second_verdicts"} <= set(
        shown["burst"]
    )
    assert shown["open_loop"]["rate"] == 1000
    assert {"p50", "p99", "max"} <= set(shown["open_loop"]["lateness_ms"])
    assert [one["rate"] for one in shown["open_loops"]] == [100, 1000, 5000]
    assert {"submissions", "claim_backlog", "yardsticks", "machine", "settings_changed"} <= set(shown)


def test_without_the_window_at_a_thousand_per_second_there_is_no_open_loop_in_the_json() -> None:
    report = samples.report()
    report.open_loops = [samples.open_loop(100)]
    assert report.as_json()["open_loop"] is None
