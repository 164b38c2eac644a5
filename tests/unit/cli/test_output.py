"""What commands print."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from noonmark.cli.runs import commands, rejections
from noonmark.cli.runs.commands import run_fields
from noonmark.cli.terminal import output
from noonmark.cli.terminal.output import field, fitted, show_fields, show_json, show_list


def test_a_pipe_gets_aligned_columns_under_one_head_line_and_nothing_else(capsys):
    rows = [{"id": 1, "name": "short"}, {"id": 22, "name": "a longer name"}]
    show_list(rows, (field("id"), field("name"), field("more", wide=True)), footer="more: --after 22")
    assert capsys.readouterr().out.splitlines() == ["ID  NAME", "1   short", "22  a longer name"]


def test_wide_columns_appear_only_where_they_are_asked_for(capsys):
    show_list([{"id": 1, "more": "x"}], (field("id"), field("more", wide=True)), wide=True)
    assert capsys.readouterr().out.splitlines() == ["ID  MORE", "1   x"]


def test_an_empty_listing_is_its_head_line(capsys):
    show_list([], (field("id"), field("name")))
    assert capsys.readouterr().out == "ID  NAME\n"


def test_json_spells_instants_and_ids_in_their_standard_forms(capsys):
    at = datetime(2026, 6, 1, 9, 0, 0, 250_000, tzinfo=UTC)
    show_json({"at": at, "id": UUID(int=1), "name": "ä", "raw": b"\xff"})
    assert capsys.readouterr().out.strip() == (
        '{"at": "2026-06-01T09:00:00.250000Z", "id": "00000000-0000-0000-0000-000000000001", "name": "ä", "raw": "�"}'
    )


def test_what_comes_from_outside_cannot_steer_the_terminal():
    assert output.text("bad\x1b[31mname\nsecond line") == "bad [31mname second line"


def test_nothing_is_a_dash():
    assert [output.text(None), output.text(""), output.text(0), output.text(False)] == ["-", "-", "0", "no"]


def test_nested_values_are_shown_as_indented_json(capsys):
    show_fields({"name": "a", "retry": {"max_retries": 3}})
    assert capsys.readouterr().out.splitlines() == [
        "name   a",
        "retry  {",
        '         "max_retries": 3',
        "       }",
    ]


def test_texts_that_may_be_cut_leave_one_line_per_row_and_the_others_whole():
    columns = (field("id"), field("event", cut=True), field("problems", cut=True))
    rows = fitted(columns, [["7", "short", "x" * 200], ["8", "y" * 30, "z"]], 60)
    assert all(sum(map(len, row)) + 2 * 3 <= 60 for row in rows)
    assert [row[0] for row in rows] == ["7", "8"]
    assert rows[0][1] == "short"
    assert rows[0][2].endswith("x…")
    assert rows[1][2] == "z"


def test_rows_that_fit_are_left_as_they_are():
    columns = (field("id"), field("problems", cut=True))
    assert fitted(columns, [["7", "x" * 20]], 60) == [["7", "x" * 20]]


RUN_ID = "01a227be-5de9-7001-9066-803d29ef2a93"


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(output, "is_terminal", lambda: True)


def run_row(**more):
    return {
        "id": RUN_ID, "job_name": "send-the-monthly-invoices-of-all-customers", "priority": "normal",
        "state": "succeeded", "reason": None, "attempt": 1, "scheduled_for": datetime(2026, 6, 1, tzinfo=UTC),
        "start_delay_seconds": 0.1, "took_seconds": 90, **more,
    }  # fmt: skip


def test_a_narrow_terminal_has_the_important_columns_and_whole_ids(terminal, capsys):
    show_list([run_row(), run_row(state="cancelling")], commands._COLUMNS, footer="more: --after 7")

    lines = capsys.readouterr().out.splitlines()

    assert lines[0].split() == ["RUN", "JOB", "LANE", "STATE"]
    assert all(len(line) <= 80 for line in lines)
    assert sum(line.startswith(f"{RUN_ID}  ") for line in lines) == 2
    assert lines[-2:] == [
        "not shown for lack of width: REASON, ATTEMPTS, DUE, DELAY, TOOK",
        "more: --after 7",
    ]


def test_the_token_of_the_next_page_is_not_broken_on_a_narrow_terminal(terminal, capsys):
    more = f"more: --after {'c' * 200}"
    show_list([run_row()], commands._COLUMNS, footer=more)
    assert more in capsys.readouterr().out


def test_each_problem_of_a_rejection_has_a_line_of_its_own(terminal, capsys):
    row = {
        "id": 7, "received_at": datetime(2026, 6, 1, tzinfo=UTC), "event_id": RUN_ID, "reason": "invalid",
        "errors": [
            {"pointer": "/data/type", "message": "'pyhton' is not a type; did you mean 'python'?", "expected": "http"},
            {"pointer": "/data/schedul", "message": "is not a field; did you mean 'schedule'?", "expected": ""},
        ],
    }  # fmt: skip
    show_list([row], rejections._REJECTION_COLUMNS)

    lines = capsys.readouterr().out.splitlines()

    assert lines[0].split() == ["ID", "RECEIVED", "PROBLEMS"]
    assert [line.split()[0] for line in lines[1:]].count("/data/schedul:") == 1
    assert all(len(line) <= 80 for line in lines)


def test_on_a_pipe_each_row_is_one_line(capsys):
    show_list([{"id": 1}], (field("id"), output.Column("TWO", lambda row: "a\nb")))
    assert capsys.readouterr().out.splitlines() == ["ID  TWO", "1   a. b"]


def test_on_request_instants_have_milliseconds(capsys):
    show_fields({"at": datetime(2026, 6, 1, 9, 0, 0, 250_999, tzinfo=UTC)}, precise=True)
    assert capsys.readouterr().out == "at  2026-06-01T09:00:00.250Z\n"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "-"),
        (0.0042, "4 ms"),
        (-0.5, "-500 ms"),
        (1.25, "1.2 s"),
        (90, "90.0 s"),
        (600, "10.0 min"),
        (10_800, "3.0 h"),
        (864_000, "10.0 d"),
    ],
)
def test_durations_come_in_the_unit_that_reads_best(seconds, shown):
    assert output.duration(seconds) == shown


def test_time_spans_of_the_database_are_durations():
    assert output.text(timedelta(milliseconds=1500)) == "1.5 s"


RUN = {
    "id": "1", "job_id": "2", "job_name": None, "job_version": 1, "fence": 1, "attempts": [], "progress": None,
    "result": None, "checkpoint": None, "error": None, "started_at": None, "finished_at": None,
    "result_hidden": False, "checkpoint_hidden": False, "error_hidden": False,
    "start_delay_seconds": None, "took_seconds": None,
}  # fmt: skip


@pytest.mark.parametrize(("result", "shown"), [(True, "true"), (False, "false"), ("yes", "yes"), (3, 3)])
def test_what_a_handler_gave_is_shown_as_it_gave_it(result, shown):
    assert run_fields({**RUN, "result": result}, wide=False)["result"] == shown


def test_a_run_is_shown_with_what_it_has_and_with_what_may_not_be_read():
    run = {**RUN, "progress": {"share": None, "message": "half", "written_at": "2026-06-01T09:00:00Z"}}
    shown = run_fields({**run, "error_hidden": True}, wide=False)
    assert (shown["job"], shown["error"]) == ("2", "(hidden: the key may not read payloads)")
    assert shown["progress"] == "half (reported at 2026-06-01T09:00:00.000Z)"
    assert not {"result", "worker", "took", "error_hidden"} & set(shown)
