"""Transition table, statements and the page that draws them say the same."""

import re
from pathlib import Path

from tests.contract.moves import NOT_YET, STATEMENT_BIRTHS, STATEMENT_MOVES

from noonmark.core.states import RunState
from noonmark.core.transitions import INITIAL, MOVES, TERMINAL, VERDICTS
from noonmark.store.database import statements

PAGE = (Path(__file__).parents[2] / "docs" / "state-machine.md").read_text()
ALL_MOVES = {(source, target) for source, targets in MOVES.items() for target in targets}


def table(heading: str) -> list[list[str]]:
    """Rows of the table under a heading of the page, without its head."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_state_has_an_entry_in_the_transition_table():
    assert set(MOVES) == set(RunState)


def test_every_move_of_the_table_is_made_by_a_statement_or_named_as_not_yet_built():
    made = set().union(*STATEMENT_MOVES.values())

    assert made | NOT_YET == ALL_MOVES
    assert not made & NOT_YET


def test_runs_are_born_only_in_the_initial_states():
    assert set().union(*STATEMENT_BIRTHS.values()) == INITIAL


def test_every_statement_that_writes_runs_is_accounted_for():
    updating = {
        name for name in statements.names() if re.search(r"\bupdate runs\b", statements.statement(name))
    }
    inserting = {name for name in statements.names() if "insert into runs " in statements.statement(name)}

    assert updating == set(STATEMENT_MOVES)
    assert inserting == set(STATEMENT_BIRTHS)


def test_no_python_file_moves_runs_by_sql_of_its_own():
    store = Path(statements.__file__).parent
    offenders = [
        path.name
        for path in store.glob("*.py")
        if re.search(r"(update runs|insert into runs)\b", path.read_text())
    ]

    assert offenders == []


def test_the_diagram_of_the_page_draws_exactly_the_moves_of_the_table():
    diagram = PAGE.split("```mermaid\n", 1)[1].split("```", 1)[0]
    drawn = re.findall(r"^\s*(\[\*\]|\w+) --> (\[\*\]|\w+)", diagram, re.MULTILINE)

    moves = {(RunState(a), RunState(b)) for a, b in drawn if "[*]" not in (a, b)}
    births = {RunState(b) for a, b in drawn if a == "[*]"}
    ends = {RunState(a) for a, b in drawn if b == "[*]"}

    assert moves == ALL_MOVES
    assert births == INITIAL
    assert ends == TERMINAL
    assert len(drawn) == len(set(drawn))


def test_the_table_of_the_page_names_the_statements_of_every_move():
    told = {}
    for source, target, by, *_ in table("Moves"):
        (a,), (b,) = words(source), words(target)
        told[RunState(a), RunState(b)] = {word for word in words(by) if word in STATEMENT_MOVES}

    assert told == {
        move: {name for name, moves in STATEMENT_MOVES.items() if move in moves} for move in ALL_MOVES
    }


def test_the_page_explains_every_state_and_says_which_are_verdicts():
    rows = {words(row[0])[0]: row for row in table("States")}

    assert set(rows) == {state.value for state in RunState}
    assert {state for state, row in rows.items() if row[2] == "yes"} == {state.value for state in VERDICTS}


def test_a_verdict_is_final_unless_the_run_is_dead():
    assert {RunState.DEAD} == VERDICTS - TERMINAL
    assert RunState.QUEUED in MOVES[RunState.DEAD]
    assert not any(MOVES[state] for state in TERMINAL)
