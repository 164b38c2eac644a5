"""`noonmark verify` as people and scripts call it."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import pytest
from tests.support.cli import call


@pytest.fixture(autouse=True)
def _addressed(command_line):
    """The command finds the database of the test."""


def test_a_clean_ledger_exits_0_and_says_what_was_checked(ledger):
    called = call("verify")

    assert called.stdout.startswith("7 runs due from ")
    assert "checked: all promises kept\nnot checked: S2 (" in called.stdout
    assert "V1 (pass --instants" in called.stdout
    assert called.stderr == ""


def test_a_broken_promise_exits_1_with_its_rule_its_run_and_what_to_do(ledger):
    ledger.world.db.execute("delete from dead_letters")

    called = call("verify", code=1)

    title, finding, keep, remedy, *_ = called.stdout.splitlines()
    assert title.endswith(f"Z (run {ledger.dead}):")
    assert finding == "  S11 is dead without a dead letter"
    assert "keep the rows of each run first" in keep
    assert remedy.startswith("  S11 ")
    assert remedy.endswith("see docs/verify.md#s11")
    assert "1 broken promise\n" in called.stdout
    assert called.stderr == ""


def test_findings_of_one_run_stand_together_below_its_name(ledger):
    ledger.world.db.execute("delete from dead_letters")
    ledger.world.db.execute("delete from attempts where run_id = %s", [ledger.dead])

    lines = call("verify", code=1).stdout.splitlines()

    assert lines[0].endswith(f"(run {ledger.dead}):")
    assert {line.split()[0] for line in lines[1:3]} == {"S11", "S15"}
    assert sum(str(ledger.dead) in line for line in lines) == 1


def test_the_json_has_the_count_of_every_rule_and_why_others_were_not_judged(ledger):
    ledger.world.db.execute("delete from dead_letters")

    found = json.loads(call("verify", "--json", code=1).stdout)

    assert (found["clean"], found["runs"]) == (False, 7)
    assert found["rules"]["S11"] == 1
    assert sum(found["rules"].values()) == 1
    assert {"S5", "V1"} < set(found["unjudged"])
    (finding,) = found["findings"]
    assert (finding["rule"], finding["kind"]) == ("S11", "no_letter")
    assert f"noonmark run show {ledger.dead} --json" in finding["remedy"]
    assert finding["job_name"]
    assert (finding["run_id"], finding["namespace"]) == (str(ledger.dead), "tests")
    assert json.loads(call("verify", "--json", "--until", "1h").stdout)["clean"] is True
    assert json.loads(call("verify", "--json", "--instants", code=1).stdout)["rules"]["V1"] == 0


def test_only_the_namespaces_that_were_named_are_checked(ledger):
    ledger.world.db.execute("delete from dead_letters")

    ledger.world.db.execute("insert into namespaces (name) values ('other')")

    assert call("verify", "--namespace", "other").stdout.startswith("0 runs ")
    assert "\n7 runs due " in call("verify", "--namespace", "other", "--namespace", "tests", code=1).stdout


def test_a_namespace_that_does_not_exist_is_named(ledger):
    told = call("verify", "--namespace", "tests", "--namespace", "typo", code=2).stderr

    assert "namespace 'typo' does not exist; run `noonmark namespace list`" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--rate", "0"], "--rate 0 is not a share"),
        (["--rate", "1.5"], "--rate 1.5 is not a share"),
        (["--since", "soon"], "--since 'soon' is not a time"),
        (["--until", "soon"], "--until 'soon' is not a time"),
        (["--since", "1h", "--until", "2h"], "is not before --until ("),
        (["--step", "0"], "step"),
    ],
)
def test_options_that_make_no_sense_exit_2(options, told):
    assert told in call("verify", *options, code=2).stderr


def test_a_database_that_does_not_answer_exits_3(monkeypatch):
    monkeypatch.setenv("NOONMARK_DATABASE_URL", "postgresql://x@127.0.0.1:1/none")

    assert "cannot connect to the database" in call("verify", code=3).stderr


def test_the_metrics_are_written_to_a_file_with_every_rule(ledger, tmp_path):
    ledger.world.db.execute("delete from dead_letters")
    file = tmp_path / "noonmark.prom"

    call("verify", "--metrics-file", str(file), code=1)

    lines = file.read_text().splitlines()
    assert 'noonmark_verify_findings{rule="S11"} 1.0' in lines
    assert 'noonmark_verify_findings{rule="S3"} 0.0' in lines
    assert "noonmark_verify_runs 7.0" in lines
    assert {line.split("{")[0].split()[0] for line in lines if not line.startswith("#")} == {
        "noonmark_verify_findings",
        "noonmark_verify_runs",
        "noonmark_verify_completed_timestamp_seconds",
    }
    assert list(tmp_path.iterdir()) == [file]


def test_a_metrics_file_that_cannot_be_written_is_named(ledger, tmp_path):
    called = call("verify", "--metrics-file", str(tmp_path / "none" / "x.prom"), code=1)

    assert "none/x.prom: No such file or directory" in called.stderr


@pytest.fixture
def reader(world) -> Iterator[str]:
    """A role that may select from every table, as a user for reports has it."""
    role = f"reader_{uuid4().hex[:8]}"
    world.db.execute(f"create role {role}; grant select on all tables in schema public to {role}")
    yield role
    world.db.execute(f"drop owned by {role}; drop role {role}")


def test_a_user_who_cannot_see_all_rows_gets_an_error_and_no_clean_report(
    ledger, reader, emptied_database, monkeypatch
):
    mark = "&" if "?" in emptied_database else "?"
    monkeypatch.setenv("NOONMARK_DATABASE_URL", f"{emptied_database}{mark}options=-c%20role%3D{reader}")

    assert "the database user cannot read all rows" in call("verify", code=2).stderr

    ledger.world.db.execute(f"alter role {reader} bypassrls")
    assert call("verify").stdout.startswith("7 runs")


class Gateway(ThreadingHTTPServer):
    """A Pushgateway as far as a client sees it: keeps each request, and answers with `status`."""

    status = 200

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], str]] = []
        super().__init__(("127.0.0.1", 0), Receiver)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class Receiver(BaseHTTPRequestHandler):
    server: Gateway

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.requests.append((self.command, self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        """Be quiet."""


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_the_metrics_are_pushed_as_one_group_that_replaces_the_last(ledger, gateway):
    ledger.world.db.execute("delete from dead_letters")

    call(
        *("verify", "--metrics-gateway", f"http://{gateway.address}", "--metrics-label", "namespace=prod"),
        *("--period", "1d"),
        code=1,
    )

    ((method, path, _, body),) = gateway.requests
    assert (method, path) == ("PUT", "/metrics/job/noonmark-verify/namespace/prod")
    lines = body.splitlines()
    assert 'noonmark_verify_findings{rule="S11"} 1.0' in lines
    assert "noonmark_verify_period_seconds 86400.0" in lines
    assert any(line.startswith("noonmark_verify_completed_timestamp_seconds ") for line in lines)


def test_the_user_and_password_of_the_gateway_are_sent_and_not_shown(ledger, gateway):
    url = f"http://robot:p%40ss@{gateway.address}"
    call("verify", "--metrics-gateway", url)
    gateway.status = 503
    told = call("verify", "--metrics-gateway", url, code=3)

    (_, _, headers, _) = gateway.requests[0]
    assert headers["Authorization"] == "Basic " + base64.b64encode(b"robot:p@ss").decode()
    assert f"cannot push metrics to http://{gateway.address}: " in told.stderr
    assert "p%40ss" not in told.stderr
    assert "all promises kept\n" in told.stdout


def test_a_gateway_that_is_away_exits_3_after_the_findings(ledger):
    ledger.world.db.execute("delete from dead_letters")

    told = call("verify", "--metrics-gateway", "http://127.0.0.1:1", code=3)

    assert "  S11 " in told.stdout
    assert "cannot push metrics to http://127.0.0.1:1: " in told.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--metrics-gateway", "pushgateway:9091"], "is not an address such as http://pushgateway:9091"),
        (["--metrics-label", "prod"], "--metrics-label 'prod' is not name=value"),
        (["--metrics-label", "job=mine"], "job is set already"),
        (["--period", "daily"], "'--period': 'daily' is not a duration"),
    ],
)
def test_options_of_metrics_that_make_no_sense_exit_2(options, told):
    assert told in call("verify", *options, code=2).stderr
