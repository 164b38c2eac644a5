"""`noonmark calendar`, as people run it."""

import json

import psycopg
import pytest
from psycopg.types.json import Jsonb
from tests.support.cli import CliRunner

from noonmark.cli.schedules import calendars
from noonmark.cli.terminal.problems import CliError, ExitCode, explain
from noonmark.core.ids import uuid7

ICS = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//holidays//en
BEGIN:VEVENT
UID:1
SUMMARY:Christmas
DTSTART;VALUE=DATE:20201225
RRULE:FREQ=YEARLY
END:VEVENT
BEGIN:VEVENT
UID:2
DTSTART;VALUE=DATE:20270417
STATUS:CANCELLED
END:VEVENT
BEGIN:VEVENT
UID:3
DTSTART;VALUE=DATE:20201126
RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH
END:VEVENT
END:VCALENDAR
"""


@pytest.fixture
def noonmark(emptied_database, tmp_path, monkeypatch):
    """Runs `noonmark calendar` in an empty folder against an empty database; a sentence is raised."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOONMARK_DATABASE_URL", emptied_database)

    def run(*arguments, stdin=None, code=0):
        result = CliRunner().invoke(calendars.app, arguments, input=stdin)
        if result.exception is not None and (told := explain(result.exception)) is not None:
            raise told
        assert result.exit_code == code, (result.output, result.exception)
        return result.stdout

    return run


def add_job(url, digest, name="billing", calendar="us"):
    """A job under a calendar, with its timer."""
    job = uuid7()
    schedule = {"cron": "0 9 * * *", "timezone": "UTC", "calendars": {"exclude": [[calendar, digest]]}}
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(
            """insert into jobs (id, namespace, name, kind, lane, pool, shard, schedule, work, unique_name, state, version,
                                 created_at, updated_at)
               values (%s, 'default', %s, 'http', 1, 'default', 0, %s, '{}', true, 'active', 1, now(), now())""",
            [job, name, Jsonb(schedule)],
        )
        db.execute(
            """insert into timers (fire_at, scheduled_for, after_at, after_offset, job_id, job_version, shard, lane, kind,
                                   namespace, pool)
               values (now() + interval '1 day', now() + interval '1 day', now(), 0, %s, 1, 0, 1, 1, 'default', 'default')""",
            [job],
        )
    return job


def test_a_calendar_is_made_of_options_and_shown(noonmark):
    made = noonmark(
        *("set", "us", "--date", "2026-12-25", "--date", "2026-07-03", "--range", "2026-12-30..2027-01-01"),
        *("--weekday", "sat", "--yearly", "01-01"),
    )
    assert made == "calendar us created: 2 dates, 1 range, every SAT, 1 day of every year\n"
    shown = noonmark("show", "us").splitlines()
    assert shown[0].split() == ["name", "us"]
    assert shown[4].split() == ["jobs", "0"]
    assert shown[-6:] == [
        "weekdays    SAT",
        "yearly      01-01",
        "",
        "2026-07-03 Fri",
        "2026-12-25 Fri",
        "2026-12-30 Wed to 2027-01-01 Fri",
    ]
    assert noonmark("show", "us", "--year", "2027").splitlines()[:3] == [
        "2027-01-01 Fri",
        "2027-01-02 Sat",
        "2027-01-09 Sat",
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"dates": ["2026-12-25"], "weekdays": ["SUN"]}',
        "dates:\n  - 2026-12-25   # not a string in YAML\nweekdays: [SUN]\n",
        'dates: ["2026-12-25"]\nweekdays: [Sunday]\n',
    ],
    ids=["JSON", "YAML dates", "YAML strings"],
)
def test_a_calendar_is_made_of_a_file_or_of_standard_input(noonmark, tmp_path, text):
    (tmp_path / "us.yaml").write_text(text)
    from_file = json.loads(noonmark("set", "us", "--file", "us.yaml", "--json"))
    from_stdin = json.loads(noonmark("set", "us", "--file", "-", "--json", stdin=text))
    assert [from_file["change"], from_stdin["change"]] == ["created", "unchanged"]
    assert json.loads(noonmark("show", "us", "--json"))["body"] == {
        "dates": ["2026-12-25"],
        "weekdays": ["SUN"],
    }


def test_a_change_tells_how_many_jobs_are_planned_anew(noonmark, emptied_database):
    digest = json.loads(noonmark("set", "us", "--date", "2026-12-25", "--json"))["digest"]
    add_job(emptied_database, digest)
    assert noonmark("set", "us", "--date", "2026-12-25") == "calendar us already has these days: 1 date\n"
    assert noonmark("set", "us", "--date", "2026-12-24").splitlines() == [
        "calendar us changed: 1 date",
        "1 added: 2026-12-24; 1 removed: 2026-12-25",
        "jobs that use it: 1, 1 of them replanned: billing",
    ]


def test_a_dry_run_tells_the_same_and_changes_nothing(noonmark, emptied_database, tmp_path):
    assert noonmark("set", "us", "--yearly", "12-25", "--dry-run").startswith(
        "calendar us would be created: "
    )
    digest = json.loads(noonmark("set", "us", "--yearly", "12-25", "--yearly", "01-01", "--json"))["digest"]
    add_job(emptied_database, digest)
    assert noonmark("set", "us", "--date", "2026-11-26", "--dry-run").splitlines() == [
        "calendar us would be changed: 1 date",
        "1 added: 2026-11-26; 2 removed: 01-01, 12-25",
        "jobs that use it: 1: billing",
    ]
    told = json.loads(noonmark("set", "us", "--date", "2026-11-26", "--dry-run", "--json"))
    assert (told["change"], told["jobs"], told["added"]) == ("changed", 1, ["2026-11-26"])
    assert (told["removed"], told["used_by"]) == (["01-01", "12-25"], ["billing"])
    (tmp_path / "us.ics").write_text(ICS)
    assert "would be changed" in noonmark("import", "us", "us.ics", "--dry-run")
    assert json.loads(noonmark("show", "us", "--json"))["digest"] == digest


def test_single_entries_are_added_and_removed(noonmark, emptied_database):
    first = ("--yearly", "12-25", "--range", "2026-12-30..2027-01-01", "--weekday", "SAT")
    noonmark("set", "us", "--date", "2026-07-03", *first)
    changed = ("--add", "sun", "--add", "2027-07-05", "--remove", "SAT", "--remove", "2026-12-30..2027-01-01")
    assert noonmark("set", "us", *changed).splitlines()[1] == (
        "2 added: 2027-07-05, SUN; 2 removed: 2026-12-30..2027-01-01, SAT"
    )
    assert json.loads(noonmark("show", "us", "--json"))["body"] == {
        "dates": ["2026-07-03", "2027-07-05"],
        "weekdays": ["SUN"],
        "yearly": ["12-25"],
    }
    noonmark("set", "us", "--add", "2026-08-01", "--dry-run")
    assert "2026-08-01" not in noonmark("show", "us")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["us", "--add", "soon"], "--add 'soon' is not a calendar entry; expected a day such as"),
        (["us", "--add", "2026-13-01"], "--add: dates[0] is 2026-13-01"),
        (["us", "--remove", "2026-12-31"], "--remove 2026-12-31: calendar us has no such entry"),
        (["us", "--add", "SAT", "--date", "2026-12-25"], "give --add and --remove, or all days"),
        (["gone", "--add", "SAT"], "calendar 'gone' does not exist in namespace default; create it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_with_an_entry_is_told(noonmark, arguments, told):
    noonmark("set", "us", "--range", "2026-12-30..2027-01-01")
    with pytest.raises(CliError) as caught:
        noonmark("set", *arguments)
    assert told in str(caught.value)
    assert caught.value.code is ExitCode.USAGE


def test_jobs_that_have_no_next_instant_any_more_are_named(noonmark, emptied_database):
    digest = json.loads(noonmark("set", "us", "--weekday", "SAT", "--json"))["digest"]
    for number in range(12):
        add_job(emptied_database, digest, f"job-{number:02}")
    every = [f"--weekday={day}" for day in ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")]
    named = ", ".join(f"job-{number:02}" for number in range(10)) + " and 2 more"
    dry = noonmark("set", "us", *every, "--dry-run").splitlines()
    assert dry[-1] == f"warning: 12 would have no next instant left: {named}"
    done = noonmark("set", "us", *every).splitlines()
    assert done[-2:] == [
        f"jobs that use it: 12, 12 of them replanned: {named}",
        f"warning: 12 have no next instant left: {named}",
    ]
    told = json.loads(noonmark("set", "us", "--remove", "MON", "--json"))
    assert (told["without_next_instant"], len(told["used_by"])) == ([], 12)


def test_calendars_are_listed_with_their_jobs_and_by_namespace(noonmark, emptied_database):
    digest = json.loads(noonmark("set", "us", "--date", "2026-12-25", "--json"))["digest"]
    noonmark("set", "us", "--weekday", "SAT", "--namespace", "other")
    add_job(emptied_database, digest)
    lines = [line.split()[:5] for line in noonmark("list").splitlines()]
    assert lines == [
        ["CALENDAR", "NAMESPACE", "DAYS", "JOBS", "CHANGED"],
        ["us", "default", "1", "date", "1"],
    ]
    (only,) = json.loads(noonmark("list", "--namespace", "other", "--json"))["items"]
    assert (only["body"], only["jobs"]) == ({"weekdays": ["SAT"]}, 0)


def test_a_year_without_a_day_is_told(noonmark):
    noonmark("set", "us", "--date", "2026-12-25")
    assert noonmark("show", "us", "--year", "2030") == "us has no days in 2030\n"
    assert json.loads(noonmark("show", "us", "--year", "2026", "--json"))["days"] == ["2026-12-25"]


def test_holidays_are_imported_from_an_icalendar_file(noonmark, tmp_path):
    (tmp_path / "us.ics").write_text(ICS)
    first, second, third = noonmark("import", "us", "us.ics", "--years", "3").splitlines()
    assert first == "3 events read, 1 of them cancelled"
    assert second.startswith("calendar us created: ")
    assert third.startswith("recurring events are expanded up to ")
    again = json.loads(noonmark("import", "us", "us.ics", "--years", "3", "--json"))
    assert (again["change"], again["events"], again["cancelled"]) == ("unchanged", 3, 1)
    body = json.loads(noonmark("show", "us", "--json"))["body"]
    assert body["yearly"] == ["12-25"]
    assert "2026-11-26" in body["dates"]


def test_a_calendar_in_use_is_not_deleted(noonmark, emptied_database):
    digest = json.loads(noonmark("set", "us", "--date", "2026-12-25", "--json"))["digest"]
    add_job(emptied_database, digest)
    with pytest.raises(CliError, match="calendar us is used by the job billing; remove it from") as caught:
        noonmark("delete", "us")
    assert caught.value.code is ExitCode.PROBLEM
    noonmark("set", "de", "--yearly", "10-03")
    assert noonmark("delete", "de") == "calendar de deleted\n"


@pytest.mark.parametrize("command", [["show", "gone"], ["delete", "gone"]], ids=" ".join)
def test_a_calendar_that_is_not_there_is_a_sentence(noonmark, command):
    with pytest.raises(
        CliError, match="calendar 'gone' does not exist in namespace default; run `noonmark calendar list"
    ):
        noonmark(*command)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "no days given; use --file, --date, --range, --weekday or --yearly"),
        (["--file", "x.yaml", "--date", "2026-12-25"], "give --file or single days, not both"),
        (["--file", "missing.yaml"], "cannot read missing.yaml"),
        (["--file", "bad.yaml"], "bad.yaml is neither JSON nor YAML: line "),
        (["--file", "list.json"], "list.json: calendar is an array; expected an object"),
        (["--file", "wrong.yaml"], "wrong.yaml: dates[0] is 'soon', which is not a date; expected"),
        (["--date", "25.12.2026"], "--date is '25.12.2026', which is not a date"),
        (["--range", "2026-12-25"], "--range '2026-12-25' has no end; write both days"),
        (["--range", "2026-12-25..x"], "--range is 'x', which is not a date"),
        (["--weekday", "SAX"], "--weekday is 'SAX'; expected MON"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_with_a_calendar_is_told_with_its_place(noonmark, tmp_path, arguments, told):
    (tmp_path / "bad.yaml").write_text("dates: [")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "wrong.yaml").write_text("dates: [soon]")
    with pytest.raises(CliError) as caught:
        noonmark("set", "us", *arguments)
    assert told in str(caught.value)
    assert caught.value.code is ExitCode.USAGE


def test_a_name_that_is_none_and_a_file_that_is_none_are_told(noonmark, tmp_path):
    with pytest.raises(CliError, match="'US' is not a valid calendar name; expected 1 to 63 of"):
        noonmark("set", "US", "--date", "2026-12-25")
    (tmp_path / "x.ics").write_text("<html>")
    with pytest.raises(CliError, match=r"x\.ics: is not an iCalendar file"):
        noonmark("import", "us", "x.ics")
