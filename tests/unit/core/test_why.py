"""Why has it not run: the order of answers, their sentences, and that no answer lacks anything."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from string import Formatter
from typing import Any
from uuid import UUID

import pytest

from noonmark.core.planning.promotion import GateLimit
from noonmark.core.states import Lane, Origin, RunState, SkipReason, WaitReason
from noonmark.core.transitions import TERMINAL
from noonmark.core.why.answers import (
    REMEDIES,
    WITHOUT_WORKER,
    Blocker,
    Weight,
    answer,
    counted,
    lasting,
    ranked,
)
from noonmark.core.why.facts import (
    Bounds,
    Facts,
    GateFacts,
    JobFacts,
    KafkaAway,
    LaneBacklog,
    PathFacts,
    PoolFacts,
    RoleFacts,
    RunFacts,
    ScheduleFacts,
    SkippedInstant,
    TimerFacts,
    WorkflowFacts,
)
from noonmark.core.why.jobs import explain, lane_in_question, without_errors
from noonmark.core.workflows.definition import Definition

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
JOB_ID, RUN_ID, OTHER_ID, KEY = (UUID(int=n) for n in range(1, 5))


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


JOB = JobFacts(
    id=JOB_ID, namespace="shop", name="tick", kind="python", handler="tick", lane=1, pool="default", shard=0,
    schedule=None, overlap=None, state="active", state_reason=None, paused_at=None, paused_by=None,
    pauses_itself=False, paused_actor=None, updated_at=ago(60), namespace_paused_at=None,
    namespace_pause_reason=None, namespace_actor=None, max_in_flight=None, pool_known=True, zone_data="2026a",
)  # fmt: skip
RUN = RunFacts(
    id=RUN_ID, job_id=JOB_ID, scheduled_for=ago(20), last_scheduled_for=None, state="queued", reason=None,
    attempt=0, instants=1, lane=1, pool="default", shard=0, namespace="shop", queued_at=ago(20),
    started_at=None, finished_at=None, start_by=None, owner=None, error=None, waiting_since=None, key=None,
    limit_name=None, limit_key=None, retry_at=None, report_until=None, unsent_since=None, host=None, pid=None,
    beat_at=None,
)  # fmt: skip
ALIVE = RoleFacts(1, NOW)
GONE = RoleFacts(0, ago(30))
WELL = PathFacts(ALIVE, ALIVE, PoolFacts(2, NOW, 3))


def facts(**given: Any) -> Facts:
    return Facts(**{"now": NOW, "job": JOB, "path": WELL, "zone_data": "2026a", **given})


def run(**given: Any) -> RunFacts:
    return RUN._replace(**given)


def waiting(reason: WaitReason, **given: Any) -> RunFacts:
    return run(state="waiting", reason=reason.value, waiting_since=ago(20), key=KEY, queued_at=None, **given)


def ended(state: RunState, reason: str | None = None, **given: Any) -> RunFacts:
    return run(state=state.value, reason=reason, finished_at=ago(5), **given)


def codes(known: Facts) -> list[Blocker]:
    return [one.code for one in explain(known)]


def blocking(known: Facts) -> list[Blocker]:
    return [one.code for one in explain(known) if one.weight is Weight.BLOCKS]


def first(known: Facts) -> str:
    return explain(known)[0].sentence


# -- the vocabulary --------------------------------------------------------------------------------------


def test_every_answer_has_something_to_do_about_it():
    assert set(REMEDIES) == set(Blocker)
    assert [code for code, remedy in REMEDIES.items() if not remedy.endswith(".")] == []


def test_what_blocks_stands_before_what_only_tells_and_each_is_told_once():
    adds = answer(Blocker.NO_WORKER, "later", weight=Weight.ADDS, pool="p")
    states = answer(Blocker.SUCCEEDED, "done")
    blocks = answer(Blocker.RETRYING, "retries", run="r")
    earlier = answer(Blocker.NO_WORKER, "now", pool="p")

    assert [one.sentence for one in ranked([adds, states, blocks])] == ["retries", "done", "later"]
    assert [one.sentence for one in ranked([adds, states, blocks, earlier])] == ["now", "retries", "done"]


def test_a_fact_that_is_not_known_is_left_out_and_shown_as_a_dash_in_the_remedy():
    made = answer(Blocker.NO_WORKER_FOR_HANDLER, "none", pool="default", handler=None)

    assert made.facts == {"pool": "default"}
    assert "registers -;" in made.remedy


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(-1, "0.0 s"), (3.26, "3.3 s"), (119, "119.0 s"), (600, "10 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_durations_are_told_in_the_unit_that_reads_best(seconds, told):
    assert lasting(seconds) == told


def test_one_is_no_plural():
    assert [counted(number, "run") for number in (0, 1, 2000)] == ["0 runs", "1 run", "2,000 runs"]


# -- every answer there is -------------------------------------------------------------------------------

FULL = GateFacts(GateLimit(1), 1, 0.0, 2, [run(id=OTHER_ID, state="running", owner=7, started_at=ago(90))])
SLOW = GateFacts(GateLimit(None, 0.1, 1.0), 0, 0.5, 1)
DUE = TimerFacts(ago(20), ago(20), place=False, zoned=True)
LATER = TimerFacts(NOW + timedelta(hours=1), NOW + timedelta(hours=1), place=False, zoned=False)
HELD = TimerFacts(ago(20), None, place=False, zoned=False)
OPEN = run(state="running", owner=-1, pool="$workflow", started_at=ago(9))
NO_TASKS: Any = (Definition([]), [], b"", b"")
JAMMED = WELL._replace(unsent=30_000, oldest_unsent_at=ago(60))


def job(**given: Any) -> dict[str, Any]:
    return {"job": JOB._replace(**given)}


def way(**given: Any) -> PathFacts:
    return WELL._replace(**given)


CASES: list[tuple[Blocker, dict[str, Any]]] = [
    (Blocker.JOB_CANCELLED, job(state="cancelled")),
    (Blocker.JOB_BROKEN, job(state="broken", state_reason="cannot be planned")),
    (Blocker.JOB_PAUSED_ITSELF, job(state="paused", paused_by="job", paused_at=ago(9), pauses_itself=True)),
    (Blocker.JOB_PAUSED, {**job(state="paused", paused_by="job", paused_at=ago(9)), "timer": HELD}),
    (Blocker.NAMESPACE_PAUSED, job(state="paused", paused_by="namespace", namespace_paused_at=ago(9))),
    (Blocker.NAMESPACE_PAUSED, job(state="paused", paused_by="namespace", paused_at=ago(9))),
    (Blocker.HELD, {"run": OPEN, "workflow": WorkflowFacts(RUN_ID, "running", *NO_TASKS, ago(9))}),
    (Blocker.TIMER_MISSING, {"timer_missing": True}),
    (Blocker.TIMER_WRONG, {"timer": LATER._replace(fault="its timer never fires")}),
    (Blocker.RUN_STRANDED, {"run": run(state="retrying", fault="no_timer")}),
    (Blocker.START_DEADLINE, {"run": run(start_by=ago(1))}),
    (Blocker.START_DEADLINE, {"run": ended(RunState.SKIPPED, "start_deadline")}),
    (Blocker.UNDELIVERABLE, {"run": waiting(WaitReason.UNDELIVERABLE, error="no topic")}),
    (Blocker.OVERLAP, {"run": waiting(WaitReason.OVERLAP), "gates": {RUN_ID: FULL}}),
    (Blocker.LIMIT, {"run": waiting(WaitReason.LIMIT, limit_name="api"), "gates": {RUN_ID: FULL}}),
    (Blocker.RATE_LIMIT, {"run": waiting(WaitReason.LIMIT, limit_name="api"), "gates": {RUN_ID: SLOW}}),
    (Blocker.NAMESPACE_CAP, {"run": waiting(WaitReason.FAIRNESS), "gates": {RUN_ID: FULL}}),
    (Blocker.TRIGGER_STOPPED, {"timer": DUE, "path": way(trigger=GONE)}),
    (Blocker.TRIGGER_STOPPED, {"run": waiting(WaitReason.LIMIT), "path": way(trigger=GONE)}),
    (Blocker.DISPATCHER_STOPPED, {"run": run(unsent_since=ago(1)), "path": way(dispatcher=GONE)}),
    (Blocker.DISPATCHER_STOPPED, {"timer": DUE, "path": JAMMED._replace(dispatcher=GONE)}),
    (Blocker.DISPATCHER_BEHIND, {"run": run(unsent_since=ago(20))}),
    (Blocker.DISPATCHER_BEHIND, {"timer": DUE, "path": JAMMED}),
    (Blocker.ZONE_DATA, {"timer": DUE, "zone_data": "2026b"}),
    (Blocker.ZONE_DATA, {"timer": DUE, **job(zone_data=None)}),
    (Blocker.TRIGGER_BEHIND, {"timer": DUE}),
    (Blocker.NO_SUCH_POOL, {"run": RUN, **job(pool_known=False)}),
    (Blocker.NO_WORKER, {"run": RUN, "path": way(pool=PoolFacts(0, None, 0))}),
    (Blocker.NO_WORKER_FOR_KIND, {"run": RUN, "path": way(pool=PoolFacts(1, NOW, 0, "no grpc", "kind"))}),
    (Blocker.NO_WORKER_FOR_HANDLER, {"run": RUN, "path": way(pool=PoolFacts(1, NOW, 0, "no x", "handler"))}),
    (Blocker.MESSAGE_LOST, {"run": RUN, "path": way(passed_until=ago(5))}),
    (Blocker.KAFKA_AWAY, {"run": RUN, "backlog": KafkaAway("timed out")}),
    (Blocker.LANE_BACKLOG, {"run": RUN, "backlog": LaneBacklog(40, 12.0)}),
    (Blocker.LANE_BACKLOG, {"run": RUN, "backlog": LaneBacklog(1, None)}),
    (Blocker.WORKERS_BUSY, {"run": RUN, "backlog": LaneBacklog(0, None)}),
    (Blocker.WORKER_LOST, {"run": run(queued_at=ago(5), losses=1, lost_at=ago(5), lost_worker=7, lost_attempt=1)}),
    (Blocker.RETRYING, {"run": run(state="retrying", attempt=1, retry_at=NOW + timedelta(seconds=5))}),
    (Blocker.CANCELLING, {"run": run(state="cancelling", owner=7, started_at=ago(9), host="h", pid=1)}),
    (Blocker.CALLBACK, {"run": run(state="running", owner=0, started_at=ago(9), report_until=NOW)}),
    (Blocker.WAITS_FOR_TASKS, {"run": OPEN}),
    (Blocker.SKIPPED_OVERLAP, {"runs": [ended(RunState.SKIPPED, "overlap")]}),
    (Blocker.MISFIRED, {"run": ended(RunState.SKIPPED, "misfired")}),
    (Blocker.COALESCED, {"run": ended(RunState.SKIPPED, "coalesced")}),
    (Blocker.LOOK_BACK, {"run": ended(RunState.SKIPPED, "look_back")}),
    (Blocker.SKIPPED_PAUSED, {"run": ended(RunState.SKIPPED, "paused")}),
    (Blocker.SKIPPED_CANCELLED, {"run": ended(RunState.SKIPPED, "cancelled")}),
    (Blocker.UPSTREAM_FAILED, {"run": ended(RunState.SKIPPED, "upstream_failed")}),
    (Blocker.UPSTREAM_SKIPPED, {"run": ended(RunState.SKIPPED, "upstream_skipped")}),
    (Blocker.NOT_NEEDED, {"run": ended(RunState.SKIPPED, "not_needed")}),
    (Blocker.CONDITION, {"run": ended(RunState.SKIPPED, "condition")}),
    (Blocker.DEAD, {"run": ended(RunState.DEAD, "retries_exhausted", attempt=3, error="boom")}),
    (Blocker.UNKNOWN, {"run": ended(RunState.UNKNOWN, "lost")}),
    (Blocker.NO_NEXT_INSTANT, {"timer": HELD._replace(place=True), "schedule": ScheduleFacts(calendars=["x"])}),
    (Blocker.SCHEDULE_ENDED, {**job(state="completed"), "schedule": ScheduleFacts(over=True, end=ago(9))}),
    (Blocker.SCHEDULE_ENDED, {**job(state="completed"), "schedule": ScheduleFacts(over=True)}),
    (Blocker.MAX_RUNS, {**job(state="completed"), "schedule": ScheduleFacts(max_runs=3)}),
    (Blocker.ON_ITS_WAY, {"timer": DUE._replace(fires_at=ago(1))}),
    (Blocker.ON_ITS_WAY, {"run": run(queued_at=ago(1), unsent_since=ago(1))}),
    (Blocker.ON_ITS_WAY, {"run": run(queued_at=ago(1))}),
    (Blocker.ON_ITS_WAY, {"run": waiting(WaitReason.LIMIT)}),
    (Blocker.RUNNING, {"run": run(state="running", owner=7, started_at=ago(9), host="h", pid=1)}),
    (Blocker.JITTER, {"timer": LATER._replace(at=ago(9))}),
    (Blocker.CALENDAR, {"timer": LATER, "schedule": ScheduleFacts(cut_off=[SkippedInstant(NOW, "closed", calendar=True)])}),
    (Blocker.CLOCK_CHANGE, {"timer": LATER, "schedule": ScheduleFacts(cut_off=[SkippedInstant(NOW, "gap", calendar=False)])}),
    (Blocker.NOT_DUE, {"timer": LATER}),
    (Blocker.CANCELLED, {"run": ended(RunState.CANCELLED)}),
    (Blocker.DISCARDED, {"run": ended(RunState.DISCARDED, "by_handler")}),
    (Blocker.SUCCEEDED, {"run": ended(RunState.SUCCEEDED, attempt=1)}),
    (Blocker.NOTHING_LEFT, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "given"), CASES, ids=lambda one: one.value if isinstance(one, Blocker) else ""
)
def test_each_is_named_first_with_all_that_its_remedy_speaks_of(code, given):
    found = explain(facts(**given))[0]

    assert found.code is code
    named = {name for _, name, _, _ in Formatter().parse(REMEDIES[code]) if name}
    assert named <= found.facts.keys()
    assert found.sentence[0].islower() or found.sentence[0].isdigit() or found.sentence.startswith("Kafka")
    assert not found.sentence.endswith(".")


def test_no_answer_is_without_a_case():
    # Claims are held back by a relay that is behind, which is always named before it.
    assert set(Blocker) - {code for code, _ in CASES} == {Blocker.CLAIMS_HELD_BACK}
    assert {
        SkipReason(one.reason)
        for _, given in CASES
        for one in (given.get("run"), *given.get("runs", ()))
        if one is not None and one.state == "skipped"
    } == set(SkipReason)


# -- what goes before what -------------------------------------------------------------------------------


def test_claims_that_are_held_back_come_after_the_dispatcher_that_holds_them():
    assert codes(facts(timer=DUE, path=JAMMED))[:2] == [Blocker.DISPATCHER_BEHIND, Blocker.CLAIMS_HELD_BACK]


def test_a_relay_within_its_bounds_holds_nothing_back():
    path = way(unsent=30_000, oldest_unsent_at=ago(60))
    assert codes(facts(timer=DUE, path=path, bounds=Bounds(61.0, 30_001)))[0] is Blocker.TRIGGER_BEHIND


def test_a_full_limit_comes_before_a_trigger_that_is_away_and_a_free_one_does_not():
    waits = waiting(WaitReason.LIMIT, limit_name="api")
    path = way(trigger=GONE)
    free = FULL._replace(held=0)

    assert blocking(facts(run=waits, gates={RUN_ID: FULL}, path=path)) == [
        Blocker.LIMIT,
        Blocker.TRIGGER_STOPPED,
    ]
    assert blocking(facts(run=waits, gates={RUN_ID: free}, path=path)) == [Blocker.TRIGGER_STOPPED]


def test_an_unsent_message_comes_before_the_workers_that_are_missing_too():
    path = way(dispatcher=GONE, pool=PoolFacts(0, None, 0))
    assert blocking(facts(run=run(unsent_since=ago(1)), path=path)) == [
        Blocker.DISPATCHER_STOPPED,
        Blocker.NO_WORKER,
    ]


def test_what_will_be_missing_when_a_job_comes_due_is_told_and_does_not_lead():
    path = way(trigger=GONE, pool=PoolFacts(0, None, 0))
    answers = explain(facts(timer=LATER, path=path))

    assert [(one.code, one.weight) for one in answers] == [
        (Blocker.NOT_DUE, Weight.STATES),
        (Blocker.TRIGGER_STOPPED, Weight.ADDS),
        (Blocker.NO_WORKER, Weight.ADDS),
    ]


def test_a_run_that_workers_reject_names_what_they_lack_before_its_retries():
    path = way(pool=PoolFacts(1, NOW, 0, "no x", "handler"))
    retrying = run(state="retrying", attempt=0, retry_at=NOW + timedelta(seconds=5), error="no handler x")

    assert blocking(facts(run=retrying, path=path)) == [Blocker.NO_WORKER_FOR_HANDLER, Blocker.RETRYING]
    assert codes(facts(run=ended(RunState.DEAD, "rejected"), path=path)) == [
        Blocker.NO_WORKER_FOR_HANDLER,
        Blocker.DEAD,
    ]


def test_an_attempt_that_was_given_back_has_no_number():
    given = {"attempt": 0, "error": "no handler x"}
    (retrying,) = explain(facts(run=run(state="retrying", retry_at=NOW + timedelta(seconds=5), **given)))
    (dead,) = explain(facts(run=ended(RunState.DEAD, "rejected", **given)))

    assert retrying.sentence.startswith("it has to be tried again: no handler x; the next one")
    assert "(rejected): no handler x" in dead.sentence
    assert "attempt" not in dead.sentence


@pytest.mark.parametrize(
    "lacks", [{"pool": PoolFacts(0, None, 0)}, {"pool": PoolFacts(1, NOW, 0, "no x", "kind")}]
)
@pytest.mark.parametrize(
    "given",
    [
        {"timer": LATER},
        *({"run": ended(state)} for state in TERMINAL | {RunState.DEAD} if state is not RunState.SKIPPED),
    ],
)
def test_what_no_worker_can_run_is_not_to_be_triggered(lacks, given):
    assert not any("job trigger" in one.remedy for one in explain(facts(path=way(**lacks), **given)))


def test_every_answer_that_speaks_of_a_trigger_has_other_words_where_no_worker_can_run_the_job():
    assert {code for code, remedy in REMEDIES.items() if "job trigger" in remedy} == set(WITHOUT_WORKER)


def test_a_retry_that_is_due_is_the_triggers_business():
    due = run(state="retrying", attempt=1, retry_at=ago(1))
    assert codes(facts(run=due, path=way(trigger=GONE)))[0] is Blocker.TRIGGER_STOPPED


def test_a_message_that_is_tried_again_and_due_names_the_trigger_second():
    due = waiting(WaitReason.UNDELIVERABLE, error="no topic", retry_at=ago(9))
    assert blocking(facts(run=due, path=way(trigger=GONE))) == [
        Blocker.UNDELIVERABLE,
        Blocker.TRIGGER_STOPPED,
    ]


# -- a job as a whole ------------------------------------------------------------------------------------


def test_only_the_skipped_instants_after_the_last_other_run_are_told():
    skipped = [ended(RunState.SKIPPED, "misfired", id=UUID(int=n), scheduled_for=ago(n)) for n in (20, 80)]
    done = ended(RunState.SUCCEEDED, attempt=1, scheduled_for=ago(200))
    older = ended(RunState.SKIPPED, "misfired", scheduled_for=ago(300))

    found = explain(facts(runs=[*skipped, done, older], timer=LATER))

    assert (found[0].code, found[0].facts["instants"]) == (Blocker.MISFIRED, 2)
    assert codes(facts(runs=[done, older], timer=LATER)) == [Blocker.NOT_DUE, Blocker.SUCCEEDED]


def test_a_summary_counts_with_all_its_instants():
    summary = ended(
        RunState.SKIPPED, "look_back", scheduled_for=ago(900), last_scheduled_for=ago(60), instants=15
    )
    assert first(facts(run=summary)) == (
        "the last 15 instants, from 2026-06-01T11:45:00Z to 2026-06-01T11:59:00Z, were skipped: look_back:"
        " it was older than the job's misfire.look_back_seconds"
    )


def test_a_skipped_trigger_is_no_instant_of_the_schedule():
    triggered = ended(RunState.SKIPPED, "overlap", origin="manual", scheduled_for=ago(20))
    planned = ended(RunState.SKIPPED, "overlap", scheduled_for=ago(80))

    found = explain(facts(runs=[triggered, planned], timer=LATER))

    assert found[0].sentence == (
        "the run triggered at 2026-06-01T11:59:40Z was skipped: overlap: another run of the job was unfinished"
    )
    assert found[0].facts["instants"] == 1
    assert "trigger it again" in found[0].remedy


@pytest.mark.parametrize("origin", list(Origin))
def test_skipped_runs_of_every_origin_are_explained(origin: Origin):
    skipped = [
        ended(RunState.SKIPPED, "overlap", id=UUID(int=n), origin=origin.value, scheduled_for=ago(n))
        for n in (20, 80)
    ]
    assert first(facts(run=skipped[0])).endswith(
        "was skipped: overlap: another run of the job was unfinished"
    )
    assert explain(facts(runs=skipped, timer=LATER))[0].facts["instants"] == 2


def test_the_run_that_skips_others_is_named_while_it_is_unfinished():
    holder = run(id=OTHER_ID, state="retrying", started_at=ago(90))
    skipped = ended(RunState.SKIPPED, "overlap")

    found = explain(facts(runs=[skipped, holder], slot=holder))

    assert found[0].code is Blocker.RETRYING
    assert "holder" in next(one.facts for one in found if one.code is Blocker.SKIPPED_OVERLAP)
    assert "holder" not in explain(facts(run=skipped, slot=holder._replace(state="succeeded")))[0].facts


def test_of_several_waiting_runs_the_oldest_speaks():
    runs = [waiting(WaitReason.LIMIT, id=UUID(int=n), limit_name="api") for n in (9, 8)]
    found = explain(facts(runs=runs, gates={one.id: FULL for one in runs}))

    assert found[0].facts["run"] == UUID(int=8)
    assert len(found) == 1


def test_a_paused_job_with_a_run_under_way_tells_both():
    running = run(state="running", owner=7, started_at=ago(9))
    paused = JOB._replace(state="paused", paused_by="job", paused_at=ago(5))

    assert codes(facts(job=paused, runs=[running], timer=HELD)) == [Blocker.JOB_PAUSED, Blocker.RUNNING]


def test_a_pause_of_job_and_namespace_names_both():
    paused = JOB._replace(state="paused", paused_by="job", paused_at=ago(5), namespace_paused_at=ago(3))
    assert codes(facts(job=paused, timer=HELD)) == [Blocker.JOB_PAUSED, Blocker.NAMESPACE_PAUSED]


def test_a_run_whose_job_is_gone_is_answered_from_the_run_alone():
    assert codes(facts(job=None, run=ended(RunState.SUCCEEDED, attempt=1))) == [Blocker.SUCCEEDED]


def test_the_remedy_of_no_worker_names_what_workers_of_python_jobs_need():
    told = answer(Blocker.NO_WORKER, "later", pool="reports").remedy
    assert "`noonmark worker --pool reports`" in told
    assert "`--handlers MODULE` and `--path FOLDER`" in told


# -- figures ---------------------------------------------------------------------------------------------


def test_the_turn_at_a_rate_counts_those_before():
    known = facts(run=waiting(WaitReason.LIMIT, limit_name="api"), gates={RUN_ID: SLOW})
    # One stands before it; half a token is there, and one comes every ten seconds.
    assert explain(known)[0].facts["until"] == NOW + timedelta(seconds=15)


def test_holders_are_named_and_the_others_counted():
    holders = [run(id=UUID(int=n), state="running") for n in range(10, 15)]
    gate = GateFacts(GateLimit(8), 8, 0.0, 0, holders)
    told = first(facts(run=waiting(WaitReason.LIMIT, limit_name="api", limit_key="k"), gates={RUN_ID: gate}))

    assert "for limit api/k: 8 of 8 slots are in use by runs " in told
    assert "and 5 more; no run ahead of it in the queue" in told


@pytest.mark.parametrize("reason", [WaitReason.LIMIT, WaitReason.FAIRNESS])
def test_holders_that_a_pause_holds_are_named_with_the_command_that_says_what_to_resume(reason: WaitReason):
    holders = [
        run(id=UUID(int=10), state="running"),
        run(id=UUID(int=11), state="waiting", reason="paused"),
    ]
    gate = GateFacts(GateLimit(2), 2, 0.0, 0, holders)

    told = explain(facts(run=waiting(reason, limit_name="api"), gates={RUN_ID: gate}))[0]

    assert told.facts["paused"] == [UUID(int=11)]
    assert told.remedy.startswith(
        f"Runs of paused jobs keep their slots: `noonmark why {UUID(int=11)}` says what to resume."
    )
    if reason == WaitReason.LIMIT:
        assert f"{UUID(int=11)} (paused)" in told.sentence


def test_a_run_that_runs_again_is_told_with_the_worker_it_lost_before():
    known = run(
        state="running", owner=9, started_at=ago(3), losses=2, lost_at=ago(5), lost_worker=7, lost_attempt=2,
        attempt=2,
    )  # fmt: skip

    running, lost = explain(facts(run=known))

    assert running.sentence == "it has been running on worker 9 since 2026-06-01T11:59:57Z, attempt 2"
    assert lost.sentence == (
        "worker 7 was lost at 2026-06-01T11:59:55Z, in attempt 2, and the run has lost 2 workers;"
        " that attempt is running again"
    )
    assert lost.facts["worker"] == 7


def test_a_loss_that_release_0_2_recorded_has_no_number_of_the_worker():
    assert "its worker was lost at" in first(
        facts(run=run(queued_at=ago(5), losses=1, lost_at=ago(5), lost_attempt=1))
    )


def test_a_backlog_is_told_in_messages_and_in_age():
    assert first(facts(run=RUN, backlog=LaneBacklog(1240, 95.0))) == (
        "1,240 runs wait in lane normal of pool default, the oldest for 95.0 s;"
        " 2 workers of pool default are live, with 3 runs in flight"
    )


def test_kafka_is_asked_only_about_a_run_whose_message_it_has():
    assert lane_in_question(facts(run=RUN)) == ("default", Lane.NORMAL)
    assert lane_in_question(facts(runs=[RUN])) == ("default", Lane.NORMAL)
    assert lane_in_question(facts(run=run(unsent_since=NOW))) is None
    assert lane_in_question(facts(run=ended(RunState.SUCCEEDED))) is None


# -- what not everybody may read -------------------------------------------------------------------------


def test_texts_of_errors_are_taken_out_and_what_kafka_says_stays():
    itself = JOB._replace(state="paused", paused_by="job", pauses_itself=True, state_reason="secret")
    dead = ended(RunState.DEAD, "retries_exhausted", error="secret")
    parked = waiting(WaitReason.UNDELIVERABLE, error="no topic")

    for known in (
        facts(job=itself),
        facts(run=dead),
        facts(runs=[dead]),
        facts(job=itself, runs=[dead, parked]),
    ):
        assert "secret" not in str(explain(without_errors(known)))
    assert "no topic" in first(without_errors(facts(run=parked)))
    assert "secret" in first(replace(without_errors(facts()), run=dead))
