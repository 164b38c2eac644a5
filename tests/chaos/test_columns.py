"""Every column of the ledger has a planted fault that changes it, or a reason why it has none."""

import copy
from typing import Any

import pytest
from tests.chaos.columns import LEDGER, OTHERS, Planted, planted
from tests.chaos.fault_tables import PAGE, PART, column_table
from tests.chaos.fault_tables import tables as tables_of_the_page
from tests.chaos.good_history import good
from tests.chaos.planted import PLANTED
from tests.support.marked import read_part

from noonmark.store.tables import tables
from noonmark.verify import History

FAULTS = {fault.name: fault for fault in PLANTED}
CHECKED = [(f"{table}.{column}", said) for table, column, said in planted()]


def test_every_table_and_column_of_the_database_is_decided_upon() -> None:
    real = {table.name: {column.name for column in table.columns} for table in tables.metadata.sorted_tables}
    assert LEDGER.keys() | OTHERS.keys() == real.keys()
    assert not LEDGER.keys() & OTHERS.keys()
    assert {name: set(columns) for name, columns in LEDGER.items()} == {name: real[name] for name in LEDGER}


def test_a_column_without_a_fault_has_a_reason() -> None:
    reasons = [said for columns in LEDGER.values() for said in columns.values() if isinstance(said, str)]
    assert all((*reasons, *OTHERS.values()))


@pytest.mark.parametrize(("column", "said"), CHECKED, ids=[column for column, _ in CHECKED])
def test_each_fault_of_a_column_changes_it(column: str, said: Planted) -> None:
    for name in said.faults:
        history = good()
        before = values(history, said)
        FAULTS[name].plant(history)
        assert values(history, said) != before, f"{name} does not change {column}"
        assert FAULTS[name].found_by


def test_the_table_of_columns_names_the_invariants_that_find_each() -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in column_table()][2:]
    assert [row[0] for row in rows] == [f"`{column}`" for column, _ in CHECKED]
    by = {row[0]: row[1] for row in rows}
    assert by["`attempts.worker`"] == "S19"
    assert all(by.values())


def test_the_page_shows_the_tables_as_they_are() -> None:
    assert read_part(PAGE, PART) == tables_of_the_page(), "python -m tests.chaos.fault_tables --write"


def values(history: History, said: Planted) -> Any:
    """What the history has of a column."""
    rows = copy.deepcopy(getattr(history, said.rows))
    if not said.fields:
        return rows
    if isinstance(rows, dict):
        return [rows[field] for field in said.fields]
    return [[getattr(row, field) for field in said.fields] for row in rows]
