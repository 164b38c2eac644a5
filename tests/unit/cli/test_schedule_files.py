"""`noonmark schedule next -f`: files of job documents, and calendars from files."""

import json

import pytest
from tests.support.cli import CliRunner, call
from tests.unit.cli.schedule_calls import MARCH, error, instants, run

from noonmark.cli.main import app

JOBS = [
    {"name": "billing", "type": "http", "schedule": {"cron": "30 2 * * *", "timezone": "America/New_York"}},
    {"name": "broken", "schedule": {"cron": "61 2 * * *"}},
    {"name": "later", "run_at": "2026-05-01T00:00:00Z"},
    {"cron": "0 9 * * *"},
    {"name": "zoned", "schedule": {"cron": "0 9 * * *", "timezone": "Nowhere"}},
    {"specversion": "1.0", "id": "1", "type": "x", "data": {"name": "event", "schedule": "0 9 * * *"}},
]


@pytest.mark.parametrize(
    "text",
    [json.dumps(JOBS), "\n".join(map(json.dumps, JOBS)), json.dumps(JOBS, indent=2)],
    ids=["list", "lines", "indented list"],
)
def test_a_file_of_jobs_has_one_result_for_each_and_fails_if_one_is_wrong(text):
    code, out = run("next", "-f", "-", "--json", *MARCH, "--count", "1", stdin=text)
    assert code == 2
    results = [json.loads(line) for line in out.splitlines()]
    assert [result["name"] for result in results] == ["billing", "broken", "later", None, "zoned", "event"]
    assert results[0] == {
        "name": "billing",
        "fires": [{"at": "2026-03-07T07:30:00Z", "local": "2026-03-07T02:30:00-05:00", "note": None}],
        "complete": False,
    }
    assert results[1] == {
        "name": "broken",
        "error": {
            "field": "minute",
            "position": 1,
            "message": results[1]["error"]["message"],
            "pointer": "/schedule/cron",
        },
    }
    assert results[2]["complete"]
    assert results[3]["fires"][0]["at"] == results[5]["fires"][0]["at"] == "2026-03-07T09:00:00Z"
    assert results[4]["error"]["field"] == "timezone"


def test_yaml_reads_plain_words_as_json_would(tmp_path):
    file = tmp_path / "jobs.yaml"
    file.write_text(
        """
- name: on
  schedule: {cron: 30 2 * * *, start: 2026-03-07T00:00:00Z}
- name: later
  run_at: 2026-05-01T00:00:00Z
- name: rrule
  schedule:
    rrule:
      - RRULE:FREQ=DAILY;COUNT=2
      - EXDATE:20260307T090000
    dtstart: 2026-03-07T09:00:00
    max_runs: 5
---
name: second document
schedule: "@daily"
"""
    )
    code, out = run("next", "-f", str(file), "--json", *MARCH, "--count", "1")
    # Several documents of which one is a list: each list is a job file of its own only when it stands alone.
    assert code == 2
    file.write_text(file.read_text().partition("---")[0])
    code, out = run("next", "-f", str(file), "--json", *MARCH, "--count", "1")
    assert code == 0, out
    results = [json.loads(line) for line in out.splitlines()]
    assert [(result["name"], result["fires"][0]["at"]) for result in results] == [
        ("on", "2026-03-07T02:30:00Z"),
        ("later", "2026-05-01T00:00:00Z"),
        ("rrule", "2026-03-08T09:00:00Z"),
    ]


def test_several_yaml_documents_are_several_jobs(tmp_path):
    file = tmp_path / "jobs.yaml"
    file.write_text('name: a\nschedule: "@daily"\n---\nname: b\nschedule: {every: PT1H}\n')
    code, out = run("next", "-f", str(file), "--json", *MARCH, "--count", "1")
    assert code == 0
    assert [json.loads(line)["name"] for line in out.splitlines()] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "contains no document"),
        ("[]", "contains no document"),
        ("{a: [", "neither JSON nor YAML"),
        ("- name: a\n  schedule: * * * * *\n", "put an expression that starts with * in quotes"),
        ("[" * 100_000, "nested too deeply"),
        ('{"name": \n{"name": ', "line 1 is not JSON"),
    ],
    ids=["empty", "empty list", "broken", "star", "deep", "all lines broken"],
)
def test_a_file_that_cannot_be_read_is_one_error(text, told):
    code, out = run("next", "-f", "-", "--json", stdin=text)
    assert code == 2
    assert told in json.loads(out)["error"]["message"]


@pytest.mark.parametrize("broken", ['{"name": ', "name: b}", "] oops"])
def test_a_broken_line_is_one_error_and_the_others_are_shown(broken):
    good = [
        json.dumps({"name": name, "schedule": "0 9 * * *"}, ensure_ascii=False) for name in ("a", "c\u2028")
    ]
    code, out = run(
        "next", "-f", "-", "--json", *MARCH, "--count", "1", stdin="\n".join([good[0], broken, good[1]])
    )
    assert code == 2
    first, second, third = map(json.loads, out.strip("\n").split("\n"))
    assert (first["name"], third["name"]) == ("a", "c\u2028")
    assert first["fires"] == third["fires"] != []
    assert second["name"] is None
    assert second["error"]["field"] == "file"
    assert second["error"]["message"].startswith("standard input: line 2 is not JSON")


def test_documents_before_a_broken_one_of_a_yaml_stream_are_shown():
    code, out = run("next", "-f", "-", "--json", *MARCH, stdin='name: a\nschedule: "@daily"\n---\n{b: [\n')
    assert code == 2
    first, second = map(json.loads, out.splitlines())
    assert first["fires"]
    assert "neither JSON nor YAML" in second["error"]["message"]


def test_tables_have_each_error_in_its_place_and_apart():
    documents = [{"name": "a", "schedule": "0 9 * * *"}, {"name": "b", "schedule": "61 9 * * *"}]
    result = CliRunner().invoke(
        app,
        ["schedule", "next", "-f", "-", *MARCH, "--count", "1"],
        input=json.dumps([*documents, *documents[:1]]),
    )
    assert result.exit_code == 2
    blocks = result.output.split("\n\n")
    assert [block.partition(":")[0] for block in blocks] == ["a", "b", "a"]
    assert blocks[1].startswith("b: cron minute field: value '61'")
    assert blocks[1].splitlines()[1:] == ["  61 9 * * *", "  ^"]
    assert "b:" not in result.stdout
    assert result.stderr.strip().startswith("b:")


def test_a_wrong_run_at_is_told_by_its_own_name():
    code, out = run("next", "-f", "-", "--json", stdin='{"name": "a", "run_at": "tomorrow"}')
    assert code == 2
    found = json.loads(out)["error"]
    assert (found["field"], found["pointer"]) == ("run_at", "/run_at")
    assert found["message"].startswith("run_at 'tomorrow' is not an instant")


def test_a_document_without_zone_whose_namespace_may_have_one_is_noted():
    def notes(document: dict, *words: str) -> list[str]:
        code, out = run("next", "-f", "-", "--json", *MARCH, *words, stdin=json.dumps(document))
        assert code == 0, out
        return json.loads(out).get("notes", [])

    job = {"name": "a", "namespace": "shop", "schedule": "0 9 * * *"}
    assert notes(job) == [
        "No timezone: UTC is used; namespace 'shop' may have a default zone; set it with --zone."
    ]
    assert notes({"specversion": "1.0", "data": job}) == notes(job)
    assert notes(job, "--zone", "Europe/Berlin") == notes(job, "--zone", "UTC") == []
    assert notes(job | {"schedule": {"cron": "0 9 * * *", "timezone": "UTC"}}) == []
    assert notes(job | {"schedule": {"every": "PT1H"}}) == []
    assert notes({"name": "a", "schedule": "0 9 * * *"}) == []


def test_texts_of_other_kinds_in_a_schedule_get_a_hint():
    for text, hint in (("PT15M", '{"every": "PT15M"}'), ("FREQ=DAILY", '{"rrule": "FREQ=DAILY", "dtstart"')):
        for schedule in (text, {"cron": text}, [text]):
            _, out = run("next", "-f", "-", "--json", stdin=json.dumps({"name": "a", "schedule": schedule}))
            assert hint in json.loads(out)["error"]["message"]


def test_a_list_of_schedules_gets_a_hint_that_it_is_no_union():
    def hints(documents: list) -> str:
        words = ["schedule", "next", "-f", "-", "--json", *MARCH, "--count", "1"]
        return CliRunner().invoke(app, words, input=json.dumps(documents)).stderr

    assert "each was read as a separate job" in hints([{"cron": "0 9 * * *"}, {"every": "PT1H"}])
    assert "each was read as a separate job" in hints(["0 9 * * *", "0 10 * * *"])
    assert hints(JOBS[:1] + JOBS[2:4]) == ""
    assert hints([{"name": "a", "cron": "0 9 * * *"}, {"name": "b", "cron": "0 9 * * *"}]) == ""


def test_known_calendars_hold_also_where_others_are_unknown(tmp_path):
    file = tmp_path / "known.yaml"
    file.write_text("dates: [2026-03-07]\n")
    rule = {"exclude": ["known", "unknown"], "include": "other"}
    job = {"name": "a", "schedule": {"cron": "0 9 * * *", "calendars": rule}}
    words = ["next", "-f", "-", "--json", *MARCH, "--count", "1", "--calendar", f"known={file}"]
    code, out = run(*words, stdin=json.dumps(job))
    assert code == 0
    found = json.loads(out)
    assert found["fires"][0]["at"] == "2026-03-08T09:00:00Z"
    (note,) = found["notes"]
    assert "Calendars 'unknown', 'other' are ignored" in note
    rule["on_holiday"] = "never"
    code, out = run(*words, stdin=json.dumps(job))
    assert code == 2
    assert json.loads(out)["error"]["pointer"] == "/schedule/calendars/on_holiday"


def test_a_calendar_that_no_document_uses_is_noted(tmp_path):
    file = tmp_path / "us.yaml"
    file.write_text("yearly: ['12-25']\n")
    words = ["schedule", "next", "-f", "-", "--json", *MARCH, "--calendar", f"us={file}"]
    plain = {"name": "a", "schedule": "0 9 * * *"}
    user = {"name": "b", "schedule": {"cron": "0 9 * * *", "calendars": {"exclude": ["us"]}}}
    assert "No schedule uses calendar 'us'" in CliRunner().invoke(app, words, input=json.dumps(plain)).stderr
    assert CliRunner().invoke(app, words, input=json.dumps([plain, user])).stderr == ""


def test_jitter_that_a_submission_would_refuse_is_refused_here():
    job = {"name": "a", "schedule": {"cron": "* * * * *", "jitter_seconds": 90}}
    code, out = run("next", "-f", "-", "--json", stdin=json.dumps(job))
    assert code == 2
    assert json.loads(out)["error"]["field"] == "jitter_seconds"
    job["schedule"] |= {"jitter_seconds": 30, "end": "2026-01-01T00:00:00Z"}
    assert run("next", "-f", "-", "--json", *MARCH, stdin=json.dumps(job))[0] == 0


def test_the_zone_option_is_the_default_of_documents():
    job = json.dumps({"name": "a", "schedule": "0 9 * * *"})
    _, out = run("next", "-f", "-", "--json", *MARCH, "--zone", "Asia/Kolkata", "--count", "1", stdin=job)
    assert json.loads(out)["fires"][0]["local"] == "2026-03-07T09:00:00+05:30"


def test_a_calendar_that_is_not_at_hand_is_said_and_one_that_is_given_is_kept_to(tmp_path):
    job = json.dumps({"name": "a", "schedule": {"cron": "0 9 * * *", "calendars": {"exclude": ["holidays"]}}})
    words = ["next", "-f", "-", "--json", "--after", "2026-12-24T12:00:00Z", "--count", "1"]
    _, out = run(*words, stdin=job)
    found = json.loads(out)
    assert found["fires"][0]["at"] == "2026-12-25T09:00:00Z"
    assert "'holidays' is ignored" in found["notes"][0]
    file = tmp_path / "holidays.yaml"
    file.write_text("yearly: ['12-25']\ndates: [2026-12-26]\n")
    _, out = run(*words, "--calendar", f"holidays={file}", stdin=job)
    found = json.loads(out)
    assert found["fires"][0]["at"] == "2026-12-27T09:00:00Z"
    assert [gone["local"] for gone in found["removed"]] == ["2026-12-25T09:00:00", "2026-12-26T09:00:00"]
    assert "notes" not in found
    assert instants(
        "--cron", "0 9 25 12 *", "--after", "2026-12-24T12:00:00Z", "--count", "1", "--calendar",
        f"holidays={file}", "--exclude-calendar", "holidays", "--on-holiday", "next_business_day",
    ) == ["2026-12-27T09:00:00Z"]  # fmt: skip


def test_a_calendar_may_be_an_icalendar_file(tmp_path):
    file = tmp_path / "holidays.ics"
    file.write_text(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//a//b//EN\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\n"
        "DTSTART;VALUE=DATE:20261225\r\nRRULE:FREQ=YEARLY\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    words = ["--cron", "0 9 24,25 12 *", "--after", "2026-12-01T00:00:00Z", "--count", "2"]
    assert instants(*words, "--calendar", f"h={file}", "--exclude-calendar", "h") == [
        "2026-12-24T09:00:00Z", "2027-12-24T09:00:00Z",
    ]  # fmt: skip
    file.write_text("BEGIN:VCALENDAR\r\n")
    assert str(file) in error(*words, "--calendar", f"h={file}")["message"]


BROKEN = '{\n  "name": "a",\n  "schedule": "@daily",\n}\n'


def test_a_file_named_json_is_not_read_as_yaml(tmp_path):
    file = tmp_path / "job.json"
    file.write_text(BROKEN)
    for words in (("schedule", "next", "-f"), ("schedule", "explain", "-f"), ("submit", "--dry-run")):
        told = call(*words, str(file), code=2).stderr
        assert f"{file} is not JSON: line " in told
        assert "column" in told
    assert "column" in error("-f", str(file))["message"]
    assert "job.json is not JSON: line " in error("--cron", "@daily", "--calendar", f"us={file}")["message"]
    file.write_text("\ufeff" + json.dumps({"name": "a", "schedule": "@daily"}))
    assert run("next", "-f", str(file))[0] == 0
    other = tmp_path / "job.yaml"
    other.write_text(BROKEN)
    assert run("next", "-f", str(other))[0] == 0


def test_a_job_without_a_schedule_is_valid_and_due_once():
    code, out = run("next", "-f", "-", stdin='{"name": "a", "type": "http"}')
    assert code == 0
    assert "The job has no schedule: it is due as soon as it is created." in out
