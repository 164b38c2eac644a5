"""`noonmark schedule next`: what options mean, and what people and machines are told."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.schedule_calls import CRON, MARCH, error, fires, instants, run

from noonmark.cli.main import main

CASES = json.loads((Path(__file__).parents[2] / "cases" / "fire_instants.json").read_text(encoding="utf-8"))
NEVER = {"F018", "F019", "F020", "F191", "F192", "F194"}
"""Cases that have no instant at all: refused, with the reason."""


def told(capsys, monkeypatch, *words: str) -> tuple[int, str, str]:
    """Run as a person does, whose errors come as sentences on stderr."""
    monkeypatch.setattr(sys, "argv", ["noonmark", "schedule", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def test_the_next_fires_as_json_are_exactly_these():
    assert fires(*CRON, *MARCH, "--count", "2") == {
        "fires": [
            {"at": "2026-03-07T07:30:00Z", "local": "2026-03-07T02:30:00-05:00", "note": None},
            {"at": "2026-03-08T07:00:00Z", "local": "2026-03-08T03:00:00-04:00", "note": "moved: 02:30 does not exist"},
        ],
        "complete": False,
    }  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_each_known_case_has_its_instants(case):
    count = str(max(1, len(case["expected_utc"])))
    words = ["--zone", case["tz"], "--after", case["after"], "--count", count]
    if case["kind"] == "rrule":
        words += ["--rrule", case["expr"], "--dtstart", case["dtstart"]]
    else:
        words += ["--cron", case["expr"]]
        words += {"quartz7": ["--dialect", "quartz"], "sec-last": ["--seconds-field", "last"]}.get(
            case["style"], []
        )
    if case["id"] in NEVER:
        assert "never fires" in error(*words)["message"]
        return
    found = fires(*words)
    assert [fire["at"] for fire in found["fires"]] == case["expected_utc"]
    assert found["complete"] == case["complete"]


def test_an_interval_counts_from_its_start_else_from_after():
    assert instants("--every", "PT90M", *MARCH, "--count", "2") == [
        "2026-03-06T13:30:00Z", "2026-03-06T15:00:00Z",
    ]  # fmt: skip
    assert instants("--every", "3600", "--start", "2026-03-01T00:20:00Z", *MARCH, "--count", "1") == [
        "2026-03-06T12:20:00Z"
    ]
    assert fires("--every", "PT1H", "--end", "2026-01-01T00:00:00Z", *MARCH) == {
        "fires": [],
        "complete": True,
    }


def test_one_instant_is_complete_after_it_and_nothing_when_it_is_past():
    found = fires("--at", "2026-03-08T07:00:00Z", "--zone", "America/New_York", *MARCH)
    assert found == {
        "fires": [{"at": "2026-03-08T07:00:00Z", "local": "2026-03-08T03:00:00-04:00", "note": None}],
        "complete": True,
    }
    assert fires("--at", "2026-03-01T07:00:00Z", *MARCH) == {"fires": [], "complete": True}


@pytest.mark.parametrize(
    "text",
    [
        ["RRULE:FREQ=DAILY;COUNT=3\nEXDATE:20260307T020000\nRDATE:20260401T050000"],
        ["RRULE:FREQ=DAILY;COUNT=3\\nEXDATE:20260307T020000\\nRDATE:20260401T050000"],
        ["RRULE:FREQ=DAILY;COUNT=3", "EXDATE:20260307T020000", "RDATE:20260401T050000"],
    ],
    ids=["lines", "written line ends", "repeated"],
)
def test_a_recurrence_set_may_have_several_lines(text):
    words = [word for line in text for word in ("--rrule", line)]
    found = fires(*words, "--dtstart", "2026-03-06T02:00:00", "--after", "2026-03-01T00:00:00Z")
    assert [fire["at"] for fire in found["fires"]] == [
        "2026-03-06T02:00:00Z", "2026-03-08T02:00:00Z", "2026-04-01T05:00:00Z",
    ]  # fmt: skip
    assert found["complete"]


def test_dtstart_may_stand_in_the_text():
    assert instants("--rrule", "DTSTART:20260306T200000\\nRRULE:FREQ=DAILY;COUNT=1", *MARCH) == [
        "2026-03-06T20:00:00Z"
    ]


def test_an_exhausted_schedule_prints_none_and_is_complete():
    nothing = {"fires": [], "complete": True}
    assert fires(*CRON, "--end", "2026-03-01T00:00:00Z", *MARCH) == nothing
    assert fires("--rrule", "FREQ=DAILY;COUNT=2", "--dtstart", "1997-01-01T00:00:00", *MARCH) == nothing
    assert fires("--cron", "0 0 6 2 2 ? 2025", "--dialect", "quartz", *MARCH) == nothing
    assert fires("--cron", "0 0 6 2 2 ? 2027", "--dialect", "quartz", *MARCH)["complete"]


def test_until_cuts_the_list_without_making_it_complete():
    found = fires(*CRON, *MARCH, "--until", "2026-03-07T07:30:00Z")
    assert (len(found["fires"]), found["complete"]) == (1, False)
    found = fires(*CRON, *MARCH, "--until", "2026-03-07T07:29:59Z")
    assert (len(found["fires"]), found["complete"]) == (0, False)


def test_rules_for_the_clocks_are_options_and_what_they_take_away_is_listed():
    found = fires(*CRON, *MARCH, "--count", "2", "--dst-gap", "skip")
    assert [fire["at"] for fire in found["fires"]] == ["2026-03-07T07:30:00Z", "2026-03-09T06:30:00Z"]
    assert found["removed"] == [{"local": "2026-03-08T02:30:00", "note": "removed: 02:30 does not exist"}]
    november = [
        "--cron",
        "30 1 * * *",
        "--zone",
        "America/New_York",
        "--after",
        "2026-10-31T12:00:00Z",
        "--count",
        "2",
    ]
    assert instants(*november, "--dst-overlap", "both") == ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]
    assert instants(*november, "--dst-overlap", "last")[0] == "2026-11-01T06:30:00Z"


def test_a_name_picks_what_h_stands_for():
    one = instants("--cron", "H H * * *", "--name", "billing", *MARCH, "--count", "1")
    assert one == instants("--cron", "H H * * *", "--name", "billing", *MARCH, "--count", "1")
    assert len({tuple(instants("--cron", "H H * * *", "--name", f"job-{n}", *MARCH)) for n in range(20)}) > 15
    assert error("--cron", "H * * * *")["field"] == "minute"


def test_many_fires_can_be_asked_for():
    assert len(instants("--cron", "* * * * *", *MARCH, "--count", "10000")) == 10_000
    assert len(instants("--cron", "* * * * *", *MARCH)) == 10


def test_instants_before_1970_can_be_looked_at():
    assert instants("--cron", "0 9 * * *", "--zone", "Africa/Monrovia", "--after", "1936-01-01T00:00:00Z", "--count", "1") == [
        "1936-01-01T09:44:30Z"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "field", "position", "told"),
    [
        (["--cron", "61 * * * *"], "minute", 1, "value '61' at character 1 is out of range"),
        (["--cron", "0 9 * * 1-8"], "day-of-week", 11, "value '8' at character 11"),
        (["--cron", "0 0 31 2 *"], "day-of-month", 5, "February has no day 31"),
        (["--cron", "0 9 * *"], "cron", None, "has 4 fields"),
        (["--cron", ""], "cron", None, "0 fields"),
        (["--cron", "0 9 * * *", "--dialect", "solaris"], "dialect", None, "expected unix, quartz"),
        (["--cron", "0 9 * * *", "--seconds-field", "middle"], "seconds_field", None, "expected first, last"),
        (["--every", "PT1H", "--dialect", "unix"], "dialect", None, "for cron schedules only"),
        ([*CRON, "--dst-gap", "never"], "dst_gap", None, "expected auto, run_after, skip, shift"),
        ([*CRON, "--dst-overlap", "never"], "dst_overlap", None, "expected auto, first, last, both"),
        (["--cron", "0 9 * * *", "--zone", "America/New_Yrok"], "zone", None, "'America/New_York'"),
        (["--every", "PT0S"], "every", None, "out of range"),
        (["--every", "P1M"], "every", None, "a month has no fixed length"),
        (["--every", "soon"], "every", None, "not a duration"),
        (["--at", "someday"], "at", None, "not a time"),
        (["--rrule", "FREQ=DAILY"], "dtstart", None, "DTSTART"),
        (["--rrule", "FREQ=DAILY", "--dtstart", "noon"], "dtstart", None, "not a local time"),
        (["--rrule", "FREQ=SOMETIMES", "--dtstart", "2026-01-01T00:00:00"], "FREQ", 6, "SOMETIMES"),
        ([*CRON, "--after", "15"], "after", None, "has no unit"),
        ([*CRON, "--after", "2026-03-08T02:30:00"], "after", None, "clocks skip it"),
        ([*CRON, "--until", "later"], "until", None, "'later' is not a time"),
        ([*CRON, "--start", "later"], "start", None, "not a time"),
        ([*CRON, "--start", "2026-03-06T12:00:00Z", "--end", "2026-03-05T12:00:00Z"], "end", None, "before start"),
        ([*CRON, "--count", "0"], "count", None, "from 1 to 100000"),
        ([*CRON, "--count", "100001"], "count", None, "from 1 to 100000"),
        ([*CRON, "--count", "many"], "count", None, "from 1 to 100000"),
        ([*CRON, "--max-runs", "0"], "max_runs", None, "whole number"),
        ([*CRON, "--at", "2026-03-06T12:00:00Z"], "at", None, "both --cron and --at are given"),
        ([], None, None, "no schedule is given"),
        (["-f", "jobs.yaml", "--cron", "0 9 * * *"], "cron", None, "exclude each other"),
        (["-f", "/nowhere/jobs.yaml"], "file", None, "cannot read"),
        (["--cron", "5"], "cron", None, "is a fixed period; write --every 5"),
        (["--cron", "5", "--dialect", "quartz"], "cron", None, "is a fixed period; write --every 5"),
        (["--on-holiday", "skip", *CRON], "on_holiday", None, "--exclude-calendar or --include-calendar"),
        ([*CRON, "--exclude-calendar", "us"], "exclude_calendar", None, "--calendar us=FILE"),
        ([*CRON, "--include-calendar", "us"], "include_calendar", None, "--calendar us=FILE"),
        (["-f", "jobs.yaml", "--exclude-calendar", "us"], "exclude_calendar", None, "--exclude-calendar and --file"),
        ([*CRON, "--calendar", "us"], "calendar", None, "NAME=FILE"),
        ([*CRON, "--calendar", "us=/nowhere/us.yaml"], "calendar", None, "cannot read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_wrong_input_is_an_error_with_field_and_position(words, field, position, told):
    found = error(*words)
    assert list(found) == ["field", "position", "message"]
    assert (found["field"], found["position"]) == (field, position)
    assert told in found["message"]
    assert error(*words, command="explain") == found


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--cron", "0 9 * * *", "--seconds-field", "last"], "but --seconds-field last means a sixth"),
        (["--cron", "0 0 9 * * FOO"], "; --seconds-field last reads them last)"),
        (["--cron", "0 9 * *"], "(after them with --seconds-field last)"),
        (["--cron", "TZ=UTC 0 9 * * *"], "put the time zone in --zone, not"),
        (["--cron", "0 0 9 ? * 2", "--dialect", "quartz", "--seconds-field", "last"], "--seconds-field last is not allowed"),
        ([*CRON, "--dst-gap", "x"], "--dst-gap is 'x'"),
        ([*CRON, "--max-runs", "x"], "--max-runs is 'x'"),
        ([*CRON, "--end", "x"], "--end 'x' is not a time"),
        (["--cron", "H * * * *"], "give one with --name"),
        (["--rrule", "FREQ=DAILY"], "give --dtstart, or write a line such as DTSTART:"),
        (["--rrule", "DTSTART;TZID=Europe/Berlin:20260101T090000\\nRRULE:FREQ=DAILY"], "but --zone is UTC; give that zone with --zone"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_errors_of_options_speak_of_options_not_of_fields(words, told):
    message = error(*words)["message"]
    assert told in message
    assert "seconds_field" not in message
    assert "timezone" not in message


def test_errors_of_documents_speak_of_fields():
    code, out = run(
        "next", "-f", "-", "--json", stdin='{"schedule": {"cron": "0 9 * * *", "seconds_field": "last"}}'
    )
    assert code == 2
    assert "but seconds_field 'last' means a sixth" in json.loads(out)["error"]["message"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("PT15M", "is a fixed period; write --every PT15M"),
        ("15m", "is a fixed period; write --every 15m"),
        ("900", "is a fixed period; write --every 900"),
        ("FREQ=DAILY", "is a recurrence rule; write --rrule FREQ=DAILY --dtstart 2026-01-05T09:00:00"),
        ("RRULE:FREQ=WEEKLY;BYDAY=MO", "is a recurrence rule; write --rrule 'RRULE:FREQ=WEEKLY;BYDAY=MO'"),
        ("2026-06-01T09:00:00Z", "is one instant; write --at 2026-06-01T09:00:00Z"),
        ("cron(0 9 ? * MON-FRI *)", "is AWS's cron(...); write --cron '0 9 * * MON-FRI'"),
        ("cron(15 10 ? * 2-6 2027)", "write --cron '0 15 10 ? * 2-6 2027' --dialect quartz"),
        ("rate(5 minutes)", "is AWS's rate(...); write --every 5m"),
        ("0 0 9 ? * 2-6 2027", "write --cron '0 0 9 ? * 2-6 2027' --dialect quartz"),
        ("@every 1h30m", "is a fixed period; write --every 1h30m"),
        ("daily", "is systemd's OnCalendar=; write --cron '0 0 * * *'"),
        ("Mon..Fri 09:00", "write --cron '0 9 * * MON-FRI'"),
    ],
)
def test_a_text_that_is_no_cron_expression_gets_the_option_it_is_for(text, hint):
    assert hint in error("--cron", text)["message"]


def test_a_hint_is_given_only_where_the_text_is_another_kind():
    for text in ("0 9 * *", "61 * * * *", "@sometimes", "*/2-*-* 9:00", "12:00 noon"):
        assert "; write --" not in error("--cron", text)["message"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["0 9 * * *"], "unexpected argument '0 9 * * *'; write --cron '0 9 * * *'"),
        (["0", "9", "*", "*", "*"], "write --cron '0 9 * * *'"),
        (["--cron", "0", "9", "*", "*", "*"], "put the whole expression in quotes: --cron '0 9 * * *'"),
        (["@daily"], "write --cron '@daily'"),
        (["PT15M"], "write --every PT15M"),
        (["FREQ=DAILY"], "write --rrule FREQ=DAILY"),
        (["jobs.yaml"], "write -f 'jobs.yaml'"),
        (['{"every": 60}'], "or -f FILE for documents"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_words_that_stand_alone_are_told_which_option_they_belong_to(words, told):
    assert told in error(*words)["message"]
    assert told in error(*words, command="explain")["message"]


def test_a_calendar_that_nothing_uses_is_noted(tmp_path):
    file = tmp_path / "us.yaml"
    file.write_text("yearly: ['12-25']\n")
    found = fires(*CRON, *MARCH, "--calendar", f"us={file}")
    assert found["notes"] == [
        "No schedule uses calendar 'us' of --calendar: schedules exclude or include days by name."
    ]
    assert "notes" not in fires(*CRON, *MARCH, "--calendar", f"us={file}", "--exclude-calendar", "us")


def test_distances_count_from_after_where_it_is_given_and_far_ones_are_years():
    _, out = run("next", "--cron", "0 0 29 2 *", "--after", "2026-03-06T00:00:00Z", "--count", "3")
    head, *rows = out.splitlines()
    assert "FROM --after" in head
    assert [row.split("+00:00")[1].split()[1:] for row in rows] == [["725", "d"], ["6", "y"], ["10", "y"]]
    _, out = run("next", "--every", "PT1H", "--count", "1")
    assert "DAY  IN" in out
    assert "FROM" not in out


def test_now_is_a_whole_second():
    assert all(len(at) == len("2026-03-06T12:00:00Z") for at in instants("--every", "PT1H"))


def test_people_get_a_sentence_on_stderr_and_a_mark_below_the_place(capsys, monkeypatch):
    code, out, err = told(capsys, monkeypatch, "next", "--cron", "0 9 * * MON-FOO")
    assert (code, out) == (2, "")
    sentence, expression, mark = err.splitlines()
    assert sentence.startswith("cron day-of-week field: 'FOO' at character 13 is not a value")
    assert expression == "  0 9 * * MON-FOO"
    assert mark.index("^") - 2 == 12


def test_people_get_a_table_with_what_was_taken_away_in_its_place():
    code, out = run("next", *CRON, *MARCH, "--count", "2", "--dst-gap", "skip")
    assert code == 0
    assert out.splitlines() == [
        "UTC                   LOCAL                       DAY  FROM --after  NOTE",
        "2026-03-07T07:30:00Z  2026-03-07 02:30:00 -05:00  Sat  20 h",
        "-                     2026-03-08 02:30:00         Sun  -             removed: 02:30 does not exist",
        "2026-03-09T06:30:00Z  2026-03-09 02:30:00 -04:00  Mon  3 d",
    ]
    _, out = run("next", *CRON, *MARCH, "--end", "2026-03-01T00:00:00Z")
    assert out == "No more fires.\n"


def test_a_preview_needs_no_database_and_loads_no_driver(tmp_path):
    program = (
        "import sys, noonmark.cli.main as m\n"
        "sys.argv = ['noonmark', 'schedule', 'next', '--cron', '0 9 * * *', '--zone', 'Europe/Berlin', '--json']\n"
        "try: m.main()\n"
        "except SystemExit as ended: assert not ended.code\n"
        "print(*sorted({'psycopg', 'sqlalchemy', 'confluent_kafka', 'pydantic_settings', 'aiohttp', 'structlog',"
        " 'rich.console', 'yaml', 'noonmark.settings', 'noonmark.store'} & set(sys.modules)), file=sys.stderr)\n"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("NOONMARK_")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr.strip() == ""
    assert len(json.loads(done.stdout)["fires"]) == 10


@pytest.mark.parametrize("command", ["next", "explain", "diff"])
def test_each_command_has_help(command):
    code, out = run(command, "--help")
    assert code == 0
    assert f"schedule {command}" in out


@pytest.mark.parametrize(("command", "count"), [("next", 10), ("explain", 3)])
def test_help_says_how_many_fires_are_shown_and_what_a_file_is_read_for(command, count):
    _, out = run(command, "--help")
    told = re.sub(r"[\s│]+", " ", out)
    assert f"[default: {count}]" in told
    assert "use `noonmark submit --dry-run` to check whole documents" in told
    assert "with -f, of documents that name none" in told


def test_help_of_diff_says_how_sides_are_written():
    _, out = run("diff", "--help")
    told = re.sub(r"[\s│]+", " ", out)
    for text in ("Cron expression", '{"every": "PT15M"}', '{"rrule": "FREQ=DAILY"', "@FILE", "--limit"):
        assert text in told


@pytest.mark.parametrize("option", ["--at", "--start", "--end"])
def test_times_of_a_schedule_have_the_forms_of_all_times(option):
    rule = [] if option == "--at" else ["--every", "1h"]
    words = [*rule, "--after", "2026-06-01T00:00:00Z", "--count", "3", "--zone", "Europe/Berlin"]
    expected = fires(*words, option, "2026-06-01T03:00:00Z")
    assert expected["fires"]
    for given in ("2026-06-01T05:00", "2026-06-01 05:00:00", "2026-06-01T04:00+01:00"):
        assert fires(*words, option, given) == expected
    for given in ("tomorrow", "in 2h", "2h", "2126-06-01"):
        assert fires(*words, option, given)["fires"]
    assert "occurs twice" in error(*words, option, "2026-10-25T02:30")["message"]
