"""The named statements: each is explained, used, understood by Postgres, and read as its row class says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from noonmark.store.database import row_types, statements
from noonmark.store.database.statements import statement
from noonmark.store.outbox.relay import Pressure
from noonmark.store.schedules.zone_data import Release
from noonmark.store.verify.reader import Queues, Strays
from noonmark.verify import history

ROOT = Path(__file__).parents[2]
STORE = ROOT / "shared" / "internal" / "noonmark" / "store"
FILES = {path.stem: path for path in STORE.rglob("*.sql") if path.parent.name == "sql"}
SOURCES = [path for part in ("services", "shared") for path in (ROOT / part).rglob("*.py")]
NAMES = statements.names()

ROW_CLASSES = {
    "read_outbox": row_types.OutboxRow,
    "read_refused": row_types.OutboxRow,
    "start_runs": row_types.StartedRun,
    "expire_starts": row_types.ChangedRun,
    "cancel_runs": row_types.ChangedRun,
    "redrive_runs": row_types.ChangedRun,
    "discard_runs": row_types.ChangedRun,
    "requeue_lost_runs": row_types.ChangedRun,
    "list_due_plans": row_types.DueTimer,
    "lock_planned_timers": row_types.DueTimer,
    "lock_due_timers_of_job": row_types.DueTimer,
    "list_zone_data": Release,
    "measure_relay_lag": Pressure,
    "measure_queues": Queues,
    "count_strays": Strays,
    "read_future_workers": history.Worker,
    "read_workers_of_runs": history.Worker,
    "read_settled_runs": history.Run,
    "read_attempts_of_runs": history.Attempt,
    "read_dead_letters_of_runs": history.DeadLetter,
    "read_letters_without_run": history.DeadLetter,
}


@pytest.fixture(scope="module")
def db(postgres_server, template_database) -> Iterator[psycopg.Connection]:
    name = f"{template_database}_statements"
    postgres_server.copy(template_database, name)
    with psycopg.connect(postgres_server.url_of(name), autocommit=True) as connection:
        yield connection
    postgres_server.drop(name)


def fields_of(kind: Any) -> tuple[str, ...]:
    """Return the fields of a tuple with names, or of a struct."""
    fields: tuple[str, ...] = kind.__struct_fields__ if hasattr(kind, "__struct_fields__") else kind._fields
    return fields


def names_in_code() -> set[str]:
    """Names that the code asks for, also where they stand in a table and are looked up later."""
    found = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in NAMES:
                found.add(node.value)
            called = (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "statement"
            )
            if called and isinstance(node.args[0], ast.Constant):
                found.add(node.args[0].value)
    return found


def test_every_statement_that_the_code_names_exists_and_every_file_is_used():
    assert names_in_code() == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_statement_says_first_why_it_is_as_it_is(name):
    lines = FILES[name].read_text().splitlines()
    comments = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]

    assert lines[0].startswith("-- ")
    assert len(comments[0]) > 20
    assert comments[-1].endswith(".")
    assert max(map(len, lines)) <= 130
    assert statement(name).startswith(("select", "insert", "update", "delete", "with"))


@pytest.mark.parametrize("name", NAMES)
def test_postgres_understands_a_statement_as_it_stands(db, name):
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${numbers.setdefault(match[1], len(numbers) + 1)}"

    text = re.sub(r"%\((\w+)\)[sbt]", number, statement(name)).replace("%%", "%")

    prepared = db.pgconn.prepare(name.encode(), text.encode())
    assert prepared.error_message == b""
    described = db.pgconn.describe_prepared(name.encode())

    assert described.nparams == len(numbers)
    if name in ROW_CLASSES:
        columns = [described.fname(n) for n in range(described.nfields)]
        wanted = fields_of(ROW_CLASSES[name])
        assert len(columns) == len(wanted)
        names = [column.decode() for column in columns if column and column != b"?column?"]
        loose = {"batch_id": "batch_id", "ctid": "place"}
        assert [loose.get(column, column) for column in names] == list(wanted)


def test_an_unknown_statement_is_an_error_that_names_the_file():
    with pytest.raises(FileNotFoundError, match=r"no_such\.sql"):
        statement("no_such")


def test_comments_do_not_travel_to_postgres():
    assert all("--" not in statement(name) for name in NAMES)


UPDATE_OF_RUNS = re.compile(r"\bupdate\s+runs\b(?P<rest>.*?)(?:\breturning\b|\Z)", re.DOTALL)
FENCE_OF_THE_CALLER = re.compile(r"\bfence = (%\(fence\)s|\(%\(\w+\)s::jsonb ->>? id::text( ->> 0)?\)::int)")

WITHOUT_THE_FENCE_OF_A_CALLER = {
    "cancel_runs": "for a user, who cancels the run whatever its fence is; its rows are locked",
    "close_workflows": "for a trigger; an open workflow run has no worker, and its row of `workflows` is locked",
    "discard_runs": "for an operator; a dead run has no worker",
    "enqueue_gated_runs": "for a trigger; a run that waits or retries has no worker",
    "open_workflows": "for a trigger; a workflow run has no worker, and is opened whatever its fence is",
    "pause_runs": "for a user or a trigger; its rows are locked, and the fence rises",
    "promote_runs": "for a trigger; a run that waits has no worker, and the fence rises",
    "redrive_runs": "for an operator; a dead run has no worker, and the fence rises",
    "requeue_lost_runs": "for a trigger, which ends whatever attempt a worker without a lease has; matched by its start",
    "requeue_runs": "for a trigger or a user; a run that waits or retries has no worker, and the fence rises",
    "resend_vanished": "for a trigger; a queued run has no worker, and the fence rises",
    "skip_waits": "for a trigger; a run that waits has no worker, and the fence rises",
    "update_run_wait_reasons": "for a trigger; a run that waits has no worker",
}
"""Statements that change a run without being given its fence, each with the reason."""


def changes_of_runs(name: str) -> list[str]:
    """The text of each `update runs` of a statement, with its conditions."""
    return [found["rest"] for found in UPDATE_OF_RUNS.finditer(statement(name))]


def test_what_a_worker_writes_to_a_run_matches_the_fence_that_it_holds():
    changing = {name: changes for name in NAMES if (changes := changes_of_runs(name))}
    unfenced = {
        name
        for name, changes in changing.items()
        if not all(FENCE_OF_THE_CALLER.search(change) for change in changes)
    }

    assert {"start_runs", "finish_plain", "finish_detailed", "await_callbacks"} <= set(changing)
    assert {"requeue_unfinished_runs", "cancel_unowned_runs", "expire_starts"} <= set(changing)
    assert unfenced == set(WITHOUT_THE_FENCE_OF_A_CALLER)


def test_no_statement_without_the_fence_is_one_of_a_worker():
    """A worker is known by its id and epoch: whatever is given them for a run is given the fence, too."""
    by_workers = {name for name in NAMES if changes_of_runs(name) and "%(epoch)s" in statement(name)}

    assert by_workers
    assert not by_workers & set(WITHOUT_THE_FENCE_OF_A_CALLER)


def test_no_statement_joins_a_queue_or_limits_inside_in():
    """Shapes that may lock more than they take, or walk a whole table on the wrong statistics."""
    for name in NAMES:
        text = " ".join(statement(name).split())
        assert not re.search(r"\bin \(select [^)]*\blimit\b", text), name
        assert not re.search(
            r"\b(from|using|join) (timers|outbox)\b[^;]*\border by\b[^;]*shard = any", text
        ), name


def test_locking_reads_of_queues_skip_what_is_locked():
    for name in (
        "claim_once",
        "claim_alike",
        "lock_planned_timers",
        "claim_run_timers",
        "lock_orphaned_batches",
    ):
        assert "skip locked" in statement(name)
