"""Jobs enqueued in an application's own database: there if its transaction commits, and made exactly once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from tests.support.stack import Postgres

from noonmark import outbox
from noonmark.dispatcher.app_outbox import AppOutboxLoop
from noonmark.kafka.topics import Topics
from noonmark.outbox.bindings import AppOutbox
from noonmark.outbox.table import app_statement
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.cluster.pools import register_pool
from noonmark.store.database.hints import HintSender
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.metrics import REGISTRY

pytestmark = [pytest.mark.postgres]

JOB = {"type": "python", "handler": "mails.confirm", "payload": {"order": 7}}
TAKE = {"most_rows": 500, "most_bytes": 1000, "batch_bytes": 10_000}


@pytest.fixture(scope="module")
def app_database(postgres_server: Postgres) -> Iterator[str]:
    name = f"app_{uuid.uuid4().hex[:12]}"
    postgres_server.run(f"create database {name}")
    url = postgres_server.url_of(name)
    with psycopg.connect(url) as connection:
        connection.execute("create table orders (item text)")
        connection.execute(outbox.create_table_sql())
        connection.execute(outbox.create_table_sql())
    yield url
    postgres_server.run(f"drop database {name} with (force)")


class Shop:
    """An application with its database, and what noonmark knows of it."""

    def __init__(self, app_url: str, noonmark_url: str) -> None:
        self.url, self.noonmark_url = app_url, noonmark_url
        self.app = psycopg.connect(app_url, autocommit=True)
        self.noonmark = psycopg.connect(noonmark_url, autocommit=True)
        self.app.execute("truncate noonmark_outbox, orders")
        register_pool(self.noonmark, "default")
        self.engine = create_engine(self.sqlalchemy_url)

    @property
    def sqlalchemy_url(self) -> str:
        return self.url.replace("postgresql://", "postgresql+psycopg://")

    def close(self) -> None:
        self.engine.dispose()
        self.app.close()
        self.noonmark.close()

    def rows(self) -> list[Any]:
        return self.app.execute(
            "select namespace, document, idempotency_key, parked_at, error from noonmark_outbox order by seq"
        ).fetchall()

    def jobs(self) -> list[Any]:
        return self.noonmark.execute(
            "select namespace, handler, idempotency_key from jobs order by created_at, id"
        ).fetchall()

    def loop(self, name: str = "shop", namespace: str = "billing") -> AppOutboxLoop:
        service = Service(
            "dispatcher", Settings(database_url=self.noonmark_url), Health(), threading.Event(), get_logger()
        )
        bound = AppOutbox(name, namespace, self.url)
        return AppOutboxLoop(service, bound, Topics("noonmark"), HintSender(self.noonmark_url), shards=4)

    def relay(self, **bound: str) -> int:
        return self.loop(**bound).run_once(self.app, self.noonmark)

    def put(self, document: object, *, namespace: str | None = None, key: str | None = None) -> uuid.UUID:
        """What an application in another language does."""
        row_id = uuid.uuid4()
        self.app.execute(
            "insert into noonmark_outbox (id, namespace, document, idempotency_key) values (%s, %s, %s, %s)",
            [row_id, namespace, Jsonb(document), key or str(row_id)],
        )
        return row_id


@pytest.fixture
def shop(app_database: str, emptied_database: str) -> Iterator[Shop]:
    made = Shop(app_database, emptied_database)
    yield made
    made.close()


# --- Writing --------------------------------------------------------------------------------------


def test_a_session_that_is_rolled_back_leaves_no_job(shop):
    with Session(shop.engine) as session:
        session.execute(text("insert into orders values ('x')"))
        outbox.add(session, JOB)
        session.rollback()

    assert shop.rows() == []
    assert shop.relay() == 0
    assert shop.jobs() == []


def test_a_session_that_commits_makes_one_job_beside_its_own_rows(shop):
    with Session(shop.engine) as session, session.begin():
        session.execute(text("insert into orders values ('x')"))
        row_id = outbox.add(session, JOB)
        assert shop.rows() == []

    assert shop.rows() == [(None, JOB, str(row_id), None, None)]
    assert shop.relay() == 1
    assert shop.rows() == []
    assert shop.jobs() == [("billing", "mails.confirm", str(row_id))]
    assert shop.noonmark.execute("select state from runs").fetchall() == [("queued",)]
    assert shop.relay() == 0


def test_a_savepoint_that_is_rolled_back_takes_its_job_along(shop):
    with Session(shop.engine) as session, session.begin():
        outbox.add(session, {**JOB, "handler": "first"})
        nested = session.begin_nested()
        outbox.add(session, {**JOB, "handler": "second"})
        nested.rollback()
    assert [row[1]["handler"] for row in shop.rows()] == ["first"]


def through_connection(shop: Shop) -> None:
    with shop.engine.begin() as connection:
        outbox.add(connection, JOB, idempotency_key="order-7")


def through_psycopg(shop: Shop) -> None:
    with psycopg.connect(shop.url) as connection:
        outbox.add(connection, JOB, idempotency_key="order-7")


def through_a_cursor_of_another_form(shop: Shop) -> None:
    with (
        psycopg.connect(shop.url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection,
        connection.transaction(),
        connection.cursor() as cursor,
    ):
        outbox.add(cursor, JOB, idempotency_key="order-7")


def through_async_psycopg(shop: Shop) -> None:
    async def write() -> None:
        async with await psycopg.AsyncConnection.connect(shop.url) as connection:
            await outbox.add_async(connection, JOB, idempotency_key="order-7")

    asyncio.run(write())


def through_async_session(shop: Shop) -> None:
    async def write() -> None:
        engine = create_async_engine(shop.sqlalchemy_url)
        async with AsyncSession(engine) as session, session.begin():
            await outbox.add_async(session, JOB, idempotency_key="order-7")
        await engine.dispose()

    asyncio.run(write())


def through_async_connection(shop: Shop) -> None:
    async def write() -> None:
        engine = create_async_engine(shop.sqlalchemy_url)
        async with engine.begin() as connection:
            await outbox.add_async(connection, JOB, idempotency_key="order-7")
        await engine.dispose()

    asyncio.run(write())


@pytest.mark.parametrize(
    "write",
    [
        through_connection,
        through_psycopg,
        through_a_cursor_of_another_form,
        through_async_psycopg,
        through_async_session,
        through_async_connection,
    ],
    ids=lambda write: write.__name__,
)
def test_every_kind_of_connection_writes_the_same_row(shop: Shop, write: Callable[[Shop], None]) -> None:
    write(shop)
    assert shop.rows() == [(None, JOB, "order-7", None, None)]


def test_a_connection_without_a_transaction_is_refused(shop):
    with pytest.raises(outbox.OutboxError, match="autocommit mode"):
        outbox.add(shop.app, JOB)
    with (
        shop.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        pytest.raises(outbox.OutboxError, match="autocommit mode"),
    ):
        outbox.add(connection, JOB)
    assert shop.rows() == []


def test_a_bad_document_is_told_before_anything_is_written(shop):
    with Session(shop.engine) as session, session.begin():
        with pytest.raises(outbox.JobRefusedError) as caught:
            outbox.add(session, {"type": "python", "max_retires": 3})
        # The transaction is as good as before: the application decides.
        session.execute(text("insert into orders values ('x')"))

    assert [error.pointer for error in caught.value.errors] == ["/max_retires", "/handler"]
    assert shop.rows() == []
    assert shop.app.execute("select count(*) from orders").fetchone() == (1,)


# --- Relaying -------------------------------------------------------------------------------------


def test_bad_rows_are_parked_with_the_reason_and_block_nobody(shop):
    shop.put({**JOB, "namespace": "payroll"})
    shop.put(JOB, namespace="payroll")
    shop.put([JOB])
    shop.put({"type": "nothing"})
    shop.put({**JOB, "pool": "nowhere"})
    shop.put({**JOB, "payload": "x" * 300_000})
    deep = shop.put(JOB)
    nested = f'{{"payload": {"[" * 2000}{"]" * 2000}}}'
    shop.app.execute("update noonmark_outbox set document = %s::jsonb where id = %s", [nested, deep])
    shop.put({**JOB, "namespace": "billing", "handler": "good"})

    assert shop.relay() == 8
    assert [job[1] for job in shop.jobs()] == ["good"]
    found = shop.app.execute("select error from noonmark_outbox where parked_at is not null order by seq")
    parked = [row[0] for row in found]
    assert [error.split(":")[0] for error in parked] == [
        "/namespace",
        "/namespace",
        "document",
        "/type",
        "/pool",
        "document",
        "document",
    ]
    assert '"payroll" is not the namespace of this outbox; expected billing' in parked[0]
    assert "at most 262144 bytes" in parked[5]
    assert shop.relay() == 0

    loop = shop.loop()
    loop.measure(shop.app)
    assert REGISTRY.get_sample_value("noonmark_app_outbox_rows", {"outbox": "shop", "state": "parked"}) == 7
    assert REGISTRY.get_sample_value("noonmark_app_outbox_rows", {"outbox": "shop", "state": "waiting"}) == 0


def test_rows_of_one_key_make_one_job(shop):
    for _ in range(3):
        shop.put(JOB, key="order-7")
    assert shop.relay() == 3
    assert shop.rows() == []
    assert shop.jobs() == [("billing", "mails.confirm", "order-7")]


def test_what_was_committed_here_and_not_deleted_there_is_dropped_when_it_comes_again(shop):
    row_id = shop.put(JOB)
    with shop.app.transaction(force_rollback=True):
        assert shop.relay() == 1
    assert len(shop.rows()) == 1
    assert len(shop.jobs()) == 1

    assert shop.relay() == 1
    assert shop.rows() == []
    assert len(shop.jobs()) == 1

    # And where the database was away for longer than the inbox remembers, the job's own key tells it.
    shop.noonmark.execute("truncate inbox")
    shop.app.execute(
        "insert into noonmark_outbox (id, document, idempotency_key) values (%s, %s, %s)",
        [row_id, Jsonb(JOB), str(row_id)],
    )
    assert shop.relay() == 1
    assert len(shop.jobs()) == 1


def test_two_dispatchers_share_an_outbox_and_neither_waits(shop):
    for n in range(3):
        shop.put({**JOB, "handler": f"h{n}"})
    with psycopg.connect(shop.url, autocommit=True) as other, other.transaction():
        held = other.execute(app_statement("take"), {**TAKE, "most_rows": 2}).fetchall()
        assert len(held) == 2
        assert shop.relay() == 1
    assert shop.relay() == 2
    assert [job[1] for job in shop.jobs()] == ["h2", "h0", "h1"]


def test_the_relay_reads_by_its_index_however_many_rows_are_parked(shop):
    shop.app.execute(
        """insert into noonmark_outbox (id, document, idempotency_key, parked_at)
           select gen_random_uuid(), '{}', n::text, now() from generate_series(1, 5000) n"""
    )
    shop.app.execute("analyze noonmark_outbox")
    plans = {
        name: "\n".join(row[0] for row in shop.app.execute("explain " + app_statement(name), values))
        for name, values in {
            "take": TAKE,
            "remove": {"ids": [uuid.uuid4()]},
            "park": {"ids": [uuid.uuid4()], "errors": ["x"]},
        }.items()
    }
    assert {name: "Seq Scan" in plan for name, plan in plans.items()} == dict.fromkeys(plans, False), plans
    assert "noonmark_outbox_waiting" in plans["take"]


# --- Deaths ---------------------------------------------------------------------------------------


class Relay:
    """A process that relays the shop's outbox."""

    def __init__(self, shop: Shop, tmp_path: Any, *, bindings: str = "", fault: str = "") -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("NOONMARK_")}
        env["NOONMARK_DATABASE_URL"] = shop.noonmark_url
        env["NOONMARK_APP_OUTBOXES"] = bindings or f"shop={shop.url}=billing"
        if fault:
            env["NOONMARK_FAULT"] = fault
        self.log = tmp_path / f"relay-{uuid.uuid4().hex[:6]}.log"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.outbox_service"], env=env, stdout=out, stderr=out
            )

    def until(self, holds: Callable[[], bool], seconds: float = 20.0) -> None:
        gate = threading.Event()
        for _ in range(int(seconds / 0.05)):
            if holds():
                return
            assert self.process.poll() is None, self.log.read_text()
            gate.wait(0.05)
        raise AssertionError(self.log.read_text())

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.log.read_text()


def client(shop: Shop, moment: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.outbox_client", shop.sqlalchemy_url, moment], check=False
    )
    assert ended.returncode == -signal.SIGKILL


def test_a_client_killed_after_its_commit_has_its_job_and_one_killed_before_has_none(shop, tmp_path):
    client(shop, "before")
    assert shop.rows() == []
    client(shop, "after")
    assert shop.app.execute("select item from orders").fetchall() == [("from a client",)]
    assert len(shop.rows()) == 1

    # A database that is away, beside it, stops nobody.
    away = "postgresql://nobody:secret-word@127.0.0.1:1/none"
    relay = Relay(shop, tmp_path, bindings=f"away={away}=billing shop={shop.url}=billing")
    relay.until(lambda: not shop.rows() and len(shop.jobs()) == 1)
    relay.until(lambda: "outbox_not_relayed" in relay.log.read_text())
    relay.stop()
    assert "secret-word" not in relay.log.read_text()


def test_a_relay_killed_between_its_commit_and_the_delete_leaves_exactly_one_job(shop, tmp_path):
    for n in range(5):
        shop.put({**JOB, "handler": f"h{n}"})
    victim = Relay(shop, tmp_path, fault="dispatcher.after_accept=1")
    assert victim.process.wait(20) == -signal.SIGKILL, victim.log.read_text()
    assert len(shop.rows()) == 5
    assert len(shop.jobs()) == 5

    relay = Relay(shop, tmp_path)
    relay.until(lambda: not shop.rows())
    relay.stop()
    assert sorted(job[1] for job in shop.jobs()) == ["h0", "h1", "h2", "h3", "h4"]
    assert shop.noonmark.execute("select count(*) from runs").fetchone() == (5,)
