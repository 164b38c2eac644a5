"""Output of running attempts: stored while their worker owns the run, bounded in each round, kept after its death."""

import threading
import time
from itertools import pairwise

import psycopg
import pytest
from tests.integration.store.world import World, outcome
from tests.unit.worker.hands import hand

from noonmark.attempts.live_logs import ROUND_BYTES, LogWriter
from noonmark.attempts.redaction import Redactor
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.attempt_key import attempt_key
from noonmark.core.output_stream import no_cleaner
from noonmark.core.states import RunState
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.outcomes.attempt_logs import AttemptLog, LiveLog, save_logs
from noonmark.store.runs.worker_lease import Identity
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.metrics import FENCED_WRITES

PATIENCE = 60


def log_of(stdout: bytes = b"", stderr: bytes = b"", line: str = "") -> AttemptLog:
    log = AttemptLog()
    log.stdout.add(stdout)
    log.stderr.add(stderr)
    if line:
        log.add(line)
    log.move(no_cleaner)
    return log


def live(run, stdout: bytes = b"one\n", *, fence: int = 1) -> LiveLog:
    found = LiveLog.of(run, fence, log_of(stdout))
    assert found is not None
    return found


def stored(world: World):
    rows = world.rows(
        "select run_id, fence, attempt, stdout, stderr, log, dropped, stdout_end, stderr_end, log_end from attempt_logs"
    )
    return {row.pop("run_id"): tuple(row.values()) for row in rows}


def running(run, *, fence: int = 1) -> RunningAttempt:
    attempt = hand()
    attempt.run, attempt.fence, attempt.key = run, fence, attempt_key(run.id, fence)
    attempt.taken_at -= 10
    return attempt


def wait(condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def writing(world, emptied_database):
    """Make a writer of some attempts, whose rounds the test plays."""
    made: list[LogWriter] = []

    def make(identity: Identity, attempts) -> LogWriter:
        settings = Settings(database_url=emptied_database)
        service = Service("worker", settings, Health(), threading.Event(), get_logger())
        made.append(LogWriter(service, lambda: identity, lambda: attempts))
        return made[-1]

    yield make
    for writer in made:
        writer.close()
        writer.run(threading.Event())


def test_output_of_a_batch_is_stored_at_once_and_only_what_changed_is_sent_again(world):
    worker = world.worker()
    first, second = world.started(worker, 2)
    log = log_of(b"a\n", b"err\n", "logged")
    save_logs(world.db, *worker, [LiveLog.of(first, 1, log), live(second)])
    assert stored(world)[first.id] == (1, 1, "a\n", "err\n", "logged\n", 0, 2, 4, 7)

    log.saved = log.ends
    log.stdout.add(b"b\n")
    log.move(no_cleaner)
    later = LiveLog.of(first, 1, log)
    assert later.texts == ("a\nb\n", None, None)
    assert save_logs(world.db, *worker, [later]).saved == {first.id}
    assert stored(world)[first.id] == (1, 1, "a\nb\n", "err\n", "logged\n", 0, 4, 4, 7)
    assert stored(world)[second.id][2] == "one\n"
    log.saved = log.ends
    assert LiveLog.of(first, 1, log) is None


@pytest.mark.parametrize("guard", ["fence", "worker", "epoch", "queued", "retrying", "succeeded"])
def test_output_that_any_guard_refuses_is_not_stored(world, guard):
    worker = world.worker()
    (run,) = world.started(worker)
    fence, who = 1, worker
    if guard == "fence":
        fence = 2
    elif guard == "worker":
        who = world.worker()
    elif guard == "epoch":
        who = Identity(worker.worker, worker.epoch + 1)
    else:
        world.db.execute("delete from runs where id = %s", [run.id])
        world.put_run(guard, id=run.id, scheduled_for=run.scheduled_for, owner=worker)

    result = save_logs(world.db, *who, [live(run, fence=fence)])
    assert (result.saved, result.busy) == (set(), set())
    assert stored(world) == {}


def test_a_run_that_is_being_cancelled_still_shows_its_output(world):
    worker = world.worker()
    (run,) = world.started(worker)
    world.db.execute("update runs set state = 'cancelling' where id = %s", [run.id])
    assert save_logs(world.db, *worker, [live(run)]).saved == {run.id}


def test_a_run_that_is_being_changed_is_left_for_the_next_round_and_nobody_waits(world):
    worker = world.worker()
    locked, free = world.started(worker, 2)
    other = world.another()
    with other.transaction():
        other.execute("select from runs where id = %s for update", [locked.id])
        result = save_logs(world.db, *worker, [live(locked), live(free)])
    assert (result.saved, result.busy) == ({free.id}, {locked.id})


def test_an_outcome_cannot_be_recorded_between_the_check_and_the_output(world):
    worker = world.worker()
    (run,) = world.started(worker)
    other = world.another()
    other.execute("set lock_timeout = '200ms'")
    with world.db.transaction():
        save_logs(world.db, *worker, [live(run)])
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("update runs set fence = 2 where id = %s", [run.id])


def test_what_was_read_earlier_does_not_replace_the_last_output(world):
    worker = world.worker()
    (run,) = world.started(worker)
    save_logs(world.db, *worker, [live(run, b"one\ntwo\n")])
    result = save_logs(world.db, *worker, [live(run, b"one\n")])
    assert (result.saved, result.busy) == (set(), {run.id})
    assert stored(world)[run.id][2] == "one\ntwo\n"


def test_the_outcome_brings_the_rest_and_replaces_what_was_stored(world, writing):
    worker = world.worker()
    (run,) = world.started(worker)
    attempt = running(run)
    log = attempt.ensure_extras().logged()
    log.stdout.add(b"one\ntw")
    assert writing(worker, [attempt]).run_once() == 1
    assert stored(world)[run.id][2] == "one\n"
    log.stdout.add(b"o")
    world.record(worker, [outcome(run, extras=attempt.extras)])
    assert stored(world)[run.id] == (1, 1, "one\ntwo", "", "", 0, 7, 0, 0)


def test_a_round_without_new_output_does_nothing_and_needs_no_connection(world, writing):
    worker = world.worker()
    first, second, third = (running(run) for run in world.started(worker, 3))
    first.ensure_extras().logged().stdout.add(b"no end of the line")
    second.ensure_extras().logged().stdout.add(b"ended\n")
    second.extras.log.move(no_cleaner, final=True)
    third.ensure_extras().logged().stdout.add(b"just begun\n")
    third.taken_at += 10
    writer = writing(worker, [first, second, third, running(world.started(worker)[0])])
    assert writer.run_once() == 0
    assert writer._connection is None
    assert stored(world) == {}


def test_a_flood_delays_only_its_own_output(world, writing):
    worker = world.worker()
    attempts = [running(run) for run in world.started(worker, 8)]
    floods, quiet = attempts[:7], attempts[7]
    writer = writing(worker, attempts)
    rounds = []
    for number in range(7):
        for attempt in floods:
            attempt.ensure_extras().logged().stdout.add(b"flood " * 20_000 + b"\n")
            attempt.extras.log.stderr.add(b"flood " * 20_000 + b"\n")
            attempt.extras.log.lines.add(b"flood " * 20_000 + b"\n")
        quiet.ensure_extras().logged().stdout.add(b"%d\n" % number)
        before = {run: row[6:] for run, row in stored(world).items()}
        assert 0 < writer.run_once() < len(attempts)
        after = {run: row[6:] for run, row in stored(world).items()}
        rounds.append({run for run in after if after[run] != before.get(run)})
        assert len(rounds[-1] - {quiet.run.id}) * 3 * 65536 <= ROUND_BYTES + 3 * 65536
    for two in pairwise(rounds):
        assert {attempt.run.id for attempt in attempts} == set.union(*two), "nobody waits for a third round"


def test_an_attempt_that_lost_its_run_stores_nothing_and_is_counted(world, writing):
    worker = world.worker()
    (run,) = world.started(worker)
    attempt = running(run)
    attempt.ensure_extras().logged().stdout.add(b"mine\n")
    writer = writing(worker, [attempt])
    before = FENCED_WRITES.labels("worker", "log")._value.get()
    world.db.execute("update runs set fence = 2 where id = %s", [run.id])
    assert writer.run_once() == writer.run_once() == 0
    assert stored(world) == {}
    assert FENCED_WRITES.labels("worker", "log")._value.get() == before + 1


def test_secrets_are_removed_and_what_can_be_the_beginning_of_one_waits(world, writing):
    worker = world.worker()
    (run,) = world.started(worker)
    attempt = running(run)
    attempt.redactor = Redactor({"key": "line one of it\nline two of it\n"})
    log = attempt.ensure_extras().logged()
    writer = writing(worker, [attempt])
    log.stdout.add(b"before\nline one of it\n")
    writer.run_once()
    assert stored(world)[run.id][2] == "before\n"
    log.stdout.add(b"line two of it\nafter\n")
    writer.run_once()
    assert stored(world)[run.id][2] == "before\n[secret:key]after\n"


def test_all_output_of_runs_that_are_handed_back_is_stored_before_they_are(world, writing):
    worker = world.worker()
    attempts = [running(run) for run in world.started(worker, 40)]
    for attempt in attempts[:-1]:
        attempt.ensure_extras().logged().stdout.add(b"y" * 65_000 + b"\nno end")
        attempt.extras.log.stderr.add(b"y" * 65_000)
    writing(worker, attempts).save_last(world.db, attempts)
    assert [row[2][-7:] for row in stored(world).values()] == ["\nno end"] * 39
    attempts[0].extras.log.stdout.add(b"too late")
    assert attempts[0].extras.log.stdout.text().endswith("no end")


def test_the_writer_outlives_the_loss_of_its_connection(world, writing):
    worker = world.worker()
    (run,) = world.started(worker)
    attempt = running(run)
    log = attempt.ensure_extras().logged()
    writer = writing(worker, [attempt])
    thread = threading.Thread(target=writer.run, args=(threading.Event(),))
    thread.start()
    try:
        log.stdout.add(b"one\n")
        wait(lambda: stored(world).get(run.id, ("",) * 3)[2] == "one\n")
        assert world.value(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name like '%%logs%%' and pid <> pg_backend_pid()"
        )
        log.stdout.add(b"two\n")
        wait(lambda: stored(world)[run.id][2] == "one\ntwo\n")
    finally:
        writer.close()
        thread.join(PATIENCE)


def test_a_row_of_the_previous_release_has_no_ends(world):
    """It goes on writing its columns only."""
    worker = world.worker()
    (run,) = world.started(worker)
    world.db.execute(
        "insert into attempt_logs (run_id, scheduled_for, fence, attempt, stdout, stderr, log, dropped, written_at)"
        " values (%s, %s, 1, 1, 'old', '', '', 0, now()) on conflict do nothing",
        [run.id, run.scheduled_for],
    )
    assert stored(world)[run.id] == (1, 1, "old", "", "", 0, None, None, None)
    world.record(worker, [outcome(run, RunState.SUCCEEDED)])
