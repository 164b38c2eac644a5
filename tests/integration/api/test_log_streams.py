"""Streams of logs: each byte once and in order, resumed where they broke, over retries, until the run has ended."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from tests.integration.store.world import SHARDS, TOPICS, outcome

from noonmark.api.routes.runs import log_streams
from noonmark.auth.key_cache import KeyCache
from noonmark.core.output_stream import no_cleaner
from noonmark.core.states import RunState
from noonmark.settings import Settings
from noonmark.store.outcomes.attempt_logs import AttemptLog, LiveLog, save_logs
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.runs import leases, worker_lease

pytestmark = pytest.mark.postgres


@pytest.fixture
def settings(emptied_database, monkeypatch):
    monkeypatch.setenv("NOONMARK_DATABASE_URL", emptied_database)
    return Settings.load(api_connections=4, api_event_streams=4)


class Stream:
    """Reads one stream, event by event."""

    def __init__(self, answer):
        self.lines = answer.iter_lines()
        self.last_id = ""

    def next(self):
        """The next event, as its name and data; comments are passed over."""
        name, data = "", None
        for line in self.lines:
            field, _, value = line.partition(": ")
            if field == "id":
                self.last_id = value
            elif field == "event":
                name = value
            elif field == "data":
                data = json.loads(value)
            elif not line and name:
                return name, data
        raise AssertionError("the stream is over")

    def texts(self, count):
        """The next events, as (attempt, stream, text)."""
        told = [self.next() for _ in range(count)]
        assert {name for name, _ in told} == {"output"}
        return [(data["attempt"], data["stream"], data["text"]) for _, data in told]


@pytest.fixture
def follow(server, token):
    admin = token()

    @contextmanager
    def opened(run, query="follow=true", *, key=None, after=None, accept="*/*", status=200):
        headers = {"Authorization": f"Bearer {key or admin}", "Accept": accept}
        if after is not None:
            headers["Last-Event-ID"] = after
        with server.stream("GET", f"/v1/runs/{run}/logs?{query}", headers=headers) as answer:
            assert answer.status_code == status, answer.read()
            if status == 200:
                assert answer.headers["content-type"].startswith("text/event-stream")
            yield Stream(answer)

    return opened


class Writing:
    """An attempt that writes, as its worker stores it."""

    def __init__(self, world):
        self.world = world
        self.worker = world.worker()
        (self.run,) = world.started(self.worker)
        self.log = AttemptLog()

    def write(self, stdout=b"", stderr=b"", line=""):
        self.log.stdout.add(stdout)
        self.log.stderr.add(stderr)
        if line:
            self.log.add(line)
        self.log.move(no_cleaner)
        live = LiveLog.of(self.run, 1, self.log)
        assert save_logs(self.world.db, *self.worker, [live]).saved == {self.run.id}
        self.log.saved = self.log.ends

    def end(self, state=RunState.SUCCEEDED, **more):
        self.world.record(self.worker, [outcome(self.run, state, extras=OutcomeExtras(log=self.log), **more)])


@pytest.fixture
def writing(world):
    return Writing(world)


def test_output_is_streamed_as_it_is_stored_until_the_run_has_ended(follow, writing):
    with follow(writing.run.id) as stream:
        writing.write(b"one\n", b"oh\n", "begun")
        assert stream.texts(3) == [(1, "log", "begun\n"), (1, "stdout", "one\n"), (1, "stderr", "oh\n")]
        writing.write("zwölf\n".encode())
        writing.write("✓\n".encode())
        assert "".join(text for _, _, text in stream.texts(1)) in {"zwölf\n", "zwölf\n✓\n"}
        writing.log.stdout.add(b"last")
        writing.end()
        told = []
        while (event := stream.next())[0] == "output":
            told.append(event[1]["text"])
        assert "".join(told).endswith("last")
        assert event == ("end", {"reason": "finished", "state": "succeeded"})


def test_a_lost_worker_is_told_once_after_its_output_and_before_that_of_the_next_attempt(
    follow, world, writing
):
    writing.write(b"one\n")
    with follow(writing.run.id) as stream:
        assert stream.texts(1) == [(1, "stdout", "one\n")]
        assert worker_lease.lapse(world.db, writing.worker)
        leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5)
        name, data = stream.next()
        place = stream.last_id
        assert name == "lost"
        assert data.pop("lost_at")
        assert data == {"attempt": 1, "fence": 1, "worker": writing.worker.worker, "state": "queued"}

    worker = world.worker()
    (again,) = world.start(worker, [writing.run.id])
    log = AttemptLog()
    log.stdout.add(b"two\n")
    world.record(worker, [outcome(again, RunState.SUCCEEDED, fence=2, extras=OutcomeExtras(log=log))])

    with follow(writing.run.id, after=place) as stream:
        assert stream.next() == ("output", {"attempt": 1, "fence": 2, "stream": "stdout", "text": "two\n"})
        assert stream.next()[0] == "end"
    with follow(writing.run.id) as stream:
        assert [stream.next()[0] for _ in range(4)] == ["output", "lost", "output", "end"]


def test_a_broken_stream_is_resumed_after_its_last_event(follow, writing):
    writing.write(b"one\n", b"oh\n")
    with follow(writing.run.id, accept="text/event-stream", query="") as stream:
        assert stream.texts(1) == [(1, "stdout", "one\n")]
        place = stream.last_id
    writing.write(b"two\n")
    writing.end()
    with follow(writing.run.id, after=place) as stream:
        assert stream.texts(2) == [(1, "stdout", "two\n"), (1, "stderr", "oh\n")]
        assert stream.next()[0] == "end"
        place = stream.last_id
    with follow(writing.run.id, after=place, status=204):
        pass
    with follow(writing.run.id, after="no id") as stream:
        assert stream.texts(1) == [(1, "stdout", "one\ntwo\n")]


def test_what_was_dropped_between_two_events_is_counted(follow, writing):
    writing.write(b"one\n")
    with follow(writing.run.id) as stream:
        assert stream.texts(1) == [(1, "stdout", "one\n")]
        flood = "äé".encode() * 50_000
        writing.write(flood + b"\n")
        about = {"attempt": 1, "fence": 1, "stream": "stdout"}
        assert stream.next() == ("gap", about | {"bytes": len(flood) + 1 - 65_535})
        name, data = stream.next()
        assert (name, len(data["text"].encode())) == ("output", 65_535)


def test_later_attempts_follow(follow, world, writing):
    writing.write(b"one\n")
    with follow(writing.run.id) as stream, follow(writing.run.id, "follow=true&attempt=2") as second:
        writing.end(RunState.RETRYING, retry_seconds=0.0)
        world.db.execute(
            "update runs set state = 'running', fence = 2, attempt = 2, owner = %s, epoch = %s where id = %s",
            [*writing.worker, writing.run.id],
        )
        log = AttemptLog()
        log.stdout.add(b"two\n")
        log.move(no_cleaner)
        save_logs(world.db, *writing.worker, [LiveLog.of(writing.run, 2, log)])
        assert stream.texts(2) == [(1, "stdout", "one\n"), (2, "stdout", "two\n")]
        assert second.texts(1) == [(2, "stdout", "two\n")]
        world.db.execute(
            "update runs set state = 'cancelled', finished_at = now() where id = %s", [writing.run.id]
        )
        for one in (stream, second):
            assert one.next() == ("end", {"reason": "finished", "state": "cancelled"})


def test_more_attempts_than_are_read_at_once_all_come(follow, world, writing):
    run = writing.run
    for fence in range(1, 36):
        world.db.execute(
            "insert into attempt_logs (run_id, scheduled_for, fence, attempt, stdout, stderr, log, dropped, written_at)"
            " values (%s, %s, %s, %s, %s, '', '', 0, now())",
            [run.id, run.scheduled_for, fence, fence, f"{fence}\n"],
        )
    world.db.execute("update runs set state = 'dead', finished_at = now() where id = %s", [run.id])
    with follow(run.id) as stream:
        assert stream.texts(35) == [(n, "stdout", f"{n}\n") for n in range(1, 36)]
        assert stream.next()[1]["state"] == "dead"


def test_the_stored_output_says_how_much_there_was_and_whether_it_is_all(api, writing):
    writing.write(b"one\n")
    (shown,) = api("GET", f"/v1/runs/{writing.run.id}/logs", 200).json()["attempts"]
    assert (shown["stdout"], shown["ended"]) == ("one\n", False)
    writing.log.stdout.add(b"x" * 70_000)
    writing.end()
    (shown,) = api("GET", f"/v1/runs/{writing.run.id}/logs", 200).json()["attempts"]
    assert shown["ends"] == {"stdout": 70_004, "stderr": 0, "log": 0}
    assert (len(shown["stdout"]), shown["dropped"], shown["ended"]) == (65_536, 70_004 - 65_536, True)


def test_a_stream_is_for_those_who_may_see_payloads(follow, token, writing):
    for key, status in (
        (token("viewer", "tests"), 403),
        (token("admin", "elsewhere"), 404),
        ("noonmark_x_y", 401),
    ):
        with follow(writing.run.id, key=key, status=status):
            pass
    with follow(writing.run.id, key=token("operator", "tests")):
        pass


def test_a_stream_ends_with_its_credential_and_with_the_server(
    follow, writing, token, database, parts, monkeypatch
):
    monkeypatch.setitem(KeyCache.__init__.__kwdefaults__, "keep_seconds", 0.1)
    monkeypatch.setattr(log_streams, "CHECK_SECONDS", 0.1)
    key = token("operator", "tests")
    with follow(writing.run.id, key=key) as theirs, follow(writing.run.id) as ours:
        database.execute("update api_keys set revoked_at = now() where key_id = %s", [key.split("_")[1]])
        assert theirs.next()[1]["reason"] == "revoked"
        parts.end_streams()
        assert ours.next()[1]["reason"] == "shutdown"


def test_there_are_so_many_streams_and_no_more(follow, api, token, writing):
    here, mine, other = writing.run.id, token("operator", "tests"), token("operator", "tests")
    with follow(here, key=mine), follow(here, key=mine), follow(here, key=mine):
        api("GET", f"/v1/runs/{here}/logs?follow=true", 429, key=mine)
        with follow(here, key=other):
            problem = api("GET", f"/v1/runs/{here}/logs?follow=true", 503, key=other)
            assert problem.headers["retry-after"] == "5"
    # Who left makes room.
    with follow(here, key=mine):
        pass


def test_a_quiet_stream_shows_that_it_is_alive(follow, writing, monkeypatch):
    monkeypatch.setattr(log_streams, "HEARTBEAT_SECONDS", log_streams.CHECK_SECONDS)
    with follow(writing.run.id) as stream:
        assert any(line == ": heartbeat" for line in stream.lines)


def test_without_the_database_a_stream_says_so_and_stays_open(follow, world, writing, parts, monkeypatch):
    with follow(writing.run.id) as stream:
        assert any(line == ": following" for line in stream.lines)
        with monkeypatch.context() as away:
            away.setattr(parts.database, "reading", _unreachable)
            assert any(line == ": the database does not respond" for line in stream.lines)
        writing.write(b"again\n")
        assert stream.texts(1) == [(1, "stdout", "again\n")]


def _unreachable(_namespaces):
    import psycopg  # noqa: PLC0415

    raise psycopg.OperationalError("connection refused")
