"""The role that the API works as: what it may do, to whose rows, and for how long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from tests.integration.store.tenants import (
    HIDDEN,
    OF_EVERYBODY,
    OF_TENANTS,
    OF_THE_INSTALLATION,
    TENANTS,
    plant,
)

from noonmark.store.database.scope import API_ROLE, enter_scope, outside_scope
from noonmark.store.migrations.api_role import RoleError, ensure_api_role, may_take_on
from noonmark.store.migrations.migrate import SchemaError, migrate, status

PAGE = (Path(__file__).parents[3] / "docs" / "security.md").read_text()
VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE")


@pytest.fixture
def db(emptied_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        yield connection


def tables(db: psycopg.Connection) -> list[str]:
    """Every table but those of days, which belong to `runs`."""
    return [
        name
        for (name,) in db.execute(
            "select tablename from pg_tables where schemaname = 'public' and tablename !~ '^runs_[0-9]' order by 1"
        )
    ]


def documented() -> dict[str, dict[str, str]]:
    """The matrix in docs/security.md: table to verb to `yes`, `columns` or nothing."""
    lines = re.findall(r"^\| `(\w+)` \| (\w*) \| (\w*) \| (\w*) \| (\w*) \| [^|]+ \|$", PAGE, re.MULTILINE)
    return {name: dict(zip(VERBS, cells, strict=True)) for name, *cells in lines}


def refusal(db: psycopg.Connection, namespaces, query) -> str:
    """What the database says to a statement in a scope that it refuses."""
    with db.transaction(force_rollback=True):
        enter_scope(db, namespaces)
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
            db.execute(query)
    return str(caught.value)


def test_the_documented_matrix_is_that_of_the_catalogue(db):
    found = {
        name: {
            verb: db.execute(
                """select case when has_table_privilege(%(role)s, %(table)s, %(verb)s) then 'yes'
                               when %(verb)s <> 'DELETE'
                                    and has_any_column_privilege(%(role)s, %(table)s, %(verb)s) then 'columns'
                               else '' end""",
                {"role": API_ROLE, "table": name, "verb": verb},
            ).fetchone()[0]
            for verb in VERBS
        }
        for name in tables(db)
        if name != "alembic_version"
    }

    assert documented() == found


def test_every_verb_on_every_table_does_what_the_matrix_says(db):
    """Tried, not read: each cell is a statement that touches no row."""
    matrix = documented()
    wrong = []
    for name in tables(db):
        table = sql.Identifier(name)
        (column,) = db.execute(
            "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and attidentity = ''"
            " order by attnum limit 1",
            [name],
        ).fetchone()
        tries = {
            "SELECT": sql.SQL("select * from {} where false"),
            "INSERT": sql.SQL("insert into {} default values"),
            "UPDATE": sql.SQL("update {} set {} = null where false"),
            "DELETE": sql.SQL("delete from {} where false"),
        }
        for verb, text in tries.items():
            told = matrix.get(name, {}).get(verb, "")
            if told == "columns":
                continue
            with db.transaction(force_rollback=True):
                enter_scope(db, TENANTS)
                try:
                    db.execute(text.format(table, sql.Identifier(column)))
                    done = True
                except psycopg.errors.InsufficientPrivilege as error:
                    # A refused row is a policy at work: the verb itself was allowed.
                    done = "row-level security" in str(error)
                except psycopg.Error:
                    done = True
            if done != (told == "yes"):
                wrong.append((name, verb, done))

    assert wrong == []


def test_what_is_secret_of_keys_cannot_be_read(db):
    plant(db)
    for column in ("secret_hash", "signing_secret"):
        refusal(db, None, sql.SQL("select {} from api_keys").format(sql.Identifier(column)))


def test_policies_stand_on_every_table_and_nothing_is_granted_on_days(db):
    unguarded = db.execute(
        """select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
           and not relrowsecurity and not relispartition and relname <> 'alembic_version'"""
    ).fetchall()
    granted = db.execute(
        """select relname from pg_class where relispartition and relkind = 'r'
           and has_any_column_privilege(%s, oid, 'SELECT, INSERT, UPDATE')""",
        [API_ROLE],
    ).fetchall()

    assert unguarded == []
    assert granted == []
    assert set(tables(db)) - {"alembic_version"} == (OF_TENANTS | OF_THE_INSTALLATION | HIDDEN | OF_EVERYBODY)


def test_the_role_cannot_log_in_and_has_no_right_beside_these(db):
    row = db.execute(
        "select rolcanlogin, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb from pg_roles where rolname = %s",
        [API_ROLE],
    ).fetchone()
    owned = db.execute("select count(*) from pg_class where relowner = %s::regrole", [API_ROLE]).fetchone()

    assert row == (False,) * 5
    assert owned == (0,)


def counts(db: psycopg.Connection, namespaces, names) -> dict[str, int]:
    """How many rows a transaction in this scope sees; of the planted ones alone where others are there too."""
    with db.transaction():
        enter_scope(db, namespaces)
        return {
            name: db.execute(
                sql.SQL("select count({}) from {}").format(
                    sql.SQL("key_id") if name == "api_keys" else sql.SQL("*"), sql.Identifier(name)
                )
            ).fetchone()[0]
            for name in names
        }


def test_without_a_tenant_no_row_of_any_tenant_is_there(db):
    plant(db)
    names = OF_TENANTS | OF_THE_INSTALLATION

    assert counts(db, (), names) == dict.fromkeys(names, 0)
    with db.transaction():
        db.execute("select set_config('role', %s, true)", [API_ROLE])
        for name in names - {"api_keys"}:
            seen = db.execute(sql.SQL("select count(*) from {}").format(sql.Identifier(name))).fetchone()
            assert seen == (0,), name


@pytest.mark.parametrize("tenant", TENANTS)
def test_a_tenant_sees_its_own_rows_alone(db, tenant):
    plant(db)

    assert counts(db, [tenant], OF_TENANTS) == dict.fromkeys(OF_TENANTS, 1)
    assert counts(db, [tenant], OF_THE_INSTALLATION) == dict.fromkeys(OF_THE_INSTALLATION, 0)


def test_who_may_see_all_sees_the_rows_of_all(db):
    plant(db)
    names = OF_TENANTS | OF_THE_INSTALLATION

    assert counts(db, None, names) == dict.fromkeys(names, 2)
    assert counts(db, TENANTS, OF_TENANTS) == dict.fromkeys(OF_TENANTS, 2)


@pytest.mark.parametrize("name", sorted(n for n in OF_TENANTS if n != "api_keys"))
def test_rows_of_another_tenant_are_neither_changed_nor_deleted(db, name):
    plant(db)
    matrix = documented()[name]
    table = sql.Identifier(name)
    (column,) = db.execute(
        "select attname from pg_attribute where attrelid = %s::regclass and attnum = 1", [name]
    ).fetchone()
    if matrix["UPDATE"] == "yes":
        with db.transaction(force_rollback=True):
            enter_scope(db, ["acme"])
            touched = sql.SQL("update {0} set {1} = {1}").format(table, sql.Identifier(column))
            assert db.execute(touched).rowcount == 1
    if matrix["DELETE"] == "yes":
        with db.transaction():
            enter_scope(db, ["acme"])
            assert db.execute(sql.SQL("delete from {}").format(table)).rowcount == 1
        left = db.execute(sql.SQL("select count(*) from {}").format(table)).fetchone()
        assert left == (1,)


WRITES = {
    "jobs": "insert into jobs (id, namespace, kind, lane, pool, shard, work, unique_name, state, version, created_at,"
    " updated_at) select gen_random_uuid(), 'rival', kind, lane, pool, shard, work, unique_name, state, version,"
    " created_at, updated_at from jobs",
    "jobs, moved": "update jobs set namespace = 'rival'",
    "runs": "insert into runs (id, scheduled_for, job_id, job_version, fence, lane, shard, state, origin, namespace,"
    " pool) select gen_random_uuid(), now(), job_id, 1, 1, 1, 0, 'waiting', 'manual', 'rival', 'default' from runs",
    "timers": "insert into timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace, pool)"
    " values (now(), now(), '{job}', 1, 0, 1, 0, 'rival', 'default')",
    "outbox": "insert into outbox (slice, lane, created_at, run_id, job_id, namespace) values (0, 1, now(), '{run}',"
    " '{job}', 'rival')",
    "job_versions": "insert into job_versions (job_id, version, kind, work) values ('{job}', 9, 'python', '{{}}')",
    "workflow_tasks": "insert into workflow_tasks (job_id, version, task_no, key, kind, lane, pool, work, graph, document)"
    " values ('{job}', 1, 1, 'b', 'python', 1, 'default', '{{}}', '{{}}', '{{}}')",
    "slots": "insert into slots (key, slot_no, run_id, taken_at) values ('{job}', 9, '{run}', now())",
    "attempts": "insert into attempts (run_id, scheduled_for, fence, attempt, outcome, finished_at)"
    " values ('{run}', now(), 9, 1, 'failed', now())",
    "waits": "insert into waits (run_id, scheduled_for, job_id, reason, since)"
    " values (gen_random_uuid(), now(), '{job}', 'limit', now())",
    "namespaces": "insert into namespaces (name) values ('third')",
    "limits": "insert into limits (namespace, name, max_running) values ('rival', 'x', 1)",
    "calendars": "insert into calendars (namespace, name, digest) values ('rival', 'x', 'x')",
    "idempotency": "insert into idempotency (namespace, key, request_hash, status, body)"
    " values ('rival', 'x', '', 1, '{{}}')",
    "audit_log": "insert into audit_log (actor, actor_name, action, namespace, outcome, request_id)"
    " values ('x', 'x', 'x', 'rival', 'done', 'x')",
    "api_keys": "insert into api_keys (key_id, name, secret_hash, grants, created_by)"
    " values ('new', 'x', sha256('x'), '{{\"acme\": \"admin\", \"rival\": \"viewer\"}}', 'x')",
    "api_keys, everywhere": "insert into api_keys (key_id, name, secret_hash, grants, created_by)"
    " values ('new', 'x', sha256('x'), '{{\"*\": \"viewer\"}}', 'x')",
    "api_keys, platform": "insert into api_keys (key_id, name, secret_hash, platform, created_by)"
    " values ('new', 'x', sha256('x'), true, 'x')",
}


@pytest.mark.parametrize("what", WRITES)
def test_rows_of_another_tenant_cannot_be_written(db, what):
    job, run = plant(db)["rival"]
    text = WRITES[what].format(job=job, run=run)

    assert "row-level security" in refusal(db, ["acme"], text)


def test_a_key_that_reaches_further_is_seen_and_not_ended(db):
    plant(db)
    db.execute(
        """update api_keys set grants = '{"acme": "viewer", "rival": "viewer"}' where key_id = 'rival'"""
    )

    assert counts(db, ["acme"], ["api_keys"]) == {"api_keys": 2}
    with db.transaction(force_rollback=True):
        enter_scope(db, ["acme"])
        assert db.execute("update api_keys set revoked_at = now()").rowcount == 1


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_connection_that_is_used_again_carries_nothing_over(db, end):
    plant(db)
    with psycopg.connect(db.info.dsn, password=db.info.password) as pooled:
        enter_scope(pooled, ["acme"])
        assert pooled.execute("select count(*) from jobs").fetchone() == (1,)
        getattr(pooled, end)()

        user, left = pooled.execute(
            "select current_user, current_setting('noonmark.namespaces', true)"
        ).fetchone()
        assert user != API_ROLE
        assert not left
        assert pooled.execute("select count(*) from jobs").fetchone() == (2,)  # the owner, as before
        pooled.execute("select set_config('role', %s, true)", [API_ROLE])
        assert pooled.execute("select count(*) from jobs").fetchone() == (0,)


def test_what_is_read_outside_the_scope_does_not_end_it(db):
    plant(db)
    with db.transaction():
        enter_scope(db, ["acme"])
        with outside_scope(db):
            assert db.execute("select count(*) from jobs").fetchone() == (2,)
        assert db.execute("select count(*) from jobs").fetchone() == (1,)
        assert db.execute("select current_user").fetchone() == (API_ROLE,)


def test_names_that_are_no_names_reach_nothing_else(db):
    plant(db)

    for odd in ("*", 'acme","rival', "acme,rival", "", "{", "\\"):
        assert counts(db, [odd], ["jobs"]) == {"jobs": 0}, odd


def test_days_cannot_be_reached_around_the_ledger(db):
    (day,) = db.execute(
        "select inhrelid::regclass::text from pg_inherits where inhparent = 'runs'::regclass limit 1"
    ).fetchone()

    refusal(db, None, sql.SQL("select * from {}").format(sql.Identifier(day)))


def test_functions_on_the_owners_behalf_look_into_its_schema_alone(db):
    rows = db.execute(
        """select proname, proconfig, has_function_privilege('public', oid, 'EXECUTE') from pg_proc
           where prosecdef and pronamespace = 'public'::regnamespace"""
    ).fetchall()

    assert {"noonmark_make_day", "noonmark_facts_changed"} <= {row[0] for row in rows}
    for name, settings, everybodys in rows:
        assert settings[0] in {"search_path=public, pg_temp", "search_path=pg_catalog, public, pg_temp"}, name
        assert not everybodys, name


def test_many_databases_may_make_the_role_at_once(db):
    dsn = psycopg.conninfo.make_conninfo(db.info.dsn, password=db.info.password)

    def ensure(_: int) -> bool:
        with psycopg.connect(dsn, autocommit=True) as connection:
            ensure_api_role(connection)
            return may_take_on(connection)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ensure, range(8)))


def test_a_user_that_may_not_make_roles_is_told_what_an_administrator_must_run(db):
    db.execute("create role plain_owner")
    try:
        with db.transaction(force_rollback=True):
            db.execute("set local role plain_owner")
            assert not may_take_on(db)
            with pytest.raises(RoleError) as caught:
                ensure_api_role(db)
    finally:
        db.execute("drop role plain_owner")

    assert 'grant "noonmark_api" to "plain_owner";' in str(caught.value)
    assert 'create role "noonmark_api" nologin;' in str(caught.value)


@pytest.fixture
def owned_by(postgres_server):
    """Makes a database of a user who is not a superuser; returns its URL as that user."""
    made = []

    def make(user: str, options: str) -> str:
        database = f"{user}_{uuid4().hex[:8]}"
        made.append((database, user))
        postgres_server.run(
            f"create role {user} login password 'x' {options}", f"create database {database} owner {user}"
        )
        parts = urlsplit(postgres_server.url_of(database))
        return urlunsplit(parts._replace(netloc=f"{user}:x@{parts.netloc.rpartition('@')[2]}"))

    yield make
    for database, user in made:
        postgres_server.run(f"drop database {database} with (force)", f"drop role {user}")


def test_an_owner_who_may_make_roles_needs_no_administrator(owned_by):
    url = owned_by(f"maker_{uuid4().hex[:8]}", "createrole")
    with psycopg.connect(url, autocommit=True) as db:
        (there,) = db.execute("select to_regrole(%s) is not null", [API_ROLE]).fetchone()
        own_roles_only = db.info.server_version >= 160_000
    if there and own_roles_only:
        # Others of this server have made it: since Postgres 16 lending it is theirs to do.
        with pytest.raises(SchemaError, match="grant"):
            migrate(url)
    else:
        migrate(url)


def test_an_owner_whom_the_role_was_lent_to_migrates_and_works_as_it(
    owned_by, postgres_server, template_database
):
    user = f"owner_{uuid4().hex[:8]}"
    url = owned_by(user, "")
    with pytest.raises(SchemaError) as caught:
        migrate(url)
    told = re.search(r"`(create role .*?); (grant .*?);`", str(caught.value))
    postgres_server.run(told[2])

    migrate(url)
    assert status(url).problems == []
    postgres_server.run(told[2].replace("grant", "revoke", 1).replace(" to ", " from "))
    (problem,) = status(url).problems
    assert f"`{told[2]};`" in problem
    postgres_server.run(told[2])

    with psycopg.connect(url) as db:
        assert db.execute("select rolsuper from pg_roles where rolname = current_user").fetchone() == (False,)
        plant(db, ("acme",))
        enter_scope(db, ["acme"])
        assert db.execute("select count(*) from jobs").fetchone() == (1,)
        assert db.execute("select noonmark_make_day('2031-05-05')").fetchone() == (True,)
