"""How the texts of options are read."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.cli import call

from noonmark.cli.terminal.options import as_uuid, read_since, read_uuid
from noonmark.cli.terminal.problems import CliError, ExitCode

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "ago"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("2h", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
        ("1w", timedelta(weeks=1)),
        ("2h ago", timedelta(hours=2)),
        ("1h30m", timedelta(minutes=90)),
        ("PT15M", timedelta(minutes=15)),
        ("300", timedelta(minutes=5)),
    ],
)
def test_since_takes_a_time_span(given, ago):
    assert read_since(given, now=NOW) == NOW - ago


def test_since_takes_an_instant():
    assert read_since("2026-06-01T10:00:00+02:00") == datetime(2026, 6, 1, 8, 0, tzinfo=UTC)


def test_since_takes_a_day_from_its_midnight_in_utc():
    assert read_since("2026-11-28") == datetime(2026, 11, 28, tzinfo=UTC)


def test_since_may_be_left_out():
    assert read_since(None) is None


@pytest.mark.parametrize("given", ["yesterday", "15x", "-1h", "999999999w", "2026-02-30", "9999999999h"])
def test_since_refuses_anything_else_and_says_what_would_do(given):
    with pytest.raises(CliError, match=r"15m or 2h.*instant") as caught:
        read_since(given)
    assert caught.value.code is ExitCode.USAGE


def test_an_id_is_told_from_a_name():
    assert str(as_uuid("019d6f2e-0000-7000-8000-000000000001")) == "019d6f2e-0000-7000-8000-000000000001"
    assert as_uuid("send-invoice") is None
    assert as_uuid("x" * 36) is None


def test_what_must_be_an_id_is_refused_otherwise():
    with pytest.raises(CliError, match="run 'send-invoice' is not an id"):
        read_uuid("send-invoice", "run")


@pytest.mark.parametrize("given", ["2h", "30s ago", "2026-06-01", "2026-06-01T09:00:00Z"])
def test_a_time_in_place_of_a_cursor_is_told_from_one(tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    told = call("run", "list", "--after", given, code=ExitCode.USAGE).stderr
    assert "takes the `next_cursor` of the previous page" in told
    assert "--since" in told
