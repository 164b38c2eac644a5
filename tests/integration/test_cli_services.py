"""Where services that are started by hand take their addresses from."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from noonmark.devstack import state
from noonmark.devstack.processes.processes import ProcessId

STOP_SECONDS = 60.0


@pytest.fixture
def trigger(tmp_path):
    """Starts `noonmark trigger` in an empty folder, without any variable of ours."""
    bare = {k: v for k, v in os.environ.items() if not k.startswith(("NOONMARK_", "PG"))}

    @contextmanager
    def start(**env):
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "noonmark.cli.main", "trigger"],
            cwd=tmp_path,
            env={**bare, **env},
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=STOP_SECONDS)
            finally:
                process.kill()
        assert process.returncode == 0

    return start


def line_of(process, event):
    """The first line of this event, as an object."""
    for line in process.stderr:
        if (found := json.loads(line))["event"] == event:
            return found
    raise AssertionError(f"{event} was not logged")


@pytest.fixture
def stack(tmp_path, database_url):
    """A development stack in the folder, as far as others see it: this process is its supervisor."""
    folder = tmp_path / ".noonmark"
    me = ProcessId.of(os.getpid())
    with state.hold(folder):
        entry = state.ProcessEntry(me.pid, me.started)
        state.save(folder, state.StackState(entry, "ready", database_url, "127.0.0.1:1"))
        yield


@pytest.mark.usefixtures("stack")
def test_a_service_in_the_folder_of_a_running_stack_uses_its_addresses_and_says_so(trigger):
    with trigger() as process:
        found = line_of(process, "addresses_found")
        assert line_of(process, "service_started")
    assert (found["database_from"], found["kafka_from"]) == ("dev stack", "dev stack")
    assert found["kafka"] == "127.0.0.1:1"
    assert "@" not in found["database"]


@pytest.mark.usefixtures("stack")
def test_what_the_environment_names_goes_before_a_running_stack(trigger, database_url):
    with trigger(NOONMARK_DATABASE_URL=database_url) as process:
        found = line_of(process, "addresses_found")
        assert line_of(process, "service_started")
    assert (found["database_from"], found["kafka_from"]) == ("environment", "dev stack")


def test_where_nothing_names_a_database_the_first_complaint_says_so(trigger):
    # libpq takes the port from here, as the default URL has none: nobody answers there.
    with trigger(PGPORT="1") as process:
        found = line_of(process, "addresses_found")
        first = line_of(process, "database_unavailable")
        second = line_of(process, "database_unavailable")
    assert (found["database_from"], found["kafka_from"]) == ("default", "default")
    assert first["hint"] == (
        "NOONMARK_DATABASE_URL is not set, so its default postgresql://localhost/noonmark was used"
    )
    assert "hint" not in second


def test_a_database_that_was_named_is_not_taken_for_a_default(trigger):
    with trigger(NOONMARK_DATABASE_URL="postgresql://127.0.0.1:1/jobs") as process:
        assert "hint" not in line_of(process, "database_unavailable")
