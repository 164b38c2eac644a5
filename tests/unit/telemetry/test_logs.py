"""What a log line looks like, and what never appears in one."""

import io
import json
import logging
import threading
import warnings

import pytest
import structlog
from pydantic import SecretBytes, SecretStr

from noonmark.telemetry.logs import configure_logs, get_logger, mask_text


@pytest.fixture(autouse=True)
def logging_as_before():
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


@pytest.fixture
def lines(capfdbinary):
    def read():
        return [json.loads(line) for line in capfdbinary.readouterr().err.splitlines()]

    return read


def test_a_line_carries_event_service_level_time_and_fields(lines):
    configure_logs("trigger")
    get_logger(shard=3).info("shard_won", rows=[1, 2])
    (line,) = lines()
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "shard_won", "service": "trigger", "level": "info", "shard": 3, "rows": [1, 2]}


def test_lines_below_the_level_are_not_written(lines):
    configure_logs("trigger", level="warning")
    get_logger().info("quiet")
    get_logger().warning("loud")
    assert [line["event"] for line in lines()] == ["loud"]


def test_the_service_is_bound_in_every_thread(lines):
    configure_logs("worker")
    thread = threading.Thread(target=lambda: get_logger().info("from_a_thread"))
    thread.start()
    thread.join()
    assert lines()[0]["service"] == "worker"


def test_library_records_come_out_with_a_static_event_name(lines):
    configure_logs("intake")
    logging.getLogger("some.library").warning("reconnecting to %s", "postgres://app:hunter2@db/x")
    logging.getLogger("some.library").info("chatter")
    (line,) = lines()
    assert line["event"] == "library_message"
    assert line["logger"] == "some.library"
    assert line["message"] == "reconnecting to postgres://app:***@db/x"


def test_python_warnings_are_logged_too(lines):
    configure_logs("intake")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old call", stacklevel=1)
    assert "old call" in lines()[0]["message"]


def test_configuring_twice_writes_each_record_once(lines):
    configure_logs("intake")
    configure_logs("intake")
    logging.getLogger("lib").error("once")
    assert len(lines()) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://app:hunter2@db:5432/noonmark", "postgresql://app:***@db:5432/noonmark"),
        ("postgresql://app:p@ss@db/noonmark", "postgresql://app:***@db/noonmark"),
        (
            "postgresql://:hunter2@db/x and amqp://u:hunter2@mq/",
            "postgresql://:***@db/x and amqp://u:***@mq/",
        ),
        ("host=db user=app password=hunter2 dbname=x", "host=db user=app password=*** dbname=x"),
        ("host=db password='hun ter\\'2' dbname=x", "host=db password=*** dbname=x"),
        (
            "postgresql://db/x?user=app&password=hunter2&sslmode=require",
            "postgresql://db/x?user=app&password=***&sslmode=require",
        ),
        ("sasl_password: hunter2", "sasl_password: ***"),
        ("http://example.com:8080/a@b", "http://example.com:8080/a@b"),
        ("see https://example.com/a:b", "see https://example.com/a:b"),
    ],
)
def test_passwords_in_text_are_masked(text, shown):
    assert mask_text(text) == shown


@pytest.mark.parametrize("style", ["json", "console"])
def test_no_secret_reaches_a_line(style, capfdbinary):
    configure_logs("worker", style=style)
    canary = "hunter2"
    log = get_logger(dsn=f"postgresql://app:{canary}@db/x", key=SecretStr(canary))
    log.info(
        "started",
        nested={"deep": [SecretStr(canary), {"password": canary}], "raw": SecretBytes(canary.encode())},
        Authorization=canary,
        settings=f"password={canary}",
        body=f"://u:{canary}@h".encode(),
        error=ValueError(f"cannot reach ://u:{canary}@h"),
    )
    try:
        int(f"postgresql://app:{canary}@db/x")
    except ValueError:
        log.exception("failed")
        logging.getLogger("lib").exception("failed")
    written = capfdbinary.readouterr().err
    assert b"started" in written
    assert b"invalid literal" in written
    assert canary.encode() not in written


def test_values_that_json_cannot_hold_are_shown_as_text(lines):
    configure_logs("worker")
    get_logger().info("odd", number=2**70, what=object, broken="\ud800", keys={1: "a"})
    (line,) = lines()
    assert line["number"] == str(2**70)
    assert "\\ud800" in line["broken"]


class FullDisk(io.TextIOWrapper):
    def flush(self):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("closed", [False, True])
def test_a_log_that_cannot_be_written_stops_nobody(monkeypatch, closed):
    configure_logs("worker")
    stream = io.StringIO() if closed else FullDisk(io.BytesIO())
    if closed:
        stream.close()
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", stream)
        get_logger().info("said")
        logging.getLogger("library").warning("said, too")


@pytest.mark.parametrize("replaced", [None, io.StringIO()], ids=["none", "buffer"])
def test_the_log_stays_where_it_was_when_stderr_is_replaced(lines, monkeypatch, replaced):
    configure_logs("worker")
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", replaced)
        get_logger().info("of_another_run")
        logging.getLogger("lib").error("of a library")
    assert [line["event"] for line in lines()] == ["of_another_run", "library_message"]
    assert not replaced or replaced.getvalue() == ""


def test_a_stream_that_was_detached_does_not_make_a_log_call_raise(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", stream)
        configure_logs("worker")
    stream.detach()
    get_logger().info("lost")
