"""What `noonmark … list` and `… show` say about a database, run as users run them."""

import base64
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb
from tests.support.cli import call

from noonmark.core.calendars.calendar import Calendar
from noonmark.core.ids import uuid7_batch
from noonmark.store.documents.columns import NEVER

NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def noonmark(command_line, emptied_database, monkeypatch):
    """Runs the command in an empty folder against an empty database."""

    def run(*arguments, code=0, url=emptied_database):
        monkeypatch.setenv("NOONMARK_DATABASE_URL", url)
        return call(*arguments, code=code)

    return run


@pytest.fixture
def database(emptied_database):
    """A connection that every statement of is committed at once."""
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        yield connection


def add_job(
    database, name="send-invoice", *, schedule=None, state="active", namespace="default", timer=False
):
    job = uuid4()
    database.execute(
        """insert into jobs (id, namespace, name, kind, handler, lane, pool, shard, schedule, policy, work, unique_name,
                             state, version, created_at, updated_at)
           values (%s, %s, %s, 'python', 'mails.send', 1, 'default', 0, %s, null,
                   '{"payload": {"user_id": 42}, "timeout_seconds": 3600, "retry": {"max_retries": 3}}', %s, %s, 1,
                   now(), now())""",
        [job, namespace, name, Jsonb(schedule) if schedule else None, bool(schedule), state],
    )
    if timer:
        database.execute(
            "insert into timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace, pool)"
            " values (%(at)s, %(at)s, %(job)s, 1, 0, 1, 0, %(namespace)s, 'default')",
            {"at": NOW + timedelta(hours=1), "job": job, "namespace": namespace},
        )
    return job


def add_runs(database, job, count=1, *, state="succeeded", lane=1, namespace="default", delay_ms=40):
    ids = uuid7_batch(count)
    for number, run in enumerate(ids):
        due = NOW - timedelta(seconds=count - number)
        started = due + timedelta(milliseconds=delay_ms)
        ended = None if state == "retrying" else started + timedelta(seconds=1)
        database.execute(
            """insert into runs (id, scheduled_for, queued_at, started_at, finished_at, job_id, job_version, fence, attempt,
                                 lane, shard, state, origin, namespace, pool)
               values (%s, %s, %s, %s, %s, %s, 1, 1, 1, %s, 0, %s, 'schedule', %s, 'default')""",
            [run, due, due, started, ended, job, lane, state, namespace],
        )
    return ids


def test_runs_are_listed_newest_first_with_job_state_and_start_delay(noonmark, database):
    add_runs(database, add_job(database), 2)

    head, *lines = noonmark("run", "list").stdout.splitlines()

    assert head.split() == ["RUN", "JOB", "LANE", "STATE", "REASON", "ATTEMPTS", "DUE", "DELAY", "TOOK"]
    assert len(lines) == 2
    assert lines[0].split()[1:6] == ["send-invoice", "normal", "succeeded", "-", "1"]
    assert "40 ms" in lines[0]
    assert "1.0 s" in lines[0]


def test_a_process_of_its_own_prints_the_same(noonmark, database):
    add_runs(database, add_job(database), 3)
    words = ("run", "list", "--json")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "noonmark.cli.main", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout, done.stderr) == (noonmark(*words).stdout, "")
    assert len(json.loads(done.stdout)["items"]) == 3


def test_pages_follow_each_other_without_gap_or_repetition(noonmark, database):
    ids = add_runs(database, add_job(database), 5)

    seen, place = [], None
    while True:
        more = ["--after", place] if place else []
        page = json.loads(noonmark("run", "list", "--json", "--limit", "2", *more).stdout)
        seen += [item["id"] for item in page["items"]]
        place = page["next_cursor"]
        if place is None:
            break

    assert seen == [str(run) for run in sorted(ids, reverse=True)]


def test_runs_can_be_narrowed_down(noonmark, database):
    add_runs(database, add_job(database, "a"), 1)
    add_runs(database, add_job(database, "b"), 2, state="skipped")
    add_runs(database, add_job(database, "c", namespace="other"), 3, namespace="other")
    for words, count in {
        (): 3,
        ("--state", "skipped"): 2,
        ("--state", "skipped", "--state", "succeeded"): 3,
        ("--lane", "high", "--lane", "low"): 0,
        ("--lane", "normal"): 3,
        ("--job", "b"): 2,
        ("--namespace", "other"): 3,
        ("--since", (NOW - timedelta(seconds=1)).isoformat()): 2,
        ("--since", (NOW + timedelta(seconds=1)).isoformat()): 0,
    }.items():
        assert len(json.loads(noonmark("run", "list", "--json", *words).stdout)["items"]) == count, words


def test_a_run_is_shown_with_the_attempts_that_failed(noonmark, database):
    (run,) = add_runs(database, add_job(database), 1)
    database.execute(
        "insert into attempts (run_id, scheduled_for, fence, attempt, outcome, error, finished_at)"
        " values (%s, %s, 1, 1, 'failed', 'ConnectionError: 503', now())",
        [run, NOW - timedelta(seconds=1)],
    )

    text = noonmark("run", "show", str(run)).stdout
    shown = json.loads(noonmark("run", "show", str(run), "--json").stdout)

    assert "ConnectionError: 503" in text
    assert [attempt["outcome"] for attempt in shown["attempts"]] == ["failed"]
    assert shown["start_delay_seconds"] == 0.04


def add_attempt(database, run, due, *, started, seconds=1):
    database.execute(
        "insert into attempts (run_id, scheduled_for, fence, attempt, outcome, error, started_at, finished_at)"
        " values (%s, %s, 1, 1, 'failed', 'ConnectionError: 503', %s, %s)",
        [run, due, started, started + timedelta(seconds=seconds)],
    )


def test_the_start_delay_of_a_retried_run_is_that_of_its_first_attempt(noonmark, database):
    (run,) = add_runs(database, add_job(database), 1, delay_ms=90_000)
    due = NOW - timedelta(seconds=1)
    add_attempt(database, run, due, started=due + timedelta(milliseconds=30))

    (listed,) = json.loads(noonmark("run", "list", "--json").stdout)["items"]
    shown = json.loads(noonmark("run", "show", str(run), "--json").stdout)

    for found in (listed, shown):
        assert found["start_delay_seconds"] == 0.03
        assert found["took_seconds"] == 1
    assert "30 ms" in noonmark("run", "list").stdout


def test_a_run_that_waits_for_a_retry_says_when_it_comes(noonmark, database):
    job = add_job(database)
    (run,) = add_runs(database, job, state="retrying")
    database.execute(
        "insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)"
        " values ('2126-06-01T09:00:00.25Z', now(), %s, %s, 1, 0, 1, 2, 'default', 'default')",
        [job, run],
    )
    lines = [line.split() for line in noonmark("run", "show", str(run)).stdout.splitlines()]
    assert ["next_attempt_at", "2126-06-01T09:00:00.250Z"] in lines


def test_a_run_is_shown_with_what_people_ask_first_and_internals_only_where_asked_for(noonmark, database):
    (run,) = add_runs(database, add_job(database))
    names = [line.split()[0] for line in noonmark("run", "show", str(run)).stdout.splitlines()]
    wide = [line.split()[0] for line in noonmark("run", "show", str(run), "-o", "wide").stdout.splitlines()]
    assert names[:4] == ["id", "job", "state", "scheduled_for"]
    assert {"start_delay", "took"} <= set(names)
    assert not {"epoch", "shard", "holds_slot", "losses", "instants", "owner"} & set(names)
    assert {"losses", "instants"} <= set(wide)


def test_runs_are_listed_in_any_of_several_states(noonmark, database):
    for state in ("dead", "succeeded", "cancelled"):
        add_runs(database, add_job(database), state=state)
    wanted = ("--state", "dead", "--state", "succeeded", "--json")
    shown = json.loads(noonmark("run", "list", *wanted).stdout)["items"]
    assert {run["state"] for run in shown} == {"dead", "succeeded"}


def test_a_run_is_listed_with_its_reason_and_runs_can_be_narrowed_down_to_one(noonmark, database):
    for state, reason in (("skipped", "overlap"), ("skipped", "coalesced"), ("succeeded", None)):
        (run,) = add_runs(database, add_job(database, f"a-{reason}"), state=state)
        database.execute("update runs set reason = %s where id = %s", [reason, run])
    words = [line.split()[1:5] for line in noonmark("run", "list").stdout.splitlines()[1:]]
    assert ["a-overlap", "normal", "skipped", "overlap"] in words
    (only,) = json.loads(noonmark("run", "list", "--reason", "overlap", "--json").stdout)["items"]
    assert only["reason"] == "overlap"
    both = ("run", "list", "--reason", "overlap", "--reason", "coalesced", "--json")
    assert len(json.loads(noonmark(*both).stdout)["items"]) == 2


@pytest.mark.parametrize("listing", ["run", "job"])
def test_listings_are_of_one_namespace(noonmark, database, listing):
    job = add_job(database, namespace="shop")
    (run,) = add_runs(database, job, namespace="shop")
    assert json.loads(noonmark(listing, "list", "--json").stdout)["items"] == []
    words = (listing, "list", "--namespace", "shop")
    (only,) = json.loads(noonmark(*words, "--json").stdout)["items"]
    assert only["id"] == str(run if listing == "run" else job)
    assert " shop " in noonmark(*words, "-o", "wide").stdout


def test_runs_of_a_job_that_is_named_by_its_id_are_found_wherever_it_is(noonmark, database):
    job = add_job(database, namespace="shop")
    (run,) = add_runs(database, job, namespace="shop")
    (only,) = json.loads(noonmark("run", "list", "--job", str(job), "--json").stdout)["items"]
    assert only["id"] == str(run)


def test_runs_of_a_job_that_is_not_there_are_an_error_and_of_one_without_runs_none(noonmark, database):
    job = add_job(database)
    assert json.loads(noonmark("run", "list", "--job", "send-invoice", "--json").stdout)["items"] == []
    assert json.loads(noonmark("run", "list", "--job", str(job), "--json").stdout)["items"] == []
    for wrong in (("nosuch",), (str(uuid4()),), ("send-invoice", "--namespace", "shop")):
        for listing in ("run", "dead"):
            told = noonmark(listing, "list", "--job", *wrong, code=1).stderr
            where = " in namespace shop" if "shop" in wrong else ""
            assert told == f"job {wrong[0]!r} does not exist{where}; run `noonmark job list`\n"


def test_a_run_that_is_not_there_is_a_sentence_and_exit_code_1(noonmark):
    done = noonmark("run", "show", str(uuid4()), code=1)
    assert "does not exist" in done.stderr
    assert done.stdout == ""


def test_a_one_time_job_without_a_timer_is_shown_as_completed(noonmark, database):
    add_job(database, "done", schedule={"run_at": "2026-06-01T09:00:00Z"})
    add_job(database, "later", schedule={"run_at": "2026-06-01T09:00:00Z"}, timer=True)
    add_job(database, "at-once")
    add_job(database, "recurring", schedule={"cron": "* * * * *"})
    add_job(database, "paused", state="paused")
    states = {
        row["name"]: row["state"] for row in json.loads(noonmark("job", "list", "--json").stdout)["items"]
    }
    completed = json.loads(noonmark("job", "list", "--state", "completed", "--json").stdout)["items"]
    assert states == {
        "done": "completed",
        "later": "active",
        "at-once": "completed",
        "recurring": "active",
        "paused": "paused",
    }
    assert {row["name"] for row in completed} == {"done", "at-once"}


def test_a_job_is_shown_by_name_with_every_field_of_its_document(noonmark, database):
    job = add_job(database, "nightly", schedule={"cron": "0 3 * * *"}, timer=True)

    shown = json.loads(noonmark("job", "show", "nightly", "--json").stdout)

    document = shown["document"]
    assert shown["id"] == str(job)
    assert (document["schedule"]["cron"], document["schedule"]["timezone"]) == ("0 3 * * *", "UTC")
    assert document["retry"]["max_retries"] == 3
    assert shown["next_run_at"] == (NOW + timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    assert {"payload", "timeout_seconds", "priority", "pool", "misfire", "overlap", "delivery"} <= set(
        document
    )


def add_calendar(database, name="weekend", body=None, namespace="default"):
    calendar = Calendar.parse(body or {"weekdays": ["SAT", "SUN"]})
    key = {"namespace": namespace, "name": name, "digest": calendar.digest(), "body": Jsonb(calendar.body())}
    database.execute("insert into calendar_contents (digest, body) values (%(digest)s, %(body)s)", key)
    database.execute(
        "insert into calendars (namespace, name, digest) values (%(namespace)s, %(name)s, %(digest)s)", key
    )
    return [name, calendar.digest()]


def test_a_schedule_is_shown_as_its_document_which_previews_read_back(noonmark, database, tmp_path):
    pair = add_calendar(database)
    stored = {"cron": "0 9 * * *", "timezone": "Asia/Kolkata", "calendars": {"exclude": [pair]}}
    add_job(database, "nightly", schedule=stored)

    shown = noonmark("job", "show", "nightly", "--json").stdout
    text = noonmark("job", "show", "nightly").stdout
    (listed,) = json.loads(noonmark("job", "list", "--json").stdout)["items"]

    document = json.loads(shown)["document"]
    schedule = document["schedule"]
    assert schedule["calendars"] == {"exclude": ["weekend"], "on_holiday": "skip"}
    assert listed["document"]["schedule"] == schedule
    assert document["misfire"]["policy"] == "fire_latest"
    assert pair[1] not in text
    (tmp_path / "job.json").write_text(json.dumps(document))
    (tmp_path / "weekend.yaml").write_text("weekdays: [SAT, SUN]")
    next_ = ("schedule", "next", "-f", "job.json", "--calendar", "weekend=weekend.yaml")
    told = noonmark(*next_, "--after", "2026-06-05T12:00:00Z", "--count", "1").stdout
    assert "2026-06-08T03:30:00Z" in told


def test_an_active_job_whose_calendars_leave_nothing_says_so(noonmark, database):
    pair = add_calendar(database, body={"dates": ["2020-01-01"]})
    stored = {"cron": "0 9 * * *", "timezone": "UTC", "calendars": {"include": [pair]}}
    job = add_job(database, "nightly", schedule=stored)
    database.execute(
        "insert into timers (fire_at, scheduled_for, after_at, job_id, job_version, shard, lane, kind, namespace, pool)"
        " values (%s, %s, %s, %s, 1, 0, 1, 3, 'default', 'default')",
        [NEVER, NOW, NOW, job],
    )
    shown = json.loads(noonmark("job", "show", "nightly", "--json").stdout)
    assert (shown["state"], shown["next_run_at"]) == ("active", None)
    assert shown["state_reason"] == "no next instant: its calendars leave none"
    assert shown["held_instants"] is None
    assert " none" in noonmark("job", "list").stdout
    assert "no next instant: its calendars leave none" in noonmark("job", "list", "-o", "wide").stdout
    database.execute("update jobs set state = 'paused', state_reason = 'why' where id = %s", [job])
    shown = json.loads(noonmark("job", "show", "nightly", "--json").stdout)
    assert (shown["state_reason"], shown["held_instants"]) == ("why", 0)


def test_a_name_of_several_one_time_jobs_is_answered_with_their_ids(noonmark, database):
    jobs = [add_job(database, "welcome") for _ in range(2)]
    done = noonmark("job", "show", "welcome", code=1)
    assert all(str(job) in done.stderr for job in jobs)


def test_rejections_are_listed_with_position_pointer_and_excerpt(noonmark, database):
    errors = [{"pointer": "/data/schedule", "message": "61 is not a minute", "expected": "0 to 59"}]
    database.execute(
        """insert into rejections (topic, partition, record_offset, event_source, event_id, reason, errors, value,
                                   truncated, received_at)
           values ('noonmark.submissions', 3, 17, 'billing', 'e1', 'invalid', %s, '{"name": "a"}', false, now())""",
        [Jsonb(errors)],
    )

    text = noonmark("rejection", "list", "-o", "wide").stdout
    shown = json.loads(noonmark("rejection", "list", "--json").stdout)

    assert "noonmark.submissions/3/17" in text
    assert "/data/schedule: 61 is not a minute; expected 0 to 59" in text
    assert '{"name": "a"}' in text
    assert shown["items"][0]["errors"] == errors

    number = str(shown["items"][0]["id"])
    full = noonmark("rejection", "show", number).stdout
    for part in (
        "noonmark.submissions/3/17",
        "billing",
        "/data/schedule: 61 is not a minute; expected 0 to 59",
        '{"name": "a"}',
    ):
        assert part in full
    detail = json.loads(noonmark("rejection", "show", number, "--json").stdout)
    assert base64.b64decode(detail.pop("value_base64")) == b'{"name": "a"}'
    assert detail.pop("truncated") is False
    assert detail == shown["items"][0]


def test_a_rejection_that_is_not_there_is_a_sentence(noonmark):
    assert "rejection 7 does not exist" in noonmark("rejection", "show", "7", code=1).stderr
    assert "'abc' is not a rejection id" in noonmark("rejection", "show", "abc", code=2).stderr


def test_dead_letters_are_listed_with_their_last_error(noonmark, database):
    job = add_job(database, "import-file")
    (run,) = add_runs(database, job, state="dead")
    database.execute(
        "insert into dead_letters (run_id, scheduled_for, job_id, namespace, attempts, reason, error, name, fingerprint,"
        " died_at) values (%s, now(), %s, 'default', 4, 'attempts_used_up', 'ValueError: no CSV', 'import-file', 'f', now())",
        [run, job],
    )
    text = noonmark("dead", "list").stdout
    assert "import-file" in text
    assert "ValueError: no CSV" in text


def test_dead_letters_come_newest_death_first_page_by_page_and_can_be_narrowed_down(noonmark, database):
    jobs = [add_job(database, name) for name in ("a", "b")]
    runs = [*add_runs(database, jobs[0], 2, state="dead"), *add_runs(database, jobs[1], 1, state="dead")]
    # The run that was made first died last.
    for days, run in enumerate(runs):
        database.execute(
            "insert into dead_letters (run_id, scheduled_for, job_id, namespace, attempts, reason, error, name, fingerprint,"
            " died_at) values (%s, now(), %s, 'default', 4, 'retries_exhausted', 'x', %s, 'f', %s)",
            [run, jobs[run == runs[2]], "b" if run == runs[2] else "a", NOW - timedelta(days=days)],
        )

    def listed(*options):
        page = json.loads(noonmark("dead", "list", "--json", *options).stdout)
        return [item["run_id"] for item in page["items"]], page["next"]

    ids = [str(run) for run in runs]
    first, place = listed("-n", "2")
    assert first == ids[:2]
    assert listed("-n", "2", "--after", place) == (ids[2:], None)
    assert listed("--job", "a")[0] == ids[:2]
    assert listed("--job", str(jobs[1]))[0] == ids[2:]
    assert listed("--since", "30h")[0] == ids[:2]
    assert listed("--since", (NOW + timedelta(days=1)).date().isoformat())[0] == []


def test_workers_are_listed_while_they_live_and_with_all_for_ever(noonmark, database):
    database.execute(
        "insert into workers (pool, host, pid, lease_seconds, beat_at, left_at)"
        " values ('default', 'a', 1, 15, now(), null), ('default', 'b', 2, 15, now(), now())"
    )
    alive = json.loads(noonmark("workers", "--json").stdout)["items"]
    everyone = json.loads(noonmark("workers", "--all", "--json").stdout)["items"]
    assert [worker["host"] for worker in alive] == ["a"]
    assert {worker["host"]: worker["state"] for worker in everyone} == {"a": "alive", "b": "left"}


def test_a_pool_is_registered_once_with_a_key_of_its_own(noonmark):
    first = noonmark("pool", "create", "reports", "--skip-topics")
    second = noonmark("pool", "create", "reports", "--skip-topics")
    pools = {pool["name"]: pool for pool in json.loads(noonmark("pool", "list", "--json").stdout)["items"]}
    assert "created" in first.stdout
    assert "already exists" in second.stdout
    assert (pools["reports"]["keys"], pools["default"]["keys"]) == (1, 1)


def test_a_pool_name_with_a_dot_is_wrong_usage(noonmark):
    assert "not a pool name" in noonmark("pool", "create", "a.b", code=2).stderr


def test_db_check_is_content_with_a_migrated_database(noonmark):
    shown = json.loads(noonmark("db", "check", "--json").stdout)
    assert shown["problems"] == []
    assert shown["schema"] == shown["wanted"]
    assert noonmark("db", "check").stdout.splitlines()[-1] == "no problems found"


def test_db_check_names_what_nothing_continues_and_what_to_do(noonmark, database):
    job = uuid4()
    database.execute(
        "insert into timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace, pool)"
        " values (now(), now(), %s, 1, 0, 0, 1, 'default', 'default')",
        [job],
    )

    done = noonmark("db", "check", code=1)
    shown = json.loads(noonmark("db", "check", "--json", code=1).stdout)

    *_, line, verdict = done.stdout.splitlines()
    assert (done.stderr, verdict) == ("", "1 problem found")
    assert line == (
        f"job {job} in namespace default: a timer of this job exists, but the job does not."
        f" In SQL: `delete from timers where job_id = '{job}'`."
    )
    assert shown["problems"] == [line]
    assert [(one["code"], one["job_id"]) for one in shown["stranded"]] == [("timer_without_job", str(job))]
    assert shown["unsearched"] == []


def test_migrating_twice_is_safe_and_keeps_the_number_of_shards(noonmark):
    before = json.loads(noonmark("db", "check", "--json").stdout)
    noonmark("db", "migrate", "--shards", "9", "--skip-topics")
    assert json.loads(noonmark("db", "check", "--json").stdout) == before


def test_db_check_of_an_empty_database_says_what_to_run(noonmark, postgres_server):
    name = f"empty_{uuid4().hex[:8]}"
    postgres_server.run(f"create database {name}")
    try:
        done = noonmark("db", "check", code=1, url=postgres_server.url_of(name))
        assert "run `noonmark db migrate`" in done.stdout
        done = noonmark("run", "list", code=1, url=postgres_server.url_of(name))
        assert "run `noonmark db migrate`" in done.stderr
    finally:
        postgres_server.run(f"drop database {name} with (force)")


def test_a_database_that_does_not_answer_is_a_sentence_and_exit_code_3(noonmark):
    url = "postgresql://app:s3cret@127.0.0.1:1/jobs"
    for command in (["run", "list"], ["db", "check"], ["db", "migrate"], ["pool", "list"], ["lag"]):
        done = noonmark(*command, code=3, url=url)
        assert "jobs at 127.0.0.1:1" in done.stderr
        assert "noonmark dev up" in done.stderr
        assert "s3cret" not in done.stderr
        assert "Traceback" not in done.stderr
