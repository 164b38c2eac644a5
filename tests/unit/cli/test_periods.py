"""How points in time are read, in the options of all commands."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.cli import call

from noonmark.cli.connections.periods import Period, read_time
from noonmark.cli.terminal.problems import CliError, ExitCode

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


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
        ("now", timedelta(0)),
    ],
)
def test_a_time_span_is_ago(given, ago):
    assert read_time(given, now=NOW) == NOW - ago
    assert read_time(given, "Asia/Tokyo", now=NOW) == NOW - ago


@pytest.mark.parametrize(
    ("given", "zone", "instant"),
    [
        ("2026-06-01T10:00:00+02:00", None, at(2026, 6, 1, 8)),
        ("2026-06-01T10:00:00+02:00", "Asia/Tokyo", at(2026, 6, 1, 8)),
        ("2026-06-01T10:00Z", "Asia/Tokyo", at(2026, 6, 1, 10)),
        ("2026-06-01 10:00:00z", None, at(2026, 6, 1, 10)),
        ("2026-11-27", None, at(2026, 11, 27)),
        ("2026-11-27", "Europe/Berlin", at(2026, 11, 26, 23)),
        ("2026-11-27T09:00", None, at(2026, 11, 27, 9)),
        ("2026-11-27 09:00:30", "Europe/Berlin", at(2026, 11, 27, 8, 0, 30)),
        ("today", None, at(2026, 6, 1)),
        ("Yesterday", None, at(2026, 5, 31)),
        # It is 21:00 in Tokyo, so it is still the same day, and 02:00 of the next on Kiritimati.
        ("today", "Asia/Tokyo", at(2026, 5, 31, 15)),
        ("yesterday", "Pacific/Kiritimati", at(2026, 5, 31, 10)),
        # Midnight does not exist on this day: it begins at 01:00.
        ("2018-11-04", "America/Sao_Paulo", at(2018, 11, 4, 3)),
        # Midnight occurs twice on this day, which begins with the first.
        ("2026-11-01", "America/Havana", at(2026, 11, 1, 4)),
    ],
)
def test_days_and_times_without_an_offset_are_in_the_zone(given, zone, instant):
    assert read_time(given, zone, now=NOW) == instant


def test_a_time_that_clocks_skip_or_repeat_is_refused_with_what_to_write():
    with pytest.raises(CliError, match="does not exist in Europe/Berlin: clocks skip it"):
        read_time("2026-03-29T02:30", "Europe/Berlin", now=NOW)
    with pytest.raises(
        CliError, match=r"twice .* write 2026-10-25T02:30:00\+02:00 or 2026-10-25T02:30:00\+01:00"
    ):
        read_time("2026-10-25T02:30", "Europe/Berlin", now=NOW)


@pytest.mark.parametrize("given", ["15", "0", "300", "1.5"])
def test_a_bare_number_is_refused_with_what_to_write(given):
    with pytest.raises(
        CliError, match=f"--until {given} has no unit; write {given}m, {given}h or {given}d"
    ) as caught:
        read_time(given, now=NOW, option="--until")
    assert caught.value.code is ExitCode.USAGE


@pytest.mark.parametrize(
    "given",
    ["", "soon", "15x", "-1h", "999999999w", "2026-02-30", "9999999999h", "2026-11-27T25:00", "1960-01-01"],
)
def test_anything_else_is_refused_with_what_is_taken(given):
    with pytest.raises(CliError, match=r"15m, 2h or 7d.*2026-06-01T12:00, or an instant") as caught:
        read_time(given, now=NOW)
    assert caught.value.code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("given", "ahead"),
    [
        ("15m", timedelta(minutes=15)),
        ("in 15m", timedelta(minutes=15)),
        ("In PT2H", timedelta(hours=2)),
        ("15m ago", -timedelta(minutes=15)),
        ("now", timedelta(0)),
        ("tomorrow", timedelta(hours=12)),
        ("2026-06-02", timedelta(hours=12)),
        ("2026-06-01T13:00", timedelta(hours=1)),
        ("2026-06-01T10:00:00Z", -timedelta(hours=2)),
    ],
)
def test_a_time_span_of_a_time_that_is_to_come_counts_from_now(given, ahead):
    assert read_time(given, now=NOW, ahead=True) == NOW + ahead


def test_a_time_span_can_say_that_it_is_in_the_future_wherever_a_time_is_taken():
    assert read_time("in 15m", now=NOW) == NOW + timedelta(minutes=15)


@pytest.mark.parametrize("given", ["in 900", "900 ago"])
def test_a_number_without_a_unit_is_refused_whatever_is_around_it(given):
    with pytest.raises(CliError, match="has no unit; write 900m, 900h or 900d"):
        read_time(given, now=NOW)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--run-at", "soon"), "--run-at 'soon' is not a time; write a time span from now such as 15m"),
        (("--run-at", "15"), "--run-at 15 has no unit; write 15m, 15h or 15d for a time from now"),
        (("--run-at", "2026-03-29T02:30", "--zone", "Europe/Berlin"), "does not exist in Europe/Berlin"),
        (("--run-at", "tomorrow", "--zone", "Berlin"), "did you mean 'Europe/Berlin'"),
        (("--zone", "Europe/Berlin"), "--zone needs --schedule or --run-at"),
    ],
)
def test_the_instant_of_a_job_has_the_same_forms_and_its_message_names_the_option(
    tmp_path, monkeypatch, words, told
):
    monkeypatch.chdir(tmp_path)
    assert told in call("job", "create", "--type", "http", *words, code=ExitCode.USAGE).stderr


def test_a_period_has_an_order_and_can_be_given_again():
    period = Period.read("2h", "now", None, now=NOW)
    assert period.restated == "--since 2026-06-01T10:00:00Z --until 2026-06-01T12:00:00Z"
    assert Period.read(None, None, None).restated == ""
    with pytest.raises(CliError, match="the period is empty"):
        Period.read("1h", "2h", None, now=NOW)


@pytest.mark.parametrize(
    "command",
    [
        ("run", "list"),
        ("run", "cancel", "--job", "x", "--yes"),
        ("dead", "list"),
        ("dead", "groups"),
        ("dead", "redrive", "--yes"),
        ("dead", "discard", "--yes"),
        ("audit",),
        ("verify",),
        ("rejection", "list"),
        ("backfill", "plan", "x"),
        ("backfill", "start", "x", "--yes"),
    ],
    ids=" ".join,
)
def test_every_command_with_a_period_takes_the_same_times(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for options, told in (
        (("--since", "15"), "has no unit"),
        (("--since", "yesterday", "--until", "x"), "--until 'x' is not a time"),
        (
            ("--since", "2026-01-02", "--until", "2026-01-01T09:00", "--zone", "Europe/Berlin"),
            "the period is empty",
        ),
        (("--since", "today", "--zone", "Berlin"), "did you mean 'Europe/Berlin'"),
    ):
        assert told in call(*command, *options, code=ExitCode.USAGE).stderr


@pytest.mark.parametrize("given", ["2026-12-27T09:00Z", "15m", "now", "2026-12-27", "2026-12-27T09:00"])
def test_a_wrong_zone_is_refused_whether_the_time_needs_it_or_not(given):
    with pytest.raises(CliError, match=r"--zone: .*Nowhere"):
        read_time(given, "Nowhere", option="--run-at")
    told = call("job", "create", "--type", "http", "--run-at", given, "--zone", "Nowhere", code=2).stderr
    assert "--zone: " in told
