"""What `noonmark dev status` says of parts that do not answer, or are being restarted."""

import json
import os
import socket
import threading
from pathlib import Path

import pytest
from tests.support.cli import call

from noonmark.devstack import containers, state
from noonmark.devstack.answers import kafka_silence, silent_servers
from noonmark.devstack.parts import http_readiness
from noonmark.devstack.processes.processes import ProcessId
from noonmark.devstack.state import ProcessEntry, StackState


@pytest.fixture
def stack(tmp_path: Path) -> StackState:
    """A stack whose servers do not answer; this process stands for its supervisor."""
    own = ProcessId.of(os.getpid())
    return StackState(
        ProcessEntry(own.pid, own.started),
        phase="ready",
        database_url="postgresql://noonmark:s3cret@127.0.0.1:1/noonmark",
        kafka_bootstrap="127.0.0.1:1",
        processes={"kafka": ProcessEntry(own.pid, own.started)},
        log_dir=str(tmp_path / "logs"),
    )


def test_servers_that_run_and_do_not_answer_are_named_without_the_password(tmp_path, stack):
    state.save(tmp_path, stack)
    shown = call("dev", "status", "--state-dir", str(tmp_path), code=1).stdout
    assert "kafka does not answer at 127.0.0.1:1: " in shown
    assert "postgres does not answer at noonmark at 127.0.0.1:1: " in shown
    assert "s3cret" not in shown
    told = json.loads(call("dev", "status", "--state-dir", str(tmp_path), "--json", code=1).stdout)
    assert sorted(told["unanswered"]) == ["kafka", "postgres"]
    assert told["processes"]["kafka"]["running"]


def test_a_server_that_is_being_restarted_is_said_to_be_and_is_not_asked(tmp_path, stack):
    # The supervisor knows no process of it until it is ready again.
    del stack.processes["kafka"]
    stack.restarting = {"kafka": "was killed by SIGKILL"}
    stack.database_url = ""
    assert silent_servers(stack) == {}
    state.save(tmp_path, stack)
    done = call("dev", "status", "--state-dir", str(tmp_path), code=1)
    assert "kafka was killed by SIGKILL; the supervisor is restarting it\n" in done.stdout
    assert "not running" not in done.stdout
    told = json.loads(call("dev", "status", "--state-dir", str(tmp_path), "--json", code=1).stdout)
    assert told["processes"]["kafka"] == {
        "running": False,
        "reason": "restarting: it was killed by SIGKILL",
    }


def test_the_row_of_a_container_says_what_became_of_it(tmp_path, stack, monkeypatch):
    # One that was removed by hand is never restarted, although the supervisor tries.
    del stack.processes["kafka"]
    stack.containers = {"kafka": "c0ffee"}
    stack.restarting = {"kafka": "container was removed"}
    gone = {"container": "c0ffee", "running": False, "reason": "the container was removed"}
    monkeypatch.setattr(containers, "describe_containers", lambda _ids: {"kafka": dict(gone)})
    state.save(tmp_path, stack)
    told = json.loads(call("dev", "status", "--state-dir", str(tmp_path), "--json", code=1).stdout)
    assert told["processes"]["kafka"] == gone


def test_a_file_without_parts_that_restart_is_read_as_before(tmp_path, stack):
    state.save(tmp_path, stack)
    path = state.state_file(tmp_path)
    data = json.loads(path.read_text())
    del data["restarting"]
    path.write_text(json.dumps(data))
    found = state.load(tmp_path)
    assert found is not None
    assert found.restarting == {}


def test_a_broker_that_does_not_answer_is_told_within_the_time():
    assert kafka_silence("127.0.0.1:1", 0.3).startswith("does not answer at 127.0.0.1:1: ")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"", "does not answer"),
        (b"nonsense\r\n\r\n", "does not answer"),
        (b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "it answers 503"),
    ],
)
def test_a_service_that_ends_in_the_middle_of_its_answer_does_not_answer(answer, told):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        found = http_readiness(f"http://127.0.0.1:{server.getsockname()[1]}/readyz")
        thread.join()
    assert told in found
