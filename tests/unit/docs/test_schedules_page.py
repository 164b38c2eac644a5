"""docs/schedules.md does what it says: each block is read or run, and each table is checked."""

import json
import re
import shlex
from datetime import UTC, datetime

import pytest
from tests.support.cli import CliRunner
from tests.unit.docs.pages import DOCS, blocks

from noonmark.cli.main import app
from noonmark.cli.schedules.files import read_file
from noonmark.cli.schedules.input import Reading
from noonmark.core.calendars.calendar import Calendar
from noonmark.core.cron.expression import parse_cron
from noonmark.core.explanations.cron import describe_cron
from noonmark.core.explanations.schedule import explain
from noonmark.core.schedule_error import ScheduleError
from noonmark.core.schedules.documents import Context, parse_schedule, read_document
from noonmark.core.schedules.preview import preview

PAGE = DOCS / "schedules.md"
TEXT = PAGE.read_text(encoding="utf-8")
AFTER = datetime(2026, 6, 1, tzinfo=UTC)
YAML = blocks(PAGE, "yaml")
HOLIDAYS = {"holidays": Calendar.parse({"yearly": ["12-25"]})}
NEW_YORK = "America/New_York"


def commands() -> list[tuple[str, str]]:
    """Commands and what they print."""
    found = []
    for block in blocks(PAGE, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def table(heading: str) -> list[list[str]]:
    """The rows below the head line of the table that starts with this one."""
    lines = TEXT[TEXT.index(heading) :].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The YAML files that the page names, where commands run."""
    for block in YAML:
        if found := re.match(r"# (\S+\.yaml)\n", block):
            (tmp_path / found[1]).write_text(block, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("command", "output"), commands(), ids=[command[:60] for command, _ in commands()])
def test_each_command_prints_what_the_page_shows(command, output, files):
    program, *words = shlex.split(command)
    assert program == "noonmark"
    result = CliRunner().invoke(app, words)
    assert result.stdout.rstrip() == output.rstrip()
    assert result.exit_code == (2 if '"error"' in output else 0)


@pytest.mark.parametrize("block", blocks(PAGE, "json"), ids=lambda block: block[:40])
def test_each_json_example_is_a_schedule_or_a_job_with_one(block):
    subject = Reading(AFTER).of_document(json.loads(block))
    assert subject.schedule is not None
    assert subject.schedule.next(AFTER) is not None
    assert explain(subject.schedule, AFTER).sentence


@pytest.mark.parametrize("block", YAML, ids=lambda block: block[:40])
def test_each_yaml_example_is_a_schedule_a_calendar_or_jobs(block, tmp_path):
    file = tmp_path / "example.yaml"
    file.write_text(block, encoding="utf-8")
    documents = read_file(str(file)).items
    if block.startswith("# jobs.yaml"):
        assert [document["name"] for document in documents] == ["billing", "broken"]
    elif block.startswith("# two-jobs.yaml"):
        subjects = [Reading(AFTER).of_document(document) for document in documents]
        assert [subject.name for subject in subjects] == ["weekday", "saturday"]
    elif block.startswith("# holidays.yaml"):
        assert Calendar.parse(documents[0]).days(AFTER.date(), AFTER.date())
    else:
        subject = Reading(AFTER, calendars=HOLIDAYS).of_document(documents[0])
        assert subject.schedule.next(AFTER) is not None
        assert subject.notes == []


def test_each_expression_reads_as_the_page_says():
    rows = table("| expression | |")
    assert len(rows) >= 12
    for expression, words in rows:
        assert describe_cron(parse_cron(expression.strip("`"))).when == words


def clocks(cell: str) -> list[str]:
    return [] if cell == "\u2013" else cell.split(", ")


@pytest.mark.parametrize("row", table("| schedule | `auto` | `run_after`"), ids=lambda row: row[0])
def test_what_runs_in_the_gap_is_what_the_table_says(row):
    for rule, cell in zip(("auto", "run_after", "skip", "shift"), row[1:], strict=True):
        document = {"cron": row[0].strip("`"), "timezone": NEW_YORK, "dst_gap": rule}
        schedule = read_document(document, Context(AFTER))
        low, high = datetime(2026, 3, 8, 6, 59, 59, tzinfo=UTC), datetime(2026, 3, 8, 7, 59, tzinfo=UTC)
        found = preview(schedule, low, high, 100).fires
        assert [f"{fire.local:%H:%M}" for fire in found] == clocks(cell), (row[0], rule)


@pytest.mark.parametrize("row", table("| schedule | `auto` | `first`"), ids=lambda row: row[0])
def test_what_runs_in_the_overlap_is_what_the_table_says(row):
    for rule, cell in zip(("auto", "first", "last", "both"), row[1:], strict=True):
        document = {"cron": row[0].strip("`"), "timezone": NEW_YORK, "dst_overlap": rule}
        schedule = read_document(document, Context(AFTER))
        low, high = datetime(2026, 11, 1, 4, 59, tzinfo=UTC), datetime(2026, 11, 1, 6, 59, tzinfo=UTC)
        found = preview(schedule, low, high, 100).fires
        assert [f"{fire.at:%H:%M}" for fire in found] == clocks(cell), (row[0], rule)


@pytest.mark.parametrize(
    "expression",
    [
        form
        for row in table("| form | means |")
        for form in re.findall(r"`([^`]+)`", row[0])
        if form.startswith("@")
    ],
)
def test_each_nickname_of_the_page_is_known(expression):
    assert parse_cron(expression)


def test_each_form_of_the_page_is_read():
    for text in ("1,15", "9-17", "*/15", "9-17/2", "5/20", "H", "H/15", "H(1-5)"):
        assert parse_cron(f"{text} * * * *", seed="a")
    for text in ("L", "L-3", "15W", "LW", "?"):
        assert parse_cron(f"0 0 {text} * *")
    for text in ("MON#2", "FRIL", "FRI-MON", "?"):
        assert parse_cron(f"0 0 * * {text}")


def test_what_the_page_says_is_refused_is_refused():
    refused = ["0 0 30 2 *", "*/60 * * * *", "0 0 1 */12 *"]
    for expression in refused:
        assert expression in TEXT or expression.split()[0] in TEXT
        result = CliRunner().invoke(app, ["schedule", "next", "--cron", expression, "--json"])
        assert result.exit_code == 2
    result = CliRunner().invoke(app, ["schedule", "next", "--every", "P1M", "--json"])
    assert result.exit_code == 2


def test_what_the_page_says_of_schedules_that_have_nothing_left_is_so():
    ended = {"cron": "0 9 * * *", "end": "2026-05-31T00:00:00Z"}
    over = {"cron": "0 0 6 2 2 ? 2025", "dialect": "quartz"}
    for document in (ended, over):
        with pytest.raises(ScheduleError):
            parse_schedule(document, created_at=AFTER)
        assert preview(read_document(document, Context(AFTER)), AFTER, None, 3).complete


def test_a_list_is_a_union_in_a_document_and_several_jobs_in_a_file(files):
    for file, jobs in (("one-job.yaml", 1), ("two-jobs.yaml", 2)):
        words = ["schedule", "next", "-f", file, "--json", "--after", "2026-06-05T12:00:00Z", "--count", "2"]
        results = [json.loads(line) for line in CliRunner().invoke(app, words).stdout.splitlines()]
        assert len(results) == jobs
        first = [fire["at"] for fire in results[0]["fires"]]
        assert first[0] == ("2026-06-06T10:00:00Z" if jobs == 1 else "2026-06-08T09:00:00Z")
