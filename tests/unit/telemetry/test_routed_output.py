"""What handlers print goes to their attempts; everything else stays where it was."""

import asyncio
import io
import json
import logging
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.unit.worker.bench import Bench
from tests.unit.worker.hands import hand

from noonmark.attempts.printed_output import finish_lines, store_printed
from noonmark.attempts.redaction import Redactor
from noonmark.telemetry import logs, routed_output
from noonmark.telemetry.log_bounds import PER_ATTEMPT, LogBounds
from noonmark.telemetry.routed_output import print_for


@pytest.fixture
def route(monkeypatch):
    """Route the streams of the process, and return what reads those below; called by the test itself.

    pytest replaces both streams between its fixtures and the test.
    """

    def begin():
        below = {
            name: io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for name in ("stdout", "stderr")
        }
        for name, stream in below.items():
            monkeypatch.setattr(sys, name, stream)
        routed_output.route_output(store_printed)
        monkeypatch.setattr(logs, "_bounds", LogBounds())
        logs.configure_logs("worker")
        return lambda name: below[name].buffer.getvalue().decode()

    yield begin
    print_for(None)
    routed_output._routed.clear()
    monkeypatch.undo()


def events(real):
    return [json.loads(line) for line in real("stderr").splitlines()]


@pytest.fixture
def bench():
    bench = Bench()
    yield bench
    bench.executors.close()


def output(outcome):
    log = outcome.extras.log
    return log.stdout.text(), log.stderr.text()


def test_handlers_on_threads_and_on_the_loop_print_to_their_own_attempts(route, bench):
    real = route()
    together = threading.Barrier(2)

    def sync(ctx):
        print("sync", ctx.payload)
        together.wait(20)
        print("wrong", file=sys.stderr)

    async def asynchronous(ctx):
        print("async", ctx.payload)
        await asyncio.gather(asyncio.to_thread(print, "from a thread"), a_task())
        sys.stderr.write("no end of the line")

    async def a_task():
        print("from a task")

    bench.registry.add(sync, name="sync")
    bench.registry.add(asynchronous, name="async")
    begun = [bench.begin(name, payload=n) for n, name in enumerate(["sync", "sync", "async", "async"])]
    # Each sync handler waits for the other, on another thread.
    bench.wait(lambda: bench.executors.threads.tend() or len(bench.outcomes) == 4, "all to end")
    one, two, three, four = map(bench.end, begun)
    assert [output(one), output(two)] == [("sync 0\n", "wrong\n"), ("sync 1\n", "wrong\n")]
    for number, outcome in ((2, three), (3, four)):
        out, err = output(outcome)
        assert sorted(out.splitlines()) == [f"async {number}", "from a task", "from a thread"]
        assert err == "no end of the line"
    print("the worker itself")
    assert real("stdout") == "the worker itself\n"
    told = [(event["event"], event["stream"], event["message"]) for event in events(real)]
    assert ("handler_printed", "stdout", "sync 0") in told
    assert ("handler_printed", "stderr", "no end of the line") in told
    assert {event["run_id"] for event in events(real)} == {str(held.run.id) for held in begun}


def test_a_handler_that_prints_nothing_has_no_log(route, bench):
    route()
    bench.registry.add(lambda ctx: None, name="quiet")
    assert bench.run("quiet")["quiet"].extras is None


def test_a_thread_that_a_handler_starts_prints_to_the_worker(route, bench):
    real = route()

    def starts(ctx):
        thread = threading.Thread(target=print, args=("from my thread",))
        thread.start()
        thread.join()

    bench.registry.add(starts, name="starts")
    assert bench.run("starts")["starts"].extras is None
    assert real("stdout") == "from my thread\n"


def test_what_is_printed_after_the_end_goes_to_the_worker(route, bench):
    real = route()
    begun, late = threading.Event(), threading.Event()
    ended = threading.Event()

    def hangs(ctx):
        print("in time")
        begun.set()
        late.wait(20)
        print("too late")
        ended.set()

    bench.registry.add(hangs, name="hangs")
    held = bench.begin("hangs", timeout_seconds=0.01)
    assert begun.wait(20)
    bench.executors.end_overdue(held.began_at + 10)
    outcome = bench.end(held)
    late.set()
    assert ended.wait(20)
    assert output(outcome)[0] == "in time\n"
    assert real("stdout") == "too late\n"


def test_logging_is_not_output_of_a_handler_and_never_goes_in_circles(route, bench):
    real = route()
    own = logging.StreamHandler(sys.stderr)

    def logs_a_lot(ctx):
        ctx.log("by the context")
        logging.getLogger("mine").warning("by the root")
        logger = logging.getLogger("mine.own")
        logger.addHandler(own)
        logger.warning("by a handler of its own")
        logger.removeHandler(own)

    bench.registry.add(logs_a_lot, name="logs")
    outcome = bench.run("logs")["logs"]
    assert output(outcome) == ("", "by a handler of its own\n")
    assert outcome.extras.log.lines.text() == "by the context\n"
    assert [(event["event"], event["message"]) for event in events(real)] == [
        ("handler_logged", "by the context"),
        ("library_message", "by the root"),
        ("handler_printed", "by a handler of its own"),
        ("library_message", "by a handler of its own"),
    ]


def test_secrets_are_removed_from_both(route):
    real = route()
    attempt = hand()
    attempt.redactor = Redactor({"key": "hunter2-hunter2"})
    print_for(attempt)
    print("a hunter2-hunter2", end="!\n")
    finish_lines(attempt)
    attempt.extras.log.move(attempt.current_redactor, final=True)
    assert attempt.extras.log.stdout.text() == "a [secret:key]!\n"
    assert [event["message"] for event in events(real)] == ["a [secret:key]!"]


def test_a_flood_is_bounded_in_the_log_of_the_worker_and_in_the_attempt(route):
    real = route()
    attempt = hand()
    print_for(attempt)
    for number in range(3 * PER_ATTEMPT.lines):
        print("row", number, "x" * 40)
    print("y" * 10_000, end="")
    finish_lines(attempt)
    assert PER_ATTEMPT.lines // 2 < len(events(real)) <= PER_ATTEMPT.lines
    assert len(attempt.extras.log.stdout.text()) == 65_536


def test_bytes_and_several_lines_at_once_are_output_too(route):
    real = route()
    attempt = hand()
    print_for(attempt)
    sys.stdout.buffer.write(b"\xc3")
    sys.stdout.buffer.write(b"\xa9\n")
    sys.stdout.writelines(["one\n", "two\nthr", "ee"])
    print("\ud800")
    sys.stdout.flush()
    finish_lines(attempt)
    assert attempt.extras.log.stdout.text() == "é\none\ntwo\nthree\\ud800\n"
    assert [event["message"] for event in events(real)] == ["é", "one", "two", "three\\ud800"]


def test_a_routed_stream_is_like_the_one_below(route):
    real = route()
    assert (sys.stdout.encoding, sys.stdout.isatty(), sys.stdout.writable()) == ("utf-8", False, True)
    sys.stdout.close()
    sys.stdout.buffer.write(b"binary\n")
    sys.stdout.reconfigure(errors="replace")
    print("text")
    assert real("stdout") == "binary\ntext\n"
    with pytest.raises(io.UnsupportedOperation):
        sys.stdout.fileno()


def test_the_context_of_a_pool_is_its_own(route):
    real = route()
    attempt = hand()
    print_for(attempt)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(print, "elsewhere").result()
    finish_lines(attempt)
    assert attempt.extras is None
    assert real("stdout") == "elsewhere\n"


@pytest.mark.parametrize("name", ["sync", "async"])
def test_a_handler_that_leaves_a_redirection_behind_loses_no_later_output(route, bench, name):
    real = route()
    router = sys.stdout

    def sync(ctx):
        print("seen", ctx.payload)
        sys.stdout, sys.stderr = io.StringIO(), None
        ctx.log("logged")

    async def asynchronous(ctx):
        sync(ctx)

    bench.registry.add(sync, name="sync")
    bench.registry.add(asynchronous, name="async")
    for number in range(2):
        ended = bench.end(bench.begin(name, payload=number))
        assert output(ended)[0] == f"seen {number}\n"
        assert sys.stdout is router
    assert [line["event"] for line in events(real)].count("handler_logged") == 2


def test_a_fork_prints_to_the_process(tmp_path):
    script = """
import os, sys
from noonmark.telemetry.routed_output import print_for, route_output
route_output(lambda attempt, name, data: True)
print_for("an attempt")
print("lost to the attempt", flush=True)
if os.fork() == 0:
    print("child", flush=True)
    os._exit(0)
os.wait()
"""
    import subprocess  # noqa: PLC0415

    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout == "child\n"
