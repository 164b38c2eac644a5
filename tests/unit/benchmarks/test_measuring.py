import json
from datetime import UTC, datetime, timedelta

import pytest
from benchmarks.load import PAYLOAD_BYTES, Load, at_once, document, evenly, far_cron
from benchmarks.plan import FULL_SIZE, plan_of
from benchmarks.stack import sum_of_counter, wait_for
from benchmarks.verdicts import Verdicts

from noonmark.core.schedules.schedule import parse_schedule
from noonmark.schemas.events.lifecycle import SETTLED

EXPOSITION = """\
# TYPE noonmark_runs_settled_total counter
noonmark_runs_settled_total{lane="low",state="succeeded"} 40.0
noonmark_runs_settled_total{lane="high",state="dead"} 2.0
noonmark_runs_settled_created{lane="low",state="succeeded"} 1.7e+09
plain_total 7.0
"""


def event(event_id: str, *outcomes: tuple[str, str]) -> dict:
    told = [{"run_id": run, "namespace": "mine", "state": state} for run, state in outcomes]
    return {"id": event_id, "type": SETTLED, "data": {"outcomes": told}}


def test_a_counter_is_added_up_over_its_labels() -> None:
    assert sum_of_counter(EXPOSITION, "noonmark_runs_settled_total") == 42
    assert sum_of_counter(EXPOSITION, "noonmark_runs_settled_total", lane="low") == 40
    assert sum_of_counter(EXPOSITION, "plain_total") == 7
    assert sum_of_counter(EXPOSITION, "absent_total") == 0


def test_waiting_ends_when_the_count_stands_still() -> None:
    assert not wait_for(lambda: 1.0, 2, timeout_seconds=60, stall_seconds=0.0, interval_seconds=0.0)


def test_two_terminal_events_of_a_run_are_a_second_verdict() -> None:
    verdicts = Verdicts()
    verdicts.add(event("a", ("run-1", "succeeded"), ("run-2", "dead")), "mine")
    verdicts.add(event("b", ("run-1", "succeeded")), "mine")
    assert (verdicts.runs, verdicts.second) == (2, 1)


def test_an_event_delivered_twice_is_one_event() -> None:
    verdicts = Verdicts()
    verdicts.add(event("a", ("run-1", "succeeded")), "mine")
    verdicts.add(event("a", ("run-1", "succeeded")), "mine")
    assert verdicts.second == 0


def test_retries_and_other_namespaces_are_no_verdicts() -> None:
    verdicts = Verdicts()
    verdicts.add(event("a", ("run-1", "retrying")), "mine")
    verdicts.add(event("b", ("run-1", "succeeded")), "yours")
    assert verdicts.runs == 0


def test_jobs_of_an_open_loop_are_due_at_even_distances() -> None:
    offsets = evenly(1000, 2)
    assert len(offsets) == 2000
    assert offsets[:2] == [0, 0.001]
    assert offsets[-1] == 1.999


def test_the_payload_has_the_size_that_the_comparison_with_others_prescribes() -> None:
    written = document(Load("bench", at_once(1)), "one", datetime(2030, 1, 1, tzinfo=UTC))
    assert len(json.dumps(written["payload"], separators=(",", ":"))) == PAYLOAD_BYTES


@pytest.mark.parametrize("hour", [0, 11, 12, 23])
def test_recurring_jobs_of_the_benchmark_do_not_fire_again_meanwhile(hour: int) -> None:
    now = datetime(2030, 1, 1, hour, 59, 58, tzinfo=UTC)
    following = parse_schedule(far_cron(now), created_at=now).next(now)
    assert following is not None
    assert following - now > timedelta(hours=11)


def test_a_small_size_shrinks_every_part() -> None:
    full, small = plan_of([]), plan_of(["--size", str(FULL_SIZE // 10)])
    assert (full.scaled(60_000), small.scaled(60_000)) == (60_000, 6000)
    assert (full.window(20), small.window(20)) == (20, 3)
    assert full.backlogs == (10_000, 1_000_000)


def test_a_large_size_leaves_the_other_parts_as_they_are() -> None:
    assert plan_of(["--size", "1000000"]).scaled(60_000) == 60_000


def test_a_setting_is_known_by_its_short_name() -> None:
    assert plan_of(["--set", "claim_pause_ms=5"]).settings == {"NOONMARK_CLAIM_PAUSE_MS": "5"}


@pytest.mark.parametrize("arguments", [["--set", "nonsense=1"], ["--parts", "burst,lunch"], ["--size", "0"]])
def test_what_cannot_be_measured_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        plan_of(arguments)
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err
