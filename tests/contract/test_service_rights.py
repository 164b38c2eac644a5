"""The rights in Postgres that are listed for a service are those that its code needs."""

import pytest
from tests.support.reachable_sql import needed_by, schema

from noonmark.store.access.service_rights import FUNCTION_RIGHTS, SERVICES, TABLES, table_rights

# What code reaches only in ways that the service does not take.
NOT_TAKEN = {
    # Only attempts have output and notes, and only workers write them; these services cancel or end runs.
    **{
        (name, table): "sui"
        for name in ("intake", "trigger", "dispatcher")
        for table in ("attempt_logs", "run_notes")
    },
    # Traces of runs, which it has none of.
    ("watchdog", "jobs"): "s",
}

# The API authenticates, and reads what it caches for all callers; it does the rest as `noonmark_api`.
OF_THE_API = {
    "api_keys": {"select", "update"},
    **{
        table: {"select"}
        for table in ("alembic_version", "install", "namespaces", "calendars", "calendar_contents", "limits")
    },
}


def test_every_table_is_listed() -> None:
    assert set(TABLES) == schema().tables


@pytest.mark.parametrize("service", [name for name in SERVICES if name != "api"])
def test_a_service_has_the_rights_that_its_code_needs(service: str) -> None:
    needed, functions = needed_by(f"noonmark.{service}")

    excepted = {
        table: verbs - {verb for verb in verbs if verb[0] in NOT_TAKEN.get((service, table), "")}
        for table, verbs in needed.items()
    }
    assert {table: set(table_rights(service, table)) for table in TABLES} == {
        table: excepted.get(table, set()) for table in TABLES
    }
    assert {name.partition("(")[0] for name in FUNCTION_RIGHTS.get(service, ())} == functions


def test_the_api_has_what_it_needs_outside_the_scope_of_a_caller() -> None:
    listed = {table: set(table_rights("api", table)) for table in TABLES if table_rights("api", table)}
    assert listed == OF_THE_API
    assert {"select", "update"} <= needed_by("noonmark.auth")[0]["api_keys"]
