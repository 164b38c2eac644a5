"""Statements that a session plans once: `noonmark db migrate` makes a function of the file of each.

Statements are never prepared by name, because a pooler may lose it, so Postgres parses and plans them each
time: that takes longer than a small batch. A session caches the plans of its functions. One plan then serves
every size of the tables, so only statements are here that find their rows by an index in any case. See
docs/decisions/0036-statements-planned-once.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from types import MappingProxyType
from typing import Final, LiteralString, NamedTuple

import psycopg
from psycopg import sql

from noonmark.store.database.statements import statement

__all__ = [
    "PLANNED_ONCE",
    "PLANNED_TOGETHER",
    "create_functions",
    "function_of",
    "missing_functions",
    "numbered",
    "planned_call",
    "planned_once",
]

PLANNED_ONCE: Final = (
    "acquire_free_slots",
    "acquire_slots",
    "advance_timers",
    "claim_alike",
    "claim_once",
    "delete_batches",
    "delete_facts",
    "delete_outbox",
    "finish_plain",
    "insert_events",
    "insert_facts",
    "insert_inbox",
    "insert_jobs",
    "insert_runs",
    "insert_task_runs",
    "keep_slots",
    "list_due_plans",
    "lock_planned_timers",
    "read_next_facts",
    "read_next_timers",
    "read_outbox",
    "read_task_work",
    "release_slots",
    "start_runs",
    "update_workflows",
    "write_job_stats",
)
"""Names of the statements."""

PLANNED_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "create_jobs": (
            "enter_scope",
            "find_no_idempotent_responses",
            "lock_time_facts",
            "check_time_facts",
        ),
    }
)
"""Statements whose function executes others first: a whole transaction is one call. Each of the others is a
plain select and sees what was committed before it. The first one without a row ends the function, which then
returns no row either."""

RARE_CONFLICTS: Final = (
    "claim_once",
    "insert_inbox",
    "insert_jobs",
    "insert_runs",
    "insert_task_runs",
    "write_job_stats",
)
"""Statements whose function can first insert all rows without looking for conflicts: that costs a sixth less,
and 48 bytes of WAL less per row. After a conflict it executes the statement itself. Its last parameter says
whether it tries."""

_TOLERANT: Final = re.compile(r"on conflict (?:do nothing|\(\w+\) do update\nset .*)", re.DOTALL)
"""What a statement says about conflicts; an update is its last clause."""

_PARAMETER: Final = re.compile(r"%\((\w+)\)([sb])")
_WITH_CAST: Final = re.compile(rf"{_PARAMETER.pattern}(?:::\w+(?:\[\])?)?")


class _Shape(NamedTuple):
    """Types of the parameters, by name, and columns of a statement, as Postgres infers them."""

    parameters: dict[str, str]
    columns: list[str]


@cache
def planned_once(name: str, *, hopeful: bool = True) -> LiteralString:
    """Return the call of a statement's function, with the parameters of the statement.

    Args:
        name: name of the statement.
        hopeful: for `RARE_CONFLICTS`: whether conflicts are rare at the moment.

    Raises:
        ValueError: it has no function.
    """
    if name not in PLANNED_ONCE and name not in PLANNED_TOGETHER:
        raise ValueError(f"{name} is planned each time it is executed")
    parameters: dict[str, str] = {}
    for found in _WITH_CAST.finditer(" ".join(map(statement, _statements(name)))):
        parameters.setdefault(found[1], found[0])
    if name in RARE_CONFLICTS:
        parameters[""] = "true" if hopeful else "false"
    # From a file of the program, as the statement is.
    call: LiteralString = f"select * from {function_of(name)}({', '.join(parameters.values())})"  # noqa: S608
    return call


class PlannedCall(NamedTuple):
    """The call of a statement's function with numbered parameters, and their names in this order.

    For a `psycopg.RawCursor`: other cursors convert a text with this many parameters each time.
    """

    text: LiteralString
    names: tuple[str, ...]


@cache
def planned_call(name: str) -> PlannedCall:
    """Return the call of a statement's function for a raw cursor."""
    numbers: dict[str, int] = {}
    text: LiteralString = _with_numbers(planned_once(name), numbers)
    return PlannedCall(text, tuple(numbers))


def create_functions(connection: psycopg.Connection) -> None:
    """Create the functions of this release, in the open transaction; those of other releases stay."""
    for name in missing_functions(connection):
        texts, numbers = [], dict[str, int]()
        kinds: dict[str, str] = {}
        for part in _statements(name):
            shape = _shape(connection, part)
            kinds |= shape.parameters
            texts.append(_numbered(part, numbers))
        columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(shape.columns, 1))
        steps = _steps(name, texts, parameters=len(numbers), returns=bool(columns))
        parameters = [kinds[parameter] for parameter in numbers]
        if name in RARE_CONFLICTS:
            parameters.append("boolean")
        connection.execute(
            sql.SQL(
                "create function {function}({parameters}) returns {result} language plpgsql"
                # Both count when the plan is made: it must not depend on the values, nor on an empty table.
                " set plan_cache_mode = force_generic_plan set enable_seqscan = off as {body}"
            ).format(
                function=sql.Identifier(function_of(name)),
                parameters=sql.SQL(", ".join(parameters)),
                result=sql.SQL(f"table ({columns})" if columns else "void"),
                body=sql.Literal(f"#variable_conflict use_column\nbegin\n{steps}\nend"),
            )
        )


def _statements(name: str) -> tuple[str, ...]:
    """Return the names of the statements that the function of a statement executes, itself the last."""
    return (*PLANNED_TOGETHER.get(name, ()), name)


def _steps(name: str, texts: list[str], *, parameters: int, returns: bool) -> str:
    """Return what the function of a statement with so many parameters does."""
    *before, text = texts
    guards = "".join(
        f"perform {guard.removeprefix('select')};\nif not found then return; end if;\n" for guard in before
    )
    answer = "return query " if returns else ""
    step = f"{guards}{answer}{text};"
    if name not in RARE_CONFLICTS:
        return step
    # The block rolls its rows back when it fails.
    plain = f"{answer}{_TOLERANT.sub('', text)};"
    hopeful = f"begin\n{plain}\nreturn;\nexception when unique_violation then null;\nend;"
    return f"if ${parameters + 1} then\n{hopeful}\nend if;\n{step}"


def missing_functions(connection: psycopg.Connection) -> list[str]:
    """Return the statements whose function the database does not have."""
    all_names = [*PLANNED_ONCE, *PLANNED_TOGETHER]
    rows = connection.execute(
        "select name from unnest(%s::text[], %s::text[]) as wanted (name, function)"
        " where not exists (select from pg_proc where proname = function and pg_function_is_visible(oid))",
        [all_names, [function_of(name) for name in all_names]],
    )
    return [name for (name,) in rows]


def function_of(name: str) -> str:
    """Return the name of a statement's function: if releases differ in it, each has its own."""
    text = "".join(map(statement, _statements(name)))
    return f"noonmark_{name}_{sha256(text.encode()).hexdigest()[:8]}"


def numbered(name: str) -> str:
    """Return a statement with its parameters numbered in the order of their names."""
    return _numbered(name, {})


def _numbered(name: str, numbers: dict[str, int]) -> str:
    """Return a statement with numbered parameters; continue the numbers of earlier statements."""
    return _with_numbers(statement(name), numbers).replace("%%", "%")


def _with_numbers(text: str, numbers: dict[str, int]) -> str:
    def number(found: re.Match[str]) -> str:
        return f"${numbers.setdefault(found[1], len(numbers) + 1)}"

    return _PARAMETER.sub(number, text)


def _shape(connection: psycopg.Connection, name: str) -> _Shape:
    """Ask Postgres for the types of a statement."""
    numbers: dict[str, int] = {}
    prepared = connection.pgconn.prepare(b"", _numbered(name, numbers).encode())
    if prepared.error_message:
        raise psycopg.ProgrammingError(prepared.error_message.decode())
    described = connection.pgconn.describe_prepared(b"")
    parameters = [described.param_type(number) for number in range(described.nparams)]
    columns = [described.ftype(number) for number in range(described.nfields)]
    kinds = dict(zip(numbers, _names(connection, parameters), strict=True))
    return _Shape(kinds, list(_names(connection, columns)))


def _names(connection: psycopg.Connection, oids: list[int]) -> Iterator[str]:
    for (name,) in connection.execute(
        "select format_type(oid, null) from unnest(%s::oid[]) with ordinality as t (oid, n) order by n",
        [oids],
    ):
        yield name
