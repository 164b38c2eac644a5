"""The demo's judgement: what it takes for as expected, and what not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urljoin
from uuid import UUID

import httpx
import pytest

from noonmark.cli.demo.ledger import Sent, Snapshot, assess
from noonmark.cli.demo.plan import INTERVAL_RUNS, SUBMISSIONS, Scene, Submission
from noonmark.cli.demo.repair import Repair, TaskAccount, differences
from noonmark.cli.demo.target import REPAIRED_LATER, Target
from noonmark.schemas.jobs.job import parse_job
from noonmark.schemas.problems.refusal import Refused

EXAMPLES = Path(__file__).parents[3] / "examples"
DUE = datetime(2026, 6, 1, 9, 0, tzinfo=UTC)
ID = UUID(int=7)


class NobodyCalled:
    """A target that was never called."""

    def calls_of(self, run_id):
        return []


def run(state="succeeded", attempt=1, **more):
    return {
        "id": ID, "lane": "normal", "state": state, "attempt": attempt, "started_at": DUE + timedelta(seconds=3),
        "scheduled_for": DUE, "error": None, "reason": None, **more,
    }  # fmt: skip


def judge(submission, *, passed=True, redriven=(), **snapshot):
    sent = Sent(submission, "e1", "job", "noonmark.submissions/0/0")
    return assess(sent, Snapshot(**snapshot), passed=passed, target=NobodyCalled(), redriven=redriven)


def accepted(runs, attempts=None):
    return {
        "received": frozenset({"e1"}),
        "jobs": {"job": [{}]},
        "runs": {"job": runs},
        "attempts": attempts or {},
    }


def test_a_run_that_ended_as_it_should_is_settled_without_fault():
    account = judge(Submission("x", "x.json"), **accepted([run()]))
    assert (account.verdict, account.is_settled, account.faults) == ("accepted", True, [])
    assert account.runs[0].delay_seconds == 3


def test_the_delay_is_that_of_the_first_attempt():
    failed = {ID: [{"started_at": DUE + timedelta(seconds=1), "error": "503"}]}
    account = judge(Submission("x", "x.json", attempts=2), **accepted([run(attempt=2)], failed))
    assert account.runs[0].delay_seconds == 1
    assert account.runs[0].note == "503"
    assert account.faults == []


def test_a_run_that_goes_on_is_not_settled():
    assert not judge(Submission("x", "x.json"), **accepted([run("retrying")])).is_settled


def test_a_missing_run_is_not_settled_and_named():
    account = judge(Submission("x", "x.json", runs=2), **accepted([run()]))
    assert not account.is_settled
    assert account.faults == ["expected 2 runs, found 1"]


def test_one_run_too_many_is_a_fault():
    account = judge(Submission("x", "x.json"), **accepted([run(), run()]))
    assert account.is_settled
    assert account.faults == ["expected 1 runs, found 2"]


def test_another_verdict_than_expected_is_a_fault():
    account = judge(Submission("x", "x.json"), **accepted([run("dead", 4)]))
    assert account.faults == ["run 1 expected to be succeeded after 1 attempts, is dead after 4"]


def test_an_event_that_nobody_saw_is_a_fault():
    account = judge(Submission("x", "x.json"))
    assert not account.is_settled
    assert account.faults == ["expected to be accepted, is not seen by intake"]


def test_a_rejection_must_point_at_what_is_wrong():
    rejected = {"e1": {"errors": [{"pointer": "/data/a", "message": "is bad"}], "reason": "invalid"}}
    wanted = Submission("x", "x.json", verdict="rejected", runs=0, pointers=("/data/a", "/data/b"))
    account = judge(wanted, rejected=rejected)
    assert (account.verdict, account.problems) == ("rejected", ["/data/a: is bad"])
    assert account.faults == ["the rejection does not name /data/b"]


def test_a_duplicate_counts_once_intake_is_past_it():
    wanted = Submission("x", "x.json", verdict="duplicate", runs=0, repeats="first")
    assert not judge(wanted, passed=False, **accepted([run()])).is_settled
    account = judge(wanted, passed=True, **accepted([run()]))
    assert (account.verdict, account.is_settled, account.faults) == ("duplicate", True, [])


def test_a_second_job_of_a_duplicate_is_a_fault():
    wanted = Submission("x", "x.json", verdict="duplicate", runs=0, repeats="first")
    account = judge(wanted, **{**accepted([]), "jobs": {"job": [{}, {}]}})
    assert account.faults == ["expected 1 job of this name, found 2"]


def test_a_run_that_the_target_never_saw_is_a_fault():
    account = judge(Submission("x", "x.json", calls_target=True), **accepted([run()]))
    assert account.faults == [f"run {ID} is in the target's log 0 times instead of once"]


FLOW = Submission("x", "x.json", tasks={"a": ("dead", "succeeded"), "b": ("skipped (empty)", "succeeded")})


def test_a_workflow_that_is_to_be_redriven_is_settled_by_its_second_verdict():
    assert not judge(FLOW, **accepted([run("dead")])).is_settled
    # It would also be wrong if it succeeded at once.
    assert not judge(FLOW, **accepted([run()])).is_settled
    assert not judge(FLOW, redriven={str(ID)}, **accepted([run("running")])).is_settled
    account = judge(FLOW, redriven={str(ID)}, **accepted([run()]))
    assert (account.is_settled, account.faults, account.runs[0].delay_seconds) == (True, [], None)
    again = judge(FLOW, redriven={str(ID)}, **accepted([run("dead")]))
    assert (again.is_settled, len(again.faults)) == (True, 1)


def test_tasks_are_compared_with_both_of_their_states():
    good = TaskAccount("b", "skipped (empty)", "succeeded", ran_again=True)
    assert differences(FLOW, [TaskAccount("a", "dead", "succeeded", ran_again=True), good]) == []
    assert differences(FLOW, [TaskAccount("a", "dead", "dead", ran_again=True), good]) == [
        "task a expected to be dead and then succeeded, is dead and then dead"
    ]
    assert differences(FLOW, [good]) == ["task a expected to be dead and then succeeded, is missing"]


def test_a_run_is_redriven_once_and_only_if_it_is_dead(tmp_path):
    calls = []

    class Repaired:
        def repair(self):
            calls.append("repair")

    class Dead:
        dead_letters = property(lambda self: self)

        def redrive(self, chosen):
            calls.append(chosen)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    repair = Repair("http://127.0.0.1:1", tmp_path / "key", "demo", Repaired())
    repair._client = Dead
    assert not repair.consider(FLOW, [run("running")])
    assert not repair.consider(Submission("x", "x.json"), [run("dead")])
    assert repair.consider(FLOW, [run("dead")])
    assert not repair.consider(FLOW, [run("dead")])
    assert calls == ["repair", {"runs": [str(ID)]}]
    assert repair.redriven == {str(ID)}


def test_one_path_of_the_target_fails_until_it_is_repaired(tmp_path):
    target = Target(tmp_path / "target.log")
    try:
        broken = urljoin(target.url, REPAIRED_LATER)
        assert [httpx.post(one).status_code for one in (target.url, broken)] == [200, 503]
        target.repair()
        assert [httpx.post(one).status_code for one in (target.url, broken)] == [200, 200]
    finally:
        target.close()


@pytest.mark.parametrize("second", [0, 30, 56, 57, 58, 59])
def test_the_cron_jobs_minute_leaves_time_to_be_taken_in_and_is_not_far(second):
    now = DUE + timedelta(seconds=second, milliseconds=1)
    scene = Scene.at(now, target_url="http://t", namespace="demo")
    ahead = (scene.minute - now).total_seconds()
    assert 2 < ahead < 63
    assert (scene.minute.second, scene.minute.microsecond) == (0, 0)


def test_every_example_is_part_of_the_demo_in_all_three_lanes():
    files = {path.name for path in (EXAMPLES / "submissions").glob("*.json")}
    assert files == {submission.file for submission in SUBMISSIONS}


def test_all_examples_but_the_invalid_one_are_job_documents():
    scene = Scene.at(datetime.now(UTC), target_url="http://127.0.0.1:1/x", namespace="demo")
    lanes = set()
    for submission in SUBMISSIONS:
        document = submission.document(EXAMPLES, scene)
        try:
            spec = parse_job(document, now=scene.now, ledger_floor=DUE)
        except Refused:
            assert submission.verdict == "rejected"
            continue
        assert submission.verdict != "rejected"
        lanes.add(spec.lane.label)
        if submission.title == "interval":
            assert spec.schedule is not None
            assert len(spec.schedule.between(scene.now, scene.now + timedelta(hours=1), 100)) == INTERVAL_RUNS
    assert lanes == {"high", "normal", "low"}
