"""The pipeline with a user for each service in Kafka and Postgres, which has exactly the documented rights.

Kafka refuses what no rule allows, both servers want TLS and SCRAM, and clients verify who the servers are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from tests.support.cluster import wait_until
from tests.support.guarded_broker import guarded_broker
from tests.support.guarded_cluster import DATABASE, PASSWORD, GuardedCluster, guarded_cluster, login_of
from tests.support.guarded_database import guarded_database
from tests.support.keys import make_token
from tests.support.node import Node
from tests.support.publish import Load, publish

from noonmark.store.access.service_rights import SERVICES, TABLES, role_of, table_rights
from noonmark.store.maintenance.housekeeping import drop_day

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(600)]

VERBS = ("select", "insert", "update", "delete")


@pytest.fixture(scope="module")
def installed(server_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    """An installation on servers of its own, without a process yet."""
    folder = server_dir / "least-rights"
    folder.mkdir(mode=0o711)
    with (
        guarded_broker(folder / "kafka") as broker,
        guarded_database(folder) as database,
        guarded_cluster(broker, database, tmp_path_factory.mktemp("least")) as made,
    ):
        yield made


def refused(log: str) -> list[str]:
    """Lines that report a missing right, or a connection that was refused."""
    words = (
        "authorization failed",
        "AUTHORIZATION",
        "permission denied",
        "this client may not",
    )
    return [line for line in log.splitlines() if any(word in line for word in words)]


def whole_log(node: Node) -> str:
    return node.log_file.read_text(encoding="utf-8")


def test_a_submission_by_kafka_and_one_by_rest_come_to_outcomes_that_the_observer_reads(
    installed: GuardedCluster,
) -> None:
    cluster, topics = installed.cluster, installed.cluster.topics
    for node in [cluster.launch(service, api_port="0") for service in SERVICES if service != "watchdog"]:
        cluster.await_ready(node, 240)
    load = Load()
    load.now(6)
    load.interval(1, cluster.soon(3), 4)
    publish(installed.broker.client("publisher"), topics.submissions, load.events)
    with psycopg.connect(cluster.dsn, autocommit=True) as connection:
        token = make_token(connection)
    job = {"name": "by-rest", "type": "python", "handler": "chaos.record"}
    with httpx.Client(
        base_url=cluster.node("api").api_url, headers={"Authorization": f"Bearer {token}"}, timeout=60
    ) as client:
        created = client.post("/v1/jobs", json=job)
        assert created.status_code == 202, created.text
        cluster.wait(
            lambda: (
                cluster.states(load.namespace) == {"succeeded": 10}
                and cluster.states("default") == {"succeeded": 1}
            ),
            "every run to succeed",
            240,
        )
        seen = "select sum(runs) from job_stats where recent is not null"
        cluster.wait(lambda: cluster.value(seen) == 4, "the observer to count the outcomes", 120)
        measured = "select count(*) from topic_progress"
        cluster.wait(lambda: cluster.value(measured) > 0, "the dispatcher to measure lag", 120)

    for node in cluster.nodes:
        assert refused(whole_log(node)) == [], node.name
        assert "Traceback" not in whole_log(node), node.name


@pytest.mark.parametrize("service", SERVICES)
def test_every_verb_on_every_table_is_allowed_or_refused_as_listed(
    installed: GuardedCluster, service: str
) -> None:
    url = installed.database.verified(installed.database.url(DATABASE, login_of(service), PASSWORD))
    found: dict[str, tuple[str, ...]] = {}
    with psycopg.connect(url, autocommit=True) as connection:
        for table in TABLES:
            found[table] = tuple(verb for verb in VERBS if may(connection, table, verb))
        owned = connection.execute("select count(*) from pg_class where relowner = current_user::regrole")
        assert owned.fetchone() == (0,)

    expected = {table: table_rights(service, table) for table in TABLES}
    if service == "api":
        expected = {table: of_the_api(installed, table) for table in TABLES}
    assert found == expected


def may(connection: psycopg.Connection, table: str, verb: str) -> bool:
    """Try a statement that touches no row; only a missing privilege counts as a refusal."""
    row = connection.execute(
        "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and attidentity = ''"
        " and attgenerated = '' order by attnum limit 1",
        [table],
    ).fetchone()
    assert row is not None
    statement = {
        "select": f"select * from {table} where false",
        "insert": f"insert into {table} select * from {table} where false",
        "update": f"update {table} set {row[0]} = null where false",
        "delete": f"delete from {table} where false",
    }[verb]
    if verb == "insert":
        # Without reading the table, which is another privilege.
        statement = f"insert into {table} default values"
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement)  # type: ignore[arg-type]
    except psycopg.errors.InsufficientPrivilege:
        return False
    except psycopg.Error:
        return True
    return True


def of_the_api(installed: GuardedCluster, table: str) -> tuple[str, ...]:
    """The API's user is a member of `noonmark_api`, too."""
    with psycopg.connect(installed.cluster.dsn) as connection:
        return tuple(
            verb
            for verb in VERBS
            if verb in table_rights("api", table)
            or connection.execute(
                # A row of defaults needs the right to insert any of the columns.
                "select has_table_privilege('noonmark_api', %(table)s, %(verb)s) or (%(verb)s = 'insert'"
                " and has_any_column_privilege('noonmark_api', %(table)s, 'insert'))",
                {"table": table, "verb": verb},
            ).fetchone()
            == (True,)
        )


@pytest.mark.parametrize("service", SERVICES)
def test_functions_of_the_owner_can_be_executed_by_those_that_are_listed(
    installed: GuardedCluster, service: str
) -> None:
    from noonmark.store.access.service_rights import FUNCTION_RIGHTS  # noqa: PLC0415

    with psycopg.connect(installed.cluster.dsn) as connection:
        rows = connection.execute(
            "select oid::regprocedure::text from pg_proc where pronamespace = 'public'::regnamespace"
            " and prosecdef and has_function_privilege(%s, oid, 'execute')",
            [role_of(service)],
        ).fetchall()
        api = connection.execute(
            "select oid::regprocedure::text from pg_proc where pronamespace = 'public'::regnamespace"
            " and prosecdef and has_function_privilege('noonmark_api', oid, 'execute')"
        ).fetchall()

    more = {name.replace(" ", "") for (name,) in api} if service == "api" else set()
    listed = {name.replace(" ", "") for name in FUNCTION_RIGHTS.get(service, ())}
    assert {name.replace(" ", "") for (name,) in rows} == listed | more


def test_the_trigger_drops_days_that_it_does_not_own_and_nothing_else(installed: GuardedCluster) -> None:
    url = installed.database.verified(installed.database.url(DATABASE, login_of("trigger"), PASSWORD))
    with psycopg.connect(url, autocommit=True) as connection:
        # Long after the days that a trigger makes, and drops, itself.
        assert connection.execute("select noonmark_make_day('2061-02-02')").fetchone() == (True,)

        def dropped() -> bool:
            try:
                return drop_day(connection, "runs_20610202")
            except psycopg.errors.LockNotAvailable:
                # Services use the ledger.
                return False

        wait_until(dropped, "the day to be dropped", 60)
        for other in ("jobs", "runs"):
            with pytest.raises(psycopg.errors.UndefinedTable, match="not a day of the ledger"):
                connection.execute("select noonmark_drop_day(%s, 1)", [other])


@pytest.mark.parametrize("mode", ["disable", "verify-full"])
def test_a_connection_that_is_not_encrypted_or_not_verified_is_refused(
    installed: GuardedCluster, mode: str
) -> None:
    url = installed.database.verified(installed.database.url(DATABASE, login_of("trigger"), PASSWORD), mode)
    # The certificate is for the name `localhost` alone.
    with pytest.raises(psycopg.OperationalError, match=r"no encryption|does not match host name"):
        psycopg.connect(url.replace("localhost", "127.0.0.1") if mode == "verify-full" else url)


@pytest.mark.parametrize(
    ("service", "right"),
    [
        ("intake", "READ topic least.submissions"),
        ("worker", "READ topic least.runs.default"),
        ("observer", "READ topic least.lifecycle"),
    ],
)
def test_a_service_without_a_right_in_kafka_names_it_and_what_to_do(
    installed: GuardedCluster, service: str, right: str
) -> None:
    installed.broker.add_user("nobody")
    node = installed.cluster.launch(service, environment=installed.environment(service, kafka_user="nobody"))
    node.expected_alive = False
    group = "READ group least."
    installed.cluster.wait(
        lambda: "noonmark rights kafka" in whole_log(node), f"{service} to report the missing right", 120
    )
    line = next(line for line in whole_log(node).splitlines() if "noonmark rights kafka" in line)
    assert right in line or group in line, line
    assert "principal that right" in line


def test_a_dispatcher_without_a_right_lets_runs_wait_and_says_why(installed: GuardedCluster) -> None:
    cluster = installed.cluster
    for node in cluster.nodes:
        if node.expected_alive and node.service == "dispatcher":
            node.stop()
    node = cluster.launch(
        "dispatcher", environment=installed.environment("dispatcher", kafka_user="publisher")
    )
    load = Load(namespace="parked")
    load.now(1)
    publish(installed.broker.client("publisher"), cluster.topics.submissions, load.events)
    cluster.wait(lambda: "runs_parked" in whole_log(node), "the run to be parked", 240)
    line = next(line for line in whole_log(node).splitlines() if "runs_parked" in line)
    assert "least.runs.default" in line
    assert "noonmark rights kafka" in line
    node.stop()


@pytest.mark.parametrize("service", ["intake", "trigger", "dispatcher", "worker", "observer"])
def test_a_service_without_a_right_in_postgres_names_the_table_and_what_to_do(
    installed: GuardedCluster, service: str
) -> None:
    environment = installed.environment(service) | {
        "NOONMARK_DATABASE_URL": installed.database.url(DATABASE, login_of("watchdog"), PASSWORD)
    }
    node = installed.cluster.launch(service, environment=environment)
    node.expected_alive = False
    assert node.process.wait(240) in {1, 2}
    line = next(line for line in whole_log(node).splitlines() if "permission denied" in line)
    assert f"make its user a member of {role_of(service)}" in line
    assert "noonmark db migrate" in line
    assert "Traceback" not in whole_log(node)
