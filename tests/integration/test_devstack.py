"""The development stack for real: servers that crash and recover, a supervisor that leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from psycopg.conninfo import conninfo_to_dict
from tests.support import standin_service_path
from tests.support.cli import call
from tests.support.stack import Kafka, Postgres

from noonmark.devstack import state
from noonmark.devstack.access import ensure_key
from noonmark.devstack.options import ServiceSpec, StackOptions
from noonmark.devstack.postgres.server import start_postgres
from noonmark.devstack.processes.errors import DevStackError
from noonmark.devstack.processes.ports import free_port
from noonmark.devstack.processes.processes import ProcessId

DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")
UP = (
    "import sys; from noonmark.devstack import commands; from noonmark.devstack.options import StackOptions;"
    "sys.exit(commands.up(StackOptions.from_json(sys.argv[1])))"
)
CLI = (sys.executable, "-c", "from noonmark.cli.operations.dev import app; app()")


def wait_for(condition: Callable[[], Any], what: str, timeout_seconds: float = 20) -> Any:
    give_up_at = time.monotonic() + timeout_seconds
    while not (found := condition()):
        assert time.monotonic() < give_up_at, f"waited {timeout_seconds} s for {what}"
        time.sleep(0.05)
    return found


def standin(name: str, *flags: str) -> ServiceSpec:
    return ServiceSpec(name, (sys.executable, standin_service_path(), *flags), grace_seconds=1.0)


def options(folder: Path, *services: ServiceSpec, **more: Any) -> StackOptions:
    migrate = (sys.executable, "-c", "print('migrated')")
    return StackOptions(state_dir=folder, services=services, migrate=migrate, as_json=True, **more)


def up(stack: StackOptions, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs `up` to its end, as somebody who waits for it does."""
    return subprocess.run(
        [sys.executable, "-c", UP, stack.to_json()],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def dev(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*CLI, *arguments], capture_output=True, text=True, timeout=90, check=False)


def family(pid: int) -> list[ProcessId]:
    process = psutil.Process(pid)
    return [ProcessId.of(one.pid) for one in (process, *process.children(recursive=True))]


def restarting(folder: Path) -> dict[str, str]:
    current = state.load(folder)
    return current.restarting if current else {}


def restarts(folder: Path, name: str) -> int:
    current = state.load(folder)
    entry = current and current.processes.get(name)
    return entry.restarts if entry else 0


@pytest.fixture
def given(postgres_server: Postgres, kafka_server: Kafka) -> dict[str, str]:
    """Servers that are there already, so that a test is about services only."""
    return {
        "NOONMARK_DATABASE_URL": postgres_server.url,
        "NOONMARK_KAFKA_BOOTSTRAP": kafka_server.bootstrap,
    }


@contextmanager
def foreground(stack: StackOptions, **env: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`up` in the foreground, up when the body runs; ended with SIGKILL if the body fails."""
    with subprocess.Popen(
        [sys.executable, "-c", UP, stack.to_json()],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.stderr.read() if process.stderr else ""
            yield process, json.loads(line)
        finally:
            process.kill()


@pytest.mark.parametrize("binaries", [None, DEBIAN_15], ids=["wheel", "debian-15"])
def test_a_killed_postgres_comes_back_with_what_was_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, binaries: Path | None
) -> None:
    if binaries:
        if not binaries.exists():
            pytest.skip(f"{binaries} is not installed")
        monkeypatch.setenv("NOONMARK_PG_BIN", str(binaries))
    server = start_postgres(tmp_path / "pg")
    with psycopg.connect(server.url) as connection:
        connection.execute("create table kept (n int)")
        connection.execute("insert into kept values (42)")
    server.kill()
    assert not server.is_running()

    again = start_postgres(tmp_path / "pg", port=server.port)
    try:
        with psycopg.connect(again.url) as connection:
            assert connection.execute("select n from kept").fetchall() == [(42,)]
            shown = connection.execute(
                "select current_setting('fsync'), current_setting('synchronous_commit'), inet_server_addr()::text"
            ).fetchone()
        assert shown == ("on", "on", "127.0.0.1/32")
        with pytest.raises(DevStackError, match=f"process id {again.pid} already runs"):
            start_postgres(tmp_path / "pg")
    finally:
        assert again.stop()


def test_postgres_refuses_a_wrong_password_and_keeps_the_right_one_to_its_owner(tmp_path: Path) -> None:
    server = start_postgres(tmp_path / "pg")
    try:
        assert (tmp_path / "pg" / "password").stat().st_mode & 0o077 == 0
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(f"postgresql://noonmark:guessed@127.0.0.1:{server.port}/noonmark")
    finally:
        server.stop()


def test_postgres_takes_a_stale_pid_file_whose_number_another_program_has(tmp_path: Path) -> None:
    server = start_postgres(tmp_path / "pg")
    server.stop()
    (tmp_path / "pg" / "pgdata" / "postmaster.pid").write_text(f"{os.getpid()}\n/nowhere\n0\n1\n\n\n\n")
    start_postgres(tmp_path / "pg").stop()


@pytest.fixture(scope="module")
def stack_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for the tests that start everything: a broker is formatted once."""
    return tmp_path_factory.mktemp("stack") / "s"


def test_up_starts_all_says_so_when_asked_twice_and_down_leaves_no_process(stack_dir: Path) -> None:
    stack = options(stack_dir, standin("intake"), standin("worker", "--with-child"), detach=True)
    started = up(stack)
    assert started.returncode == 0, started.stderr
    addresses = json.loads(started.stdout)
    assert set(addresses["pids"]) == {"supervisor", "postgres", "kafka", "intake", "worker"}
    with psycopg.connect(addresses["database_url"]) as connection:
        connection.execute("select 1")

    second = up(stack)
    assert second.returncode == 1
    assert f"already running in {stack_dir}, pid {addresses['pids']['supervisor']}" in second.stderr
    shown = json.loads(dev("status", "--json", "--state-dir", str(stack_dir)).stdout)
    assert all(row["running"] for row in shown["processes"].values())
    assert shown["processes"]["worker"]["ready"]

    check_that_a_killed_broker_comes_back_with_its_records(stack_dir, addresses)
    everything = family(addresses["pids"]["supervisor"])
    ended = dev("down", "--state-dir", str(stack_dir))
    assert ended.returncode == 0, ended.stderr
    assert not [process for process in everything if process.is_running()]
    assert not (stack_dir / "stack.json").exists()
    assert "No stack runs" in dev("down", "--state-dir", str(stack_dir)).stdout


def check_that_a_killed_broker_comes_back_with_its_records(
    stack_dir: Path, addresses: dict[str, Any]
) -> None:
    config = {"bootstrap.servers": addresses["kafka_bootstrap"], "log_level": 0}
    admin = AdminClient(config)
    admin.create_topics([NewTopic("kept", num_partitions=1)])["kept"].result(30)
    producer = Producer({**config, "enable.idempotence": True})
    producer.produce("kept", b"42")
    assert producer.flush(10) == 0
    os.kill(addresses["pids"]["kafka"], signal.SIGKILL)

    wait_for(lambda: "kafka" in restarting(stack_dir), "the end of the broker")
    told = call("dev", "status", "--state-dir", str(stack_dir), code=1).stdout
    assert "kafka was killed by SIGKILL; the supervisor is restarting it\n" in told
    # The supervisor notes the restart when records pass again.
    wait_for(lambda: restarts(stack_dir, "kafka") == 1, "the broker", timeout_seconds=40)
    consumer = Consumer({**config, "group.id": "any"})
    consumer.assign([TopicPartition("kept", 0, 0)])
    message = consumer.poll(10)
    consumer.close()
    assert message is not None
    assert message.value() == b"42"
    topics = admin.list_topics(timeout=30).topics
    assert not [name for name in topics if name.startswith("noonmark-readiness")]


@pytest.mark.slow
def test_when_the_supervisor_is_killed_its_servers_and_services_end_by_themselves(stack_dir: Path) -> None:
    started = up(options(stack_dir, standin("intake", "--deaf"), detach=True))
    assert started.returncode == 0, started.stderr
    supervisor = json.loads(started.stdout)["pids"]["supervisor"]
    everything = family(supervisor)
    assert len(everything) > 5
    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: not [one for one in everything if one.is_running()], "all processes to end")
    assert "database system is shut down" in (stack_dir / "logs" / "postgres.log").read_text()
    assert "supervisor was gone" in dev("down", "--state-dir", str(stack_dir)).stdout


def test_down_after_a_killed_supervisor_ends_what_services_had_started_and_nobody_else(
    tmp_path: Path, given: dict[str, str]
) -> None:
    started = up(options(tmp_path / "s", standin("worker", "--with-child"), detach=True), **given)
    addresses = json.loads(started.stdout)
    child = psutil.Process(addresses["pids"]["worker"]).children()[0]
    os.kill(addresses["pids"]["supervisor"], signal.SIGKILL)
    left = state.load(tmp_path / "s")
    assert left is not None
    # As if the number of a dead process had been given to this test.
    left.processes["stranger"] = state.ProcessEntry(os.getpid(), "another-start")
    state.save(tmp_path / "s", left)
    assert dev("down", "--state-dir", str(tmp_path / "s")).returncode == 0
    wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, "the child to end")


def test_a_service_that_dies_is_started_again_and_a_deaf_one_is_killed_at_the_end(
    tmp_path: Path, given: dict[str, str]
) -> None:
    stack = options(tmp_path / "s", standin("intake"), standin("worker", "--deaf"))
    with foreground(stack, **given) as (process, addresses):
        os.kill(addresses["pids"]["intake"], signal.SIGKILL)
        wait_for(lambda: restarting(tmp_path / "s") == {"intake": "was killed by SIGKILL"}, "the end")
        wait_for(lambda: restarts(tmp_path / "s", "intake") == 1, "the restart")
        assert restarting(tmp_path / "s") == {}
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=30)
        assert process.returncode == 0
    assert "intake was killed by SIGKILL; restarting it" in shown
    assert "worker: did not stop when asked, so it was killed" in shown
    assert not psutil.pid_exists(addresses["pids"]["worker"])


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ("--refuse-to-start", "worker exited with code 1 while it started"),
        (
            "--never-ready",
            "worker was not ready, and made no progress for 4 s: it answers 503 waiting for partitions",
        ),
    ],
)
def test_a_service_that_does_not_become_ready_ends_the_start_with_its_reason(
    tmp_path: Path, given: dict[str, str], flag: str, reason: str
) -> None:
    stack = options(tmp_path / "s", standin("intake"), standin("worker", flag), stalled_seconds=4.0)
    failed = up(stack, **given)
    assert failed.returncode == 1
    assert reason in failed.stderr
    assert failed.stdout == ""
    if flag == "--refuse-to-start":
        assert "no module named handlers_of_nobody" in failed.stderr
    assert not (tmp_path / "s" / "stack.json").exists()


def test_a_service_that_works_and_never_becomes_ready_ends_the_start_at_its_limit(
    tmp_path: Path, given: dict[str, str]
) -> None:
    stack = options(tmp_path / "s", standin("worker", "--never-ready", "--busy"), timeout_seconds=8.0)
    failed = up(stack, **given)
    assert failed.returncode == 1
    assert "was not ready after 8 s, the limit of the start:" in failed.stderr
    assert "Give it more time with --timeout, such as --timeout 30m." in failed.stderr


def test_what_a_person_sees_of_a_stack_has_no_password(tmp_path: Path, given: dict[str, str]) -> None:
    shown_when_up = replace(options(tmp_path / "s", standin("intake")), as_json=False, detach=True)
    started = up(shown_when_up, **given)
    status = dev("status", "--state-dir", str(tmp_path / "s"))
    assert dev("down", "--state-dir", str(tmp_path / "s")).returncode == 0
    password = str(conninfo_to_dict(given["NOONMARK_DATABASE_URL"])["password"])
    file = tmp_path / "s" / "stack.json"
    for shown in (started.stdout, status.stdout):
        assert f"noonmark at 127.0.0.1:{conninfo_to_dict(given['NOONMARK_DATABASE_URL'])['port']}" in shown
        assert f"(its URL with the password is in {file})" in shown
    logs = "".join(path.read_text() for path in (tmp_path / "s" / "logs").iterdir())
    assert password not in started.stdout + started.stderr + status.stdout + logs


def test_a_taken_port_ends_the_start_with_a_sentence(tmp_path: Path, given: dict[str, str]) -> None:
    taken = int(given["NOONMARK_DATABASE_URL"].rsplit(":", 1)[1].split("/")[0])
    failed = up(options(tmp_path / "s", postgres_port=taken))
    assert failed.returncode == 1
    assert f"Port {taken} on 127.0.0.1, chosen for Postgres, is in use" in failed.stderr
    assert "--postgres-port" in failed.stderr


def test_servers_that_do_not_answer_where_the_environment_says_end_the_start(tmp_path: Path) -> None:
    url = f"postgresql://a:secret@127.0.0.1:{free_port()}/x"
    failed = up(options(tmp_path / "s"), NOONMARK_DATABASE_URL=url)
    assert failed.returncode == 1
    assert "No Postgres answers at the address given by NOONMARK_DATABASE_URL" in failed.stderr
    assert "secret" not in failed.stderr


def test_every_test_gets_a_migrated_database_of_its_own(database_url: str, topic_prefix: str) -> None:
    with psycopg.connect(database_url) as connection:
        assert connection.execute("select count(*) from jobs").fetchone() == (0,)
    assert topic_prefix.startswith("t")


def test_the_key_of_the_stack_is_made_once_and_anew_for_a_database_that_does_not_know_it(
    emptied_database: str, tmp_path: Path
) -> None:
    file = tmp_path / "api-key"
    ensure_key(emptied_database, file)
    made = file.read_text()
    assert made.startswith("nmk_")
    assert file.stat().st_mode & 0o777 == 0o600
    ensure_key(emptied_database, file)
    assert file.read_text() == made

    with psycopg.connect(emptied_database) as connection:
        connection.execute("update api_keys set revoked_at = now()")
    ensure_key(emptied_database, file)
    assert file.read_text() != made
    for unusable in ("", "nmk_short", "\xe9"):
        file.write_text(unusable, encoding="latin-1")
        ensure_key(emptied_database, file)
        assert file.read_text().startswith("nmk_")
