"""The checker finds every fault that is planted, and nothing where there is none."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.checker import Plan, check
from tests.support.evidence import Call, Evidence, Job, Run, Unpassed, Verdict

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(seconds=1)
MADE = NOON - timedelta(minutes=1)


def plan() -> Plan:
    return Plan.read(
        {
            "namespace": "shop",
            "source": "/tests/shop",
            "jobs": [
                {"name": "now", "instants": None, "ends": ["succeeded"]},
                {"name": "once", "instants": [NOON.isoformat()], "ends": ["succeeded"]},
                {
                    "name": "every",
                    "instants": [NOON.isoformat(), LATER.isoformat()],
                    "ends": ["succeeded", "skipped"],
                },
                {"name": "flaky", "instants": None, "ends": ["succeeded"]},
            ],
            "rejected": ["bad"],
        }
    )


def sound() -> Evidence:
    """What a sound system leaves: four jobs, five runs, one of them tried twice, one retaken when lost."""
    runs = [
        run("r1", "j-now", NOON),
        run("r2", "j-once", NOON),
        run("r3", "j-every", NOON),
        run("r4", "j-every", LATER, fence=2),
        run("r5", "j-flaky", NOON, fence=2, attempt=2),
    ]
    calls = [call(r, fence) for r in runs for fence in range(1, r.fence + 1)]
    return Evidence(
        jobs=[Job(f"j-{name}", name, "completed", MADE) for name in ("now", "once", "every", "flaky")],
        runs=runs,
        attempts={("r4", 1): "lost", ("r5", 1): "failed"},
        calls=calls,
        verdicts=[Verdict(f"e-{r.id}", r.id, r.state, r.fence) for r in runs],
        refused={"bad"},
        left_over={"outbox": 0, "slots": 0},
        passed=[("runs.low", 0, "r1", 1)],
        passed_events=[("submissions", 0, "bad"), ("submissions", 1, "good")],
        known_events={"good"},
    )


def run(name: str, job: str, at: datetime, *, fence: int = 1, attempt: int = 1, **other: object) -> Run:
    started_at = at + timedelta(milliseconds=5)
    made = Run(name, job, at, None, "schedule", "", "succeeded", None, attempt, fence, started_at)
    return made._replace(**other)


def call(of: Run, fence: int) -> Call:
    at = of.scheduled_for + timedelta(milliseconds=6 + fence)
    return Call(of.id, fence, 1, f"{of.job}/{of.scheduled_for}/schedule/", of.scheduled_for, at)


def edit_run(evidence: Evidence, name: str, **changes: object) -> None:
    evidence.runs = [r._replace(**changes) if r.id == name else r for r in evidence.runs]


def edit_calls(evidence: Evidence, name: str, **changes: object) -> None:
    evidence.calls = [c._replace(**changes) if c.run == name else c for c in evidence.calls]


def drop_run(e: Evidence) -> None:
    e.runs = [r for r in e.runs if r.id != "r4"]


def drop_job(e: Evidence) -> None:
    e.jobs.pop()


def drop_call(e: Evidence) -> None:
    e.calls = [c for c in e.calls if c.run != "r2"]


def drop_last_call_of_a_retaken_run(e: Evidence) -> None:
    e.calls = [c for c in e.calls if (c.run, c.fence) != ("r4", 2)]


def double_run(e: Evidence) -> None:
    e.runs.append(run("r9", "j-once", NOON))


def double_run_of_a_job_due_on_arrival(e: Evidence) -> None:
    e.runs.append(run("r9", "j-now", LATER))


def double_job(e: Evidence) -> None:
    e.jobs.append(Job("j-9", "now", "completed", MADE))


def call_twice_under_one_fence(e: Evidence) -> None:
    e.calls.append(e.calls[0])


def two_terminal_events(e: Evidence) -> None:
    e.verdicts.append(Verdict("e-other", "r1", "dead", 1))


def two_terminal_events_that_agree(e: Evidence) -> None:
    e.verdicts.append(Verdict("e-other", "r1", "succeeded", 1))


def shift_instant(e: Evidence) -> None:
    edit_run(e, "r2", scheduled_for=NOON + timedelta(milliseconds=1))
    edit_calls(e, "r2", scheduled_for=NOON + timedelta(milliseconds=1))


def swap_calls(e: Evidence) -> None:
    edit_calls(e, "r3", scheduled_for=LATER)
    edit_calls(e, "r4", scheduled_for=NOON)


def swap_runs(e: Evidence) -> None:
    edit_run(e, "r1", job="j-once")
    edit_run(e, "r2", job="j-now")


def start_early(e: Evidence) -> None:
    edit_run(e, "r2", started_at=NOON - timedelta(microseconds=1))


def call_early(e: Evidence) -> None:
    edit_calls(e, "r2", at=NOON - timedelta(microseconds=1))


def fall_back_to_an_old_fence(e: Evidence) -> None:
    e.calls.reverse()


def leave_unfinished(e: Evidence) -> None:
    edit_run(e, "r3", state="running")


def end_wrongly(e: Evidence) -> None:
    edit_run(e, "r5", state="dead")
    e.verdicts = [v if v.run != "r5" else v._replace(state="dead") for v in e.verdicts]


def never_announce(e: Evidence) -> None:
    e.verdicts.pop(0)


def announce_otherwise(e: Evidence) -> None:
    e.verdicts[0] = e.verdicts[0]._replace(state="cancelled")


def commit_past_a_queued_run(e: Evidence) -> None:
    edit_run(e, "r1", state="queued")


def commit_past_a_lost_event(e: Evidence) -> None:
    e.known_events.clear()


def swallow_a_bad_event(e: Evidence) -> None:
    e.refused.clear()


def refuse_a_good_event(e: Evidence) -> None:
    e.refused.add("good")


def call_for_nobody(e: Evidence) -> None:
    e.calls.append(e.calls[0]._replace(run="r0"))


def leave_rows(e: Evidence) -> None:
    e.left_over["outbox"] = 1


def leave_offsets(e: Evidence) -> None:
    e.unpassed.append(Unpassed("runs.low", 0, 3, 4))


PLANTED: list[tuple[Callable[[Evidence], None], str]] = [
    (drop_run, "lost"),
    (drop_job, "lost"),
    (drop_call, "lost"),
    (drop_last_call_of_a_retaken_run, "lost"),
    (double_run, "extra"),
    (double_run_of_a_job_due_on_arrival, "extra"),
    (double_job, "extra"),
    (call_twice_under_one_fence, "second_verdict"),
    (two_terminal_events, "second_verdict"),
    (two_terminal_events_that_agree, "second_verdict"),
    (shift_instant, "lost"),
    (shift_instant, "extra"),
    (swap_calls, "mistaken"),
    (swap_runs, "mistaken"),
    (start_early, "early"),
    (call_early, "early"),
    (fall_back_to_an_old_fence, "fence_fell"),
    (leave_unfinished, "unfinished"),
    (end_wrongly, "wrong_end"),
    (never_announce, "unannounced"),
    (announce_otherwise, "unannounced"),
    (commit_past_a_queued_run, "offset"),
    (commit_past_a_lost_event, "offset"),
    (swallow_a_bad_event, "not_refused"),
    (refuse_a_good_event, "refused"),
    (call_for_nobody, "extra"),
    (leave_rows, "left_over"),
    (leave_offsets, "left_over"),
]


def test_a_sound_system_has_no_findings_and_its_duplicate_is_listed() -> None:
    report = check(plan(), sound())
    assert report.findings == []
    assert report.duplicates == {"r4": [1, 2]}


@pytest.mark.parametrize(
    ("plant", "kind"), PLANTED, ids=[f"{plant.__name__}-{kind}" for plant, kind in PLANTED]
)
def test_a_planted_fault_is_found(plant: Callable[[Evidence], None], kind: str) -> None:
    evidence = sound()
    plant(evidence)
    assert kind in {finding.kind for finding in check(plan(), evidence).findings}


def test_an_event_that_the_relay_sent_twice_is_no_second_verdict() -> None:
    evidence = sound()
    evidence.verdicts.append(evidence.verdicts[0])
    assert check(plan(), evidence).findings == []


def test_instants_covered_by_a_summary_row_are_not_lost() -> None:
    evidence = sound()
    evidence.runs = [r for r in evidence.runs if r.job != "j-every"]
    evidence.runs.append(
        run("r3", "j-every", NOON, state="skipped", last_scheduled_for=LATER, started_at=None)
    )
    evidence.calls = [c for c in evidence.calls if c.run not in {"r3", "r4"}]
    evidence.verdicts = [v for v in evidence.verdicts if v.run not in {"r3", "r4"}]
    evidence.verdicts.append(Verdict("e-r3", "r3", "skipped", 1))
    assert check(plan(), evidence).findings == []


def test_partway_an_unfinished_run_is_nothing_to_report() -> None:
    evidence = sound()
    leave_unfinished(evidence)
    drop_call(evidence)
    leave_rows(evidence)
    assert check(plan(), evidence, partway=True).findings == []
