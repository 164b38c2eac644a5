"""The call of a statement's function: the parameters of the statement, each once, with the cast that it has."""

import re

import pytest

from noonmark.store.database.planned_once import (
    PLANNED_ONCE,
    PLANNED_TOGETHER,
    RARE_CONFLICTS,
    function_of,
    numbered,
    planned_call,
    planned_once,
)
from noonmark.store.database.statements import statement


def test_only_statements_that_are_planned_once_have_a_function():
    with pytest.raises(ValueError, match="cancel_runs is planned each time"):
        planned_once("cancel_runs")


@pytest.mark.parametrize("name", PLANNED_ONCE)
def test_a_call_has_each_parameter_of_its_statement_once_in_the_order_of_their_numbers(name):
    called = re.findall(r"%\((\w+)\)[sb]", planned_once(name))

    assert planned_once(name).startswith(f"select * from {function_of(name)}(")
    assert len(called) == len(set(called))
    assert sorted(set(map(int, re.findall(r"\$(\d+)", numbered(name))))) == list(range(1, len(called) + 1))
    assert len(function_of(name)) < 64


def test_a_parameter_keeps_the_cast_without_which_postgres_would_find_no_function():
    assert "%(places)b::tid[]" in planned_once("delete_outbox")


@pytest.mark.parametrize("name", RARE_CONFLICTS)
def test_an_insert_with_rare_conflicts_says_whether_to_look_for_them_at_once(name):
    assert planned_once(name).endswith(", true)")
    assert planned_once(name, hopeful=False).endswith(", false)")
    assert statement(name).count("on conflict ") == 1


@pytest.mark.parametrize("name", PLANNED_TOGETHER)
def test_the_call_of_several_statements_has_the_parameters_of_all_of_them(name):
    named = [
        found
        for part in (*PLANNED_TOGETHER[name], name)
        for found in re.findall(r"%\((\w+)\)[sb]", statement(part))
    ]

    text, names = planned_call(name)

    assert names == tuple(dict.fromkeys(named))
    assert re.findall(r"\$(\d+)", text) == [str(number) for number in range(1, len(names) + 1)]
    assert all(statement(part).startswith("select") for part in PLANNED_TOGETHER[name])
    assert len(function_of(name)) < 64
