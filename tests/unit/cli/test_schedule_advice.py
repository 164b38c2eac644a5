"""What `noonmark schedule` advises to write instead of a foreign form is accepted when it is typed."""

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cli.schedule_calls import error, run

TRANSLATED = [
    ("Sat,Sun 09:00:30", "--cron '30 0 9 * * SAT,SUN' --seconds-field first"),
    ("*-*-* 02:30:00 Europe/Berlin", "--cron '30 2 * * *' --zone Europe/Berlin"),
    ("OnCalendar=*-*-* 02:30:00 Europe/Berlin", "--cron '30 2 * * *' --zone Europe/Berlin"),
    ("OnCalendar=*:*:0/20 Asia/Tokyo", "--cron '0-59/20 * * * * *' --seconds-field first --zone Asia/Tokyo"),
    ("2027-*-01 09:00:00", "--cron '0 0 9 1 * ? 2027' --dialect quartz"),
    ("Thu 2026-12-24 10:00", "--at 2026-12-24T10:00:00Z"),
    ("Mon 2026-12-24 10:00", "--cron '0 9 * * MON-FRI'"),
    ("OnCalendar=2026-12-24 10:00:00", "--at 2026-12-24T10:00:00Z"),
    (
        "2026-12-24 10:00 Europe/Berlin",
        "--cron '0 0 10 24 12 ? 2026' --dialect quartz --zone Europe/Berlin",
    ),
    ("2300-*-01 09:00", "--cron '0 9 * * MON-FRI'"),
    ("*-*~01 10:00", "--cron '0 10 L * *'"),
    ("0 9 ? * MON-FRI *", "--cron '0 9 * * MON-FRI'"),
    ("0 9 L * ? 2030", "--cron '0 0 9 L * ? 2030' --dialect quartz"),
    ("0 */24 * * *", "--every 24h"),
    ("*/90 * * * *", "--every 90m"),
    ("*/90 * * * * *", "--every 90s"),
    ("@every 500ms", "--every 1s"),
    ("@every 1.5h", "--every 5400"),
    ("@every 90000ms", "--every 90"),
    ("@every", "--every 5m"),
    ("rate(0 minutes)", "--every 1s"),
    ("rate(999999999 days)", "--every 5m"),
    ("0s", "--every 1s"),
    ("2027-01-01", "--at 2027-01-01T00:00:00Z"),
    ("2027-01-01 09:00", "--at 2027-01-01T09:00:00Z"),
    ("2027-13-01", "--at 2026-01-05T09:00:00Z"),
    ("at(2027-01-01T09:00:00)", "--at 2027-01-01T09:00:00Z"),
    ("25:00", "--cron '0 9 * * MON-FRI'"),
    ("daily Europe/Berln", "--cron '0 9 * * MON-FRI'"),
    ("1 2 3 4 5 6 7", "--cron '0 9 * * MON-FRI'"),
    ("FREQ=DAYLY", "--rrule FREQ=DAILY --dtstart 2026-01-05T09:00:00"),
]


def advice(text: str, *, positional: bool = False) -> str | None:
    """Return the options that the message about a text advises to write, if it does."""
    message = error(*([text] if positional else ["--cron", text]))["message"]
    found = message.rpartition("write --")[2].split("; cron ")[0].split(" (six fields")[0]
    return f"--{found}" if "write --" in message else None


def assert_accepted(options: str) -> None:
    code, out = run("explain", *shlex.split(options), "--after", "2026-01-01T00:00:00Z", "--json")
    assert code == 0, (options, out)


@pytest.mark.parametrize(("text", "options"), TRANSLATED, ids=[text for text, _ in TRANSLATED])
def test_the_advice_of_a_foreign_form_is_accepted_when_typed(text, options):
    assert advice(text) == options
    assert_accepted(options)


@pytest.mark.parametrize("text", ["Sat,Sun 09:00:30", "daily UTC", "rate(0 minutes)", "0 9 ? * MON-FRI *"])
def test_a_text_without_an_option_gets_the_same_advice(text):
    assert advice(text, positional=True) == advice(text)


@pytest.mark.parametrize("text", ["@every 500ms", "rate(0 minutes)", "0s", "every 0 minutes"])
def test_a_period_that_is_too_short_gets_the_minimum(text):
    assert "a period is at least 1 second" in error("--cron", text)["message"]


_number = st.integers(0, 70).map(str)
_part = st.one_of(
    st.just("*"),
    _number,
    st.builds("{}/{}".format, _number, _number),
    st.builds("{}..{}".format, _number, _number),
    st.builds("{},{}".format, _number, _number),
)
_weekday = st.sampled_from(["", "Mon ", "Sat,Sun ", "Mon..Fri ", "Sat..Tue "])
_zone = st.sampled_from(["", " UTC", " Europe/Berlin", " Europe/Berln"])
_year = st.sampled_from(["*", "2027", "2027..2029", "2027,2029", "2027/2", "2300", "27"])
_systemd = st.builds(
    "{}{}-{}{}{} {}:{}:{}{}".format,
    _weekday,
    _year,
    _part,
    st.sampled_from("-~"),
    _part,
    _part,
    _part,
    _part,
    _zone,
)
_units = st.sampled_from(["ns", "ms", "s", "m", "h", "d", "w"])
_every = st.builds("@every {}{}".format, st.decimals(0, 10_000_000, places=2), _units)
_rate = st.builds("rate({} {})".format, st.integers(0, 999_999_999), st.sampled_from(["minutes", "days"]))
_day = st.sampled_from(["?", "*", "L", "15W", "1", "MON-FRI", "2#1", "6L", "99"])
_aws = st.builds("{} {} {} {} {} {}".format, _part, _part, _day, _part, _day, st.sampled_from(["*", "2030"]))
_instant = st.builds("20{}-{}-{} {}:00".format, *[st.integers(10, 35)] * 4)


@settings(max_examples=50, deadline=None)
@given(st.one_of(_systemd, _every, _rate, _aws, _aws.map("cron({})".format), _instant))
def test_whatever_is_advised_is_accepted(text):
    code, _ = run("explain", "--cron", text, "--json")
    if code != 0 and (options := advice(text)) is not None:
        assert_accepted(options)
