"""Progress, checkpoints and logs: written for the attempt that owns the run, and found by the next one."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import orjson
import psycopg
import pytest
from tests.integration.store.world import World, outcome
from tests.unit.worker.hands import hand

from noonmark.attempts.notes import NoteWriter
from noonmark.core.attempt_key import attempt_key
from noonmark.core.states import RunState
from noonmark.handlers import Fenced
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.outcomes.earlier_attempts import read_earlier_attempts
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.outcomes.notes import Note, save_notes
from noonmark.store.runs.worker_lease import Identity
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.metrics import FENCED_WRITES

PATIENCE = 60


def note(run, *, fence=1, progress=None, message="", checkpoint=None) -> Note:
    data = orjson.dumps(checkpoint) if checkpoint is not None else None
    return Note(run, fence, progress, message, data, version=1)


def kept(world: World):
    rows = world.rows("select run_id, fence, progress, message, checkpoint from run_notes")
    return {row.pop("run_id"): row for row in rows}


def test_notes_of_a_batch_are_written_at_once_and_replaced(world):
    worker = world.worker()
    first, second = world.started(worker, 2)
    save_notes(
        world.db, *worker, [note(first, progress=0.25, message="a"), note(second, checkpoint={"at": 7})]
    )

    saving = save_notes(world.db, *worker, [note(first, progress=0.5, message="b\0")])

    assert saving == ({first.id}, set())
    assert kept(world) == {
        first.id: {"fence": 1, "progress": 0.5, "message": "b\\x00", "checkpoint": None},
        second.id: {"fence": 1, "progress": None, "message": "", "checkpoint": {"at": 7}},
    }


def test_progress_leaves_the_checkpoint_of_an_earlier_attempt(world):
    worker = world.worker()
    (run,) = world.started(worker, fence=1)
    save_notes(world.db, *worker, [note(run, checkpoint=[1, 2])])
    world.db.execute("update runs set fence = 2 where id = %s", [run.id])

    save_notes(world.db, *worker, [note(run, fence=2, progress=0.1)])

    assert kept(world)[run.id] == {"fence": 2, "progress": 0.1, "message": "", "checkpoint": [1, 2]}
    assert read_earlier_attempts(world.db, [run.id]) == {run.id: (b"[1,2]", 0)}


@pytest.mark.parametrize("guard", ["fence", "worker", "epoch", "queued", "cancelling", "succeeded"])
def test_a_note_that_any_guard_refuses_is_not_written(world, guard):
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

    assert save_notes(world.db, *who, [note(run, fence=fence, checkpoint=1)]) == (set(), set())
    assert kept(world) == {}


def test_a_run_that_is_being_changed_is_left_for_the_next_round_and_nobody_waits(world):
    worker = world.worker()
    locked, free = world.started(worker, 2)
    other = world.another()
    with other.transaction():
        other.execute("select from runs where id = %s for update", [locked.id])
        saving = save_notes(world.db, *worker, [note(locked, progress=1), note(free, progress=1)])
    assert saving == ({free.id}, {locked.id})


def test_a_later_attempt_cannot_begin_before_a_note_of_the_earlier_is_committed(world):
    worker = world.worker()
    (run,) = world.started(worker)
    other = world.another()
    with world.db.transaction():
        save_notes(world.db, *worker, [note(run, checkpoint="safe")])
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("select from runs where id = %s for no key update nowait", [run.id])


def test_an_outcome_takes_along_what_was_not_written_yet(world):
    worker = world.worker()
    told, written, quiet = world.started(worker, 3)
    extras = OutcomeExtras(note=note(told, progress=0.9, checkpoint={"n": 1}))
    extras.logged().add("a line")
    old = note(written, checkpoint="old")
    old.saved = old.version

    world.record(
        worker,
        [
            outcome(told, RunState.RETRYING, error="boom", extras=extras),
            outcome(written, extras=OutcomeExtras(note=old)),
            outcome(quiet),
        ],
    )

    assert kept(world) == {told.id: {"fence": 1, "progress": 0.9, "message": "", "checkpoint": {"n": 1}}}
    assert world.rows("select run_id, fence, attempt, stdout, log, dropped from attempt_logs") == [
        {"run_id": told.id, "fence": 1, "attempt": 1, "stdout": "", "log": "a line\n", "dropped": 0}
    ]


def test_an_outcome_that_is_fenced_leaves_neither_note_nor_log(world):
    worker = world.worker()
    (run,) = world.started(worker)
    extras = OutcomeExtras(note=note(run, fence=9, checkpoint=1))
    extras.logged().add("late")
    world.record(worker, [outcome(run, fence=9, extras=extras)])
    assert kept(world) == {}
    assert world.count("attempt_logs") == 0


def test_logs_that_are_no_proper_text_are_kept_as_text(world):
    worker = world.worker()
    (run,) = world.started(worker)
    extras = OutcomeExtras()
    extras.logged().stdout.add(b"a\0b\xff")
    extras.logged().add("c\0d\ud800")
    world.record(worker, [outcome(run, extras=extras)])
    assert world.rows("select stdout, log from attempt_logs") == [
        {"stdout": "a\\x00b\ufffd", "log": "c\\x00d\\ud800\n"}
    ]


def test_the_log_of_an_attempt_is_bounded(world):
    worker = world.worker()
    (run,) = world.started(worker)
    extras = OutcomeExtras()
    for n in range(3000):
        extras.logged().add(f"{n:099d}")
    world.record(worker, [outcome(run, extras=extras)])
    (row,) = world.rows("select log, dropped from attempt_logs")
    assert (len(row["log"]), row["dropped"]) == (65_536, 300_000 - 65_536)
    assert row["log"].endswith("2999\n")


# the writer


@pytest.fixture
def writer(emptied_database) -> Iterator[Callable[..., NoteWriter]]:
    running: list[tuple[NoteWriter, threading.Thread]] = []

    def start(identity: Callable[[], Identity]) -> NoteWriter:
        settings = Settings(database_url=emptied_database)
        service = Service("worker", settings, Health(), threading.Event(), get_logger())
        notes = NoteWriter(service, identity)
        thread = threading.Thread(target=notes.run, args=[service.stop])
        thread.start()
        running.append((notes, thread))
        return notes

    yield start
    for notes, thread in running:
        notes.close()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def in_hand(run, fence=1):
    made = hand()
    made.run, made.fence, made.key = run, fence, attempt_key(run.id, fence)
    return made


def test_whoever_waits_for_a_checkpoint_finds_it_committed(world, writer):
    worker = world.worker()
    (run,) = world.started(worker)
    notes = writer(lambda: worker)
    notes.checkpoint(in_hand(run), b'{"n":1}').wait(PATIENCE)
    assert kept(world)[run.id]["checkpoint"] == {"n": 1}


def test_an_async_handler_waits_on_its_loop(world, writer):
    worker = world.worker()
    (run,) = world.started(worker)
    notes, held = writer(lambda: worker), in_hand(run)

    async def handler():
        await notes.checkpoint(held, b"1")
        await notes.checkpoint(held, b"2")

    asyncio.run(handler())
    assert kept(world)[run.id]["checkpoint"] == 2


def test_the_latest_note_of_a_run_is_written_and_an_earlier_waiter_is_content(world, writer):
    worker = world.worker()
    (run,) = world.started(worker)
    notes, held = writer(lambda: worker), in_hand(run)
    saved = [notes.checkpoint(held, str(n).encode()) for n in range(1000)]
    notes.progress(held, 0.5, "half")
    for one in saved:
        one.wait(PATIENCE)
    assert kept(world)[run.id] == {"fence": 1, "progress": 0.5, "message": "half", "checkpoint": 999} or (
        kept(world)[run.id]["checkpoint"] == 999
    )


def test_a_stale_attempt_that_waits_is_told_so_and_counted(world, writer):
    worker = world.worker()
    (run,) = world.started(worker)
    notes, held = writer(lambda: worker), in_hand(run)
    before = FENCED_WRITES.labels("worker", "note")._value.get()
    world.db.execute("update runs set fence = 2 where id = %s", [run.id])
    with pytest.raises(Fenced):
        notes.checkpoint(held, b"1").wait(PATIENCE)
    assert kept(world) == {}
    assert FENCED_WRITES.labels("worker", "note")._value.get() == before + 1


def test_a_checkpoint_that_postgres_refuses_costs_no_other_attempt_its_own(world, writer):
    worker = world.worker()
    runs = world.started(worker, 5)
    notes = writer(lambda: worker)
    saved = [notes.checkpoint(in_hand(run), b"{" if n == 3 else b"%d" % n) for n, run in enumerate(runs)]
    with pytest.raises(RuntimeError, match="the checkpoint cannot be stored"):
        saved[3].wait(PATIENCE)
    for n in (0, 1, 2, 4):
        saved[n].wait(PATIENCE)
    assert [kept(world).get(run.id, {}).get("checkpoint") for run in runs] == [0, 1, 2, None, 4]


def test_an_attempt_that_ended_here_is_let_go(world, writer):
    worker = world.worker()
    (run,) = world.started(worker)
    held = in_hand(run)
    service = Service("worker", Settings(), Health(), threading.Event(), get_logger())
    notes = NoteWriter(service, lambda: worker)  # nobody writes
    saved = notes.checkpoint(held, b"1")
    notes.forget([held.key])
    with pytest.raises(Fenced):
        saved.wait(PATIENCE)
    assert held.extras.note.version > held.extras.note.saved  # goes with the outcome


def test_what_was_told_is_written_before_runs_are_handed_back(world, writer):
    worker = world.worker()
    runs = world.started(worker, 1200)
    notes = writer(lambda: worker)
    for run in runs:
        notes.checkpoint(in_hand(run), b"1")
    notes.settle(PATIENCE)
    assert world.count("run_notes") == 1200


def test_a_locked_run_gets_its_note_when_it_is_free(world, writer):
    worker = world.worker()
    (run,) = world.started(worker)
    notes, other = writer(lambda: worker), world.another()
    with other.transaction():
        other.execute("select from runs where id = %s for update", [run.id])
        saved = notes.checkpoint(in_hand(run), b"1")
        with pytest.raises(TimeoutError):
            saved.wait(0.3)
    saved.wait(PATIENCE)
    assert world.count("run_notes") == 1


def test_the_writer_outlives_the_loss_of_its_connection(world, writer):
    worker = world.worker()
    (run,) = world.started(worker)
    notes, held = writer(lambda: worker), in_hand(run)
    notes.checkpoint(held, b"1").wait(PATIENCE)
    assert world.value(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name like '%%notes%%' and pid <> pg_backend_pid()"
    )
    notes.checkpoint(held, b"2").wait(PATIENCE)
    assert kept(world)[run.id]["checkpoint"] == 2
