"""`noonmark schedule explain` and `diff`."""

import json

import pytest
from tests.unit.cli.schedule_calls import CRON, MARCH, error, run


def test_explain_says_it_in_words_and_shows_the_first_fires():
    code, out = run("explain", *CRON, "--after", "2026-12-01T00:00:00Z")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "Every day at 02:30, New York time."
    assert lines[1] == "  - On 14 March 2027 02:30 does not exist: runs at 03:00."
    assert "2026-12-01T07:30:00Z" in out
    code, out = run("explain", *CRON, *MARCH, "--json")
    document = json.loads(out)
    assert list(document) == ["sentence", "details", "warnings", "fires", "complete"]
    assert len(document["fires"]) == 3


def test_explain_marks_warnings_and_takes_files():
    _, out = run("explain", "--cron", "0 0 29 2 *", *MARCH)
    assert "  ! The next fire is more than a year away: 29 February 2028 at 00:00." in out
    code, out = run(
        "explain", "-f", "-", "--json", stdin=json.dumps([{"name": "a", "schedule": "@daily"}, {"name": "b"}])
    )
    assert code == 0
    assert [json.loads(line)["sentence"] for line in out.splitlines()] == [
        "Every day at 00:00, UTC.", "Once, as soon as the job is created.",
    ]  # fmt: skip


def test_diff_shows_what_one_schedule_fires_and_the_other_does_not(tmp_path):
    words = ["--zone", "America/New_York", "--after", "2026-03-01T00:00:00Z", "--json"]
    code, out = run("diff", "30 2 * * *", '{"cron": "30 2 * * *", "dst_gap": "skip"}', *words)
    assert code == 0
    assert json.loads(out) == {
        "added": [],
        "removed": [{"at": "2026-03-08T07:00:00Z", "local": "2026-03-08T03:00:00-04:00", "note": "moved: 02:30 does not exist"}],
        "until": "2026-03-31T00:00:00Z",
        "complete": True,
        "fields": ["dst_gap"],
    }  # fmt: skip
    file = tmp_path / "job.yaml"
    file.write_text("name: a\nschedule: {cron: 0 9 * * *, timezone: Europe/Berlin}\n")
    code, out = run("diff", f"@{file}", "@daily", "--days", "1", "--after", "2026-03-01T00:00:00Z", "--json")
    found = json.loads(out)
    assert [fire["at"] for fire in found["removed"]] == ["2026-03-01T08:00:00Z"]
    assert [fire["at"] for fire in found["added"]] == ["2026-03-02T00:00:00Z"]


def test_diff_shows_people_a_table_and_the_numbers():
    code, out = run("diff", "0 9 * * *", "0 10 * * *", "--days", "1", "--after", "2026-03-01T00:00:00Z")
    assert code == 0
    assert out.splitlines() == [
        "1 added, 1 removed until 2026-03-02T00:00:00Z",
        "Different fields: cron",
        "",
        "   UTC                   LOCAL                       DAY  NOTE",
        "-  2026-03-01T09:00:00Z  2026-03-01 09:00:00 +00:00  Sun",
        "+  2026-03-01T10:00:00Z  2026-03-01 10:00:00 +00:00  Sun",
    ]


def test_diff_says_which_fields_differ_where_no_fire_does(tmp_path):
    words = ["--after", "2026-03-01T00:00:00Z"]
    _, out = run("diff", "0 9 * * *", '{"cron": "0 9 * * *", "jitter_seconds": 60, "max_runs": 99}', *words)
    assert out.splitlines() == [
        "0 added, 0 removed until 2026-03-31T00:00:00Z",
        "Same fires, but different fields: jitter_seconds, max_runs",
    ]
    _, out = run("diff", "0 9 * * *", '{"cron": "0 9 * * *", "timezone": "UTC"}', *words)
    assert out.splitlines() == ["0 added, 0 removed until 2026-03-31T00:00:00Z"]
    sides = [json.dumps({"cron": "0 9 * * *", "calendars": {"exclude": name}}) for name in ("us", "de")]
    _, out = run("diff", *sides, *words, "--json")
    assert json.loads(out)["fields"] == ["calendars"]


def test_diff_counts_max_runs_from_where_it_starts():
    _, out = run(
        "diff",
        "0 9 * * *",
        '{"cron": "0 9 * * *", "max_runs": 28}',
        "--after",
        "2026-03-01T00:00:00Z",
        "--json",
    )
    found = json.loads(out)
    assert [fire["at"] for fire in found["removed"]] == ["2026-03-29T09:00:00Z", "2026-03-30T09:00:00Z"]
    assert (found["added"], found["complete"]) == ([], True)


def test_diff_shows_each_side_on_its_own_clock_and_says_where_zones_differ():
    words = ["diff", '{"cron": "0 3 * * *", "timezone": "America/New_York"}', "0 3 * * *", "--days", "1"]
    words += ["--after", "2026-03-01T12:00:00Z", "--json"]
    found = json.loads(run(*words)[1])
    assert [fire["local"] for fire in found["removed"]] == ["2026-03-02T03:00:00-05:00"]
    assert [fire["local"] for fire in found["added"]] == ["2026-03-02T03:00:00+00:00"]
    told = "A uses America/New_York, B uses UTC: each row shows local time of its side."
    assert found["notes"] == [f"{told} B names no zone; set it with --zone."]
    found = json.loads(run(*words, "--zone", "America/New_York")[1])
    assert found["added"] == found["removed"] == found["fields"] == []
    assert "notes" not in found
    words[2], words[1] = words[1], '{"every": "PT5H"}'
    found = json.loads(run(*words)[1])
    assert found["removed"][0]["local"] == "2026-03-01T12:00:00-05:00"
    assert "notes" not in found


def test_diff_of_dense_schedules_shows_twenty_rows_a_side_and_tells_the_rest():
    words = ["diff", "* * * * *", '{"cron": "30 * * * * *", "start": "2026-03-01T00:00:00Z"}', "--days", "1"]
    words += ["--after", "2026-03-01T00:00:00Z"]
    _, out = run(*words)
    assert out.splitlines()[0] == "1440 added, 1440 removed until 2026-03-02T00:00:00Z"
    assert sum(line[:1] in {"+", "-"} for line in out.splitlines()) == 40
    assert out.splitlines()[-1] == "Not shown: 1420 more added, 1420 more removed; use --limit N."
    _, out = run(*words, "--limit", "2")
    assert sum(line[:1] in {"+", "-"} for line in out.splitlines()) == 4
    found = json.loads(run(*words, "--json")[1])
    assert (len(found["added"]), found["complete"]) == (1440, True)
    found = json.loads(run(*words, "--json", "--limit", "2")[1])
    assert (len(found["added"]), found["complete"]) == (2, False)
    assert error(*words[1:], "--limit", "0", command="diff")["field"] == "limit"


def test_diff_from_now_ends_on_a_whole_second():
    found = json.loads(run("diff", "0 9 * * *", "0 9 * * *", "--json")[1])
    assert len(found["until"]) == len("2026-03-31T00:00:00Z")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("61 * * * *", "0 9 * * *", "A: cron minute field"),
        ("0 9 * * *", "{", "B: is not JSON"),
        ("0 9 * * *", '{"name": "a"}', "B: is a job without a schedule"),
        ("@/nowhere.yaml", "0 9 * * *", "A: cannot read /nowhere.yaml"),
        ("@sometimes", "0 9 * * *", "A: cron nickname '@sometimes'"),
        ("PT15M", "0 9 * * *", 'is a fixed period; write {"every": "PT15M"}'),
        ("0 9 * * *", "FREQ=DAILY", 'is a recurrence rule; write {"rrule": "FREQ=DAILY", "dtstart": '),
    ],
)
def test_diff_says_which_side_is_wrong(old, new, told):
    assert told in error(old, new, command="diff")["message"]
    assert error("0 9 * * *", "0 9 * * *", "--days", "0", command="diff")["field"] == "days"
