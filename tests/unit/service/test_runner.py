"""The life of a service process. Where it ends itself or is signalled, it is a real process."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request

import pytest
import structlog

from noonmark.service import runner
from noonmark.service.runner import StartError, StoppedError, run_service
from noonmark.settings import Settings


class Named:
    def __init__(self, name, run):
        self.name = name
        self.run = run


WAITS = Named("waits", lambda stop: stop.wait())


def burn(stop):
    raise RuntimeError("the disk caught fire")


@pytest.fixture
def run(capfd):
    """Run a service here, in the main thread: returns its exit code and log lines."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level

    def here(build, **settings):
        code = run_service("probe", Settings(**settings), build)
        return code, [json.loads(line) for line in capfd.readouterr().err.splitlines()]

    yield here
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def events(lines):
    return [line["event"] for line in lines]


def signals_itself(number):
    """A loop that signals its own process once, then waits like any other."""

    def loop(stop):
        os.kill(os.getpid(), number)
        stop.wait()

    return Named("signals_itself", loop)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_stops_the_loops_and_the_process_ends_with_zero(run, number):
    before = signal.getsignal(number)
    code, lines = run(lambda service: [WAITS, signals_itself(number)])
    assert code == 0
    assert events(lines) == ["health_listening", "service_started", "service_stopping", "service_stopped"]
    assert signal.getsignal(number) is before


def test_a_signal_that_the_main_thread_does_not_get_stops_the_service(run):
    # The kernel chooses the thread. A signal just before the main thread's wait has the same effect, but rarely.
    def loop(stop):
        while sys._current_frames()[threading.main_thread().ident].f_code.co_name != "wait":
            time.sleep(0.01)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        stop.wait()

    code, lines = run(lambda service: [Named("signals_its_thread", loop)])
    assert code == 0
    assert events(lines)[-1] == "service_stopped"


def test_a_loop_that_dies_takes_the_service_with_it(run):
    code, lines = run(lambda service: [WAITS, Named("burns", burn)])
    assert code == 1
    (failure,) = [line for line in lines if line["event"] == "loop_failed"]
    assert failure["loop"] == "burns"
    assert "the disk caught fire" in failure["exception"]


def test_a_loop_that_returns_early_counts_as_dead(run):
    code, lines = run(lambda service: [WAITS, Named("short", lambda stop: None)])
    assert code == 1
    assert "loop_ended" in events(lines)


def test_a_dead_loop_shows_in_livez_while_the_service_ends(run):
    answers = []

    def build(service):
        def ask(stop):
            stop.wait()
            with pytest.raises(urllib.error.HTTPError) as answer:
                urllib.request.urlopen(f"http://127.0.0.1:{service.settings.metrics_port}/livez", timeout=5)
            answers.append(json.load(answer.value))

        return [Named("asks", ask), Named("burns", burn)]

    with socket.create_server(("127.0.0.1", 0)) as probe:
        free_port = probe.getsockname()[1]
    assert run(build, metrics_port=free_port)[0] == 1
    assert answers[0]["stuck"] == {"burns": "the loop has ended"}


def test_a_service_is_ready_only_once_its_loops_run_and_no_longer_once_it_ends(run):
    said = []

    def build(service):
        said.append(service.health.ready())

        def end(stop):
            while not service.health.ready()[0]:
                time.sleep(0.001)
            said.append(service.health.ready())
            os.kill(os.getpid(), signal.SIGTERM)
            stop.wait()

        def look(stop):
            stop.wait()
            while service.health.ready()[0]:
                time.sleep(0.001)
            said.append(service.health.ready())

        return [Named("ends", end), Named("looks", look)]

    assert run(build)[0] == 0
    assert [body["conditions"]["running"] for _, body in said] == ["starting", "ok", "stopping"]
    assert [ready for ready, _ in said] == [False, True, False]


def test_a_stop_during_the_build_is_obeyed(run):
    def build(service):
        os.kill(os.getpid(), signal.SIGTERM)
        assert service.stop.wait(10)
        raise StoppedError("stopped while connecting")

    assert run(build)[0] == 0


def test_a_known_reason_not_to_start_is_a_sentence_without_traceback(run):
    def build(service):
        raise StartError("Postgres has no tables of noonmark: run `noonmark db migrate`.")

    code, lines = run(build)
    assert code == 2
    assert lines[-1]["reason"].startswith("Postgres has no tables")
    assert "exception" not in lines[-1]


def test_traces_without_their_packages_are_a_known_reason(run, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    code, lines = run(lambda service: [WAITS], otlp_endpoint="http://127.0.0.1:9")
    assert code == 2
    assert 'install "noonmark[tracing]"' in lines[-1]["reason"]
    assert "exception" not in lines[-1]


def test_an_unknown_reason_not_to_start_comes_with_its_traceback(run):
    code, lines = run(lambda service: burn(None))
    assert code == 2
    assert "the disk caught fire" in lines[-1]["exception"]


def test_a_wrong_fault_point_is_reported(run, monkeypatch):
    monkeypatch.setenv("NOONMARK_FAULT", "trigger.sometimes")
    code, lines = run(lambda service: [WAITS])
    assert code == 2
    assert "'trigger.sometimes' is not a fault point" in lines[-1]["reason"]


def test_a_taken_port_is_reported_and_the_service_does_not_start(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, lines = run(lambda service: [WAITS], metrics_port=taken.getsockname()[1])
    assert code == 2
    assert "is used by another process" in lines[-1]["reason"]


def test_a_thread_beside_the_loops_that_dies_is_logged(run):
    def spawn(stop):
        thread = threading.Thread(target=burn, args=(stop,), name="helper")
        thread.start()
        thread.join()
        os.kill(os.getpid(), signal.SIGTERM)
        stop.wait()

    code, lines = run(lambda service: [Named("spawns", spawn)])
    assert code == 0
    (failure,) = [line for line in lines if line["event"] == "thread_failed"]
    assert failure["thread"] == "helper"
    assert "the disk caught fire" in failure["exception"]


def test_the_grace_after_a_failure_is_below_five_seconds():
    assert runner.FAILURE_GRACE_SECONDS < 5


PROGRAM = """
import ctypes, sys, threading
from noonmark.core import faults
from noonmark.service import runner
from noonmark.settings import Settings

class Named:
    def __init__(self, name, run):
        self.name, self.run = name, run

def fails(stop):
    raise RuntimeError("the disk caught fire")

def deaf(stop):
    threading.Event().wait()

def hurried(service):
    def run(stop):
        service.hurry.wait()
        service.log.info("hurried")
        deaf(stop)
    return run

def crashes(stop):
    # As a C library that finds its own state broken does; once the test says so.
    sys.stdin.readline()
    ctypes.CDLL(None).abort()

def faulty(stop):
    faults.hit("trigger.before_commit")
    stop.wait()

runner.FAILURE_GRACE_SECONDS = 0.2
runner.HURRY_SECONDS = {hurry}
{build}
sys.exit(runner.run_service("probe", Settings.load(drain_seconds=600), build))
"""


@pytest.fixture
def process():
    """Start the program above with a build of its own."""
    started = []

    def begin(build, hurry=0.2, **env):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("NOONMARK_")}
        source = PROGRAM.format(build=textwrap.dedent(build), hurry=hurry)
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", source],
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=clean | env,
            )
        )
        return started[-1]

    yield begin
    for child in started:
        if child.poll() is None:
            child.kill()
        child.communicate()


def until(child, event):
    for line in child.stderr:
        if json.loads(line)["event"] == event:
            return
    raise AssertionError(f"the process ended without {event!r}")


def test_a_second_signal_leaves_deaf_loops_a_moment_and_a_third_none(process):
    child = process("build = lambda service: [Named('deaf', deaf)]")
    until(child, "service_started")
    child.terminate()
    until(child, "service_stopping")
    child.terminate()
    (stuck,) = [line for line in map(json.loads, child.stderr) if line["event"] == "loops_did_not_stop"]
    assert stuck["exit_code"] == child.wait(10) == 130


def test_a_third_signal_ends_the_process_at_once(process):
    child = process("build = lambda service: [Named('deaf', hurried(service))]", hurry=600)
    until(child, "service_started")
    child.terminate()
    until(child, "service_stopping")
    child.terminate()
    until(child, "hurried")
    child.terminate()
    assert child.wait(10) == 130
    assert "loops_did_not_stop" not in child.stderr.read()


def test_a_second_signal_lets_loops_end_what_takes_its_time(process):
    child = process(
        "build = lambda service: [Named('patient', lambda stop: service.hurry.wait())]", hurry=600
    )
    until(child, "service_started")
    child.terminate()
    until(child, "service_stopping")
    child.terminate()
    lines = [json.loads(line) for line in child.stderr]
    assert child.wait(10) == 130
    assert lines[-1]["event"] == "service_stopped"


def test_a_dead_loop_beside_a_deaf_one_ends_the_process_although_the_drain_is_long(process):
    child = process("build = lambda service: [Named('deaf', deaf), Named('fails', fails)]")
    lines = [json.loads(line) for line in child.communicate(timeout=10)[1].splitlines()]
    assert child.returncode == 1
    (stuck,) = [line for line in lines if line["event"] == "loops_did_not_stop"]
    assert stuck["loops"] == ["deaf"]


def test_an_armed_fault_point_kills_the_process(process):
    child = process(
        "build = lambda service: [Named('claims', faulty)]", NOONMARK_FAULT="trigger.before_commit"
    )
    assert child.wait(10) == -signal.SIGKILL


def test_a_crash_in_c_shows_the_stack_of_every_thread(process):
    child = process("build = lambda service: [Named('deaf', deaf), Named('crashes', crashes)]")
    until(child, "service_started")
    print(file=child.stdin, flush=True)
    output = child.stderr.read()
    assert child.wait(10) == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in output
    assert "in crashes" in output
    assert "in deaf" in output
