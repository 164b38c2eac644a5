"""The demo and the README's first steps, as a reader runs them: real servers, real processes."""

import json
import os
import stat
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

EXAMPLES = Path(__file__).parents[2] / "examples"
CLI = (sys.executable, "-P", "-m", "noonmark.cli.main")

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


@pytest.fixture
def folder(tmp_path):
    """An empty folder, reachable for the user that Postgres runs as."""
    tmp_path.chmod(0o711)
    return tmp_path


def noonmark(folder, *arguments, seconds=60):
    env = {name: value for name, value in os.environ.items() if not name.startswith("NOONMARK_")}
    kept = {
        name: os.environ[name] for name in ("NOONMARK_CACHE_DIR", "NOONMARK_KAFKA_LIBS") if name in os.environ
    }
    return subprocess.run(
        [*CLI, *arguments],
        cwd=folder,
        env=env | kept,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def processes_of(folder):
    """Everything that runs in this folder, or with it in its command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid():
                continue
            if any(str(folder) in part for part in [process.cwd(), *process.cmdline()]):
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_for(read, seconds=20.0):
    """Polls until `read` returns something true, and returns it."""
    deadline = time.monotonic() + seconds
    while not (found := read()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demo_accounts_for_every_submission_and_leaves_nothing_behind(folder):
    state = folder / "state"

    done = noonmark(folder, "demo", "--state-dir", str(state), "--examples", str(EXAMPLES), seconds=240)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "All as expected" in done.stdout
    assert "0 messages not started, 0 not committed" in done.stdout
    assert "/data/retry_delay_secs: unknown field; did you mean 'retry_delay_seconds'?" in done.stdout
    calls = [json.loads(line)["path"] for line in (state / "target.log").read_text().splitlines()]
    # Once before the service is repaired and the workflow is redriven, and once after it.
    assert sorted(calls) == ["/billing/send", "/sales/orders", "/sales/orders"]
    assert "redriven" in done.stdout
    assert processes_of(folder) == []


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_an_event_from_any_kafka_client_runs_and_a_broken_one_is_rejected(folder):
    up = noonmark(
        folder,
        "dev", "up", "--detach", "--json", "--handlers", "examples.handlers", "--path", str(EXAMPLES.parent),
        seconds=120,
    )  # fmt: skip
    assert up.returncode == 0, up.stdout + up.stderr
    try:
        addresses = json.loads(up.stdout)
        address = addresses["kafka_bootstrap"]
        key_file = Path(addresses["api_key_file"])
        assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
        bearer = {"Authorization": f"Bearer {key_file.read_text().strip()}"}
        request = urllib.request.Request(f"{addresses['api_url']}/v1/me", headers=bearer)
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert json.loads(answer.read())["platform"] is True
        data = {"name": "hello", "type": "python", "handler": "ticks.count"}
        event = {
            "specversion": "1.0",
            "id": "1",
            "source": "/me",
            "type": "noonmark.job.create.v1",
            "data": data,
        }
        producer = Producer({"bootstrap.servers": address})
        producer.produce("noonmark.submissions", json.dumps(event), key="default/hello")
        producer.produce("noonmark.submissions", json.dumps({**event, "id": "2", "data": {"type": "pyhton"}}))
        elsewhere = {**event, "id": "3", "data": {**data, "namespace": "other"}}
        producer.produce("noonmark.submissions", json.dumps(elsewhere))
        assert producer.flush(20) == 0

        def ran():
            listed = noonmark(folder, "run", "list", "--state", "succeeded", "--job", "hello", "--json")
            return json.loads(listed.stdout)["items"]

        def refused():
            items = json.loads(noonmark(folder, "rejection", "list", "--json").stdout)["items"]
            return items if len(items) == 2 else []

        (run,) = wait_for(ran)
        problems = {
            one["event_id"]: [error["pointer"] for error in one["errors"]] for one in wait_for(refused)
        }
        assert run["attempt"] == 1
        # Unsigned events work here, in the namespace `default` and in no other.
        assert problems == {"2": ["/data/type"], "3": ["/data/namespace"]}
        job = json.loads(noonmark(folder, "job", "show", "hello", "--json").stdout)
        document = job["document"]
        assert (document["timeout_seconds"], document["retry"]["max_retries"]) == (3600, 3)
        assert job["state"] == "completed"
        sent = noonmark(folder, "submit", str(EXAMPLES / "submissions" / "python-sync.json"))
        assert sent.returncode == 0, sent.stderr
        lag = json.loads(noonmark(folder, "lag", "--json").stdout)
        assert lag["failed"] == []
    finally:
        down = noonmark(folder, "dev", "down", seconds=120)
    assert down.returncode == 0, down.stdout + down.stderr
    assert processes_of(folder) == []


def test_the_demo_elsewhere_says_where_it_must_be_run(folder):
    done = noonmark(folder, "demo")
    assert done.returncode == 2
    assert "run the demo in the project's folder" in done.stderr
