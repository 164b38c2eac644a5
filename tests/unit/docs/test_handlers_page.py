"""The code blocks of docs/handlers.md do what the page says."""

import asyncio
import inspect
import json
import sqlite3
import sys
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from tests.unit.docs.pages import DOCS, blocks

from noonmark.handlers import REGISTRY, Context, Handler, Registry, encode_result, load_handlers
from noonmark.schemas.jobs.job import parse_job

PAGE = DOCS / "handlers.md"
NINE = datetime(2026, 6, 1, 9, tzinfo=UTC)


@pytest.fixture
def registry(tmp_path):
    """The handlers of all blocks, each a module of its own; what loading changes is undone."""
    path, modules, handlers = list(sys.path), set(sys.modules), dict(REGISTRY._handlers)
    REGISTRY._handlers.clear()
    names = []
    for number, code in enumerate(blocks(PAGE, "python")):
        first = code.splitlines()[0]
        file = first.removeprefix("# ") if first.startswith("# ") else f"block_{number}.py"
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(code)
        names.append(file.removesuffix(".py").replace("/", "."))
    yield load_handlers(names, tmp_path)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    REGISTRY._handlers.clear()
    REGISTRY._handlers.update(handlers)


def context(payload: object, **more: object) -> Context:
    fields = {"run_id": uuid4(), "job_id": uuid4(), "attempt": 1, "scheduled_for": NINE, "fence": 1} | more
    return Context(namespace="default", payload=payload, **fields)


def call(registry: Registry, name: str, ctx: Context) -> object:
    """Call a handler as a worker does, and return what would be kept."""
    handler: Handler | None = registry.get(name)
    assert handler is not None, f"{name} is not among {registry.names()}"
    value = handler.function(ctx)
    if inspect.isawaitable(value):
        value = asyncio.run(value)
    kept = encode_result(value)
    return None if kept is None else json.loads(kept)


def test_a_handler_is_named_by_its_path_or_by_its_decorator(registry):
    assert call(registry, "shop.mails.send_welcome", context({"user_id": 42})) == {"sent_to": "user 42"}
    assert call(registry, "mails.reminder", context({"user_id": 42})) is None


def test_the_job_on_the_page_is_a_valid_document_for_the_handler_on_the_page(registry):
    (document,) = (json.loads(block) for block in blocks(PAGE, "json"))
    spec = parse_job(document, now=NINE, ledger_floor=NINE - timedelta(days=30))
    assert registry.get(spec.handler) is not None


def test_an_async_handler_waits_for_several_sources(registry):
    assert call(registry, "reports.build", context({"sources": ["a", "bc"]})) == {"pages": 3}


def test_the_idempotency_key_keeps_a_second_attempt_from_booking_twice(registry, tmp_path):
    database = str(tmp_path / "orders.sqlite")
    with sqlite3.connect(database) as db:
        db.execute("create table bookings (key text primary key, amount int)")
    first = context({"database": database, "amount": 5})
    again = context(first.payload, run_id=first.run_id, job_id=first.job_id, attempt=2, fence=2)
    assert call(registry, "orders.book", first) == {"booked": True}
    assert call(registry, "orders.book", again) == {"booked": False}
    assert db.execute("select count(*) from bookings").fetchone() == (1,)
    db.close()


def test_the_fence_keeps_an_older_attempt_from_writing_late(registry, tmp_path):
    database = str(tmp_path / "stock.sqlite")
    with sqlite3.connect(database) as db:
        db.execute("create table stock (item text, amount int, instant text, fence int)")
        db.execute("insert into stock values ('pen', 0, '', 0)")
    run = UUID(int=1)

    def publish(amount: int, fence: int, at: datetime = NINE) -> object:
        payload = {"database": database, "item": "pen", "amount": amount}
        return call(registry, "stock.publish", context(payload, run_id=run, fence=fence, scheduled_for=at))

    assert publish(10, 1) == {"written": True}
    assert publish(20, 3) == {"written": True}
    assert publish(15, 2) == {"written": False}
    assert publish(30, 1, NINE + timedelta(hours=1)) == {"written": True}
    assert publish(20, 4) == {"written": False}
    assert db.execute("select amount from stock").fetchone() == (30,)
    db.close()


def test_a_handler_that_raises_is_tried_again_and_may_succeed(registry):
    with pytest.raises(ConnectionError, match="on attempt 2"):
        call(registry, "sync.orders", context({}, attempt=2))
    assert call(registry, "sync.orders", context({}, attempt=3)) == "synchronised on attempt 3"


def test_a_handler_stops_by_itself_before_its_deadline(registry):
    in_a_minute, now = datetime.now(UTC) + timedelta(minutes=1), datetime.now(UTC)
    assert call(registry, "export.table", context({"chunks": 3}, deadline=in_a_minute)) == {"chunks": 3}
    with pytest.raises(TimeoutError, match="0 chunks done"):
        call(registry, "export.table", context({"chunks": 3}, deadline=now))


def test_a_handler_says_that_it_runs_in_a_process(registry):
    assert registry.get("images.render").run == "process"
    assert call(registry, "images.render", context({"size": 4})) == {"pixels": 14}


def test_the_test_on_the_page_passes(registry):
    handler = registry.get("mails.farewell")
    sys.modules[handler.function.__module__].test_the_mail_goes_to_the_user_once_per_run()


def test_every_handler_on_the_page_is_called_by_a_test_here(registry):
    called = {"shop.mails.send_welcome", "mails.reminder", "reports.build", "orders.book", "stock.publish"}
    assert set(registry.names()) == called | {
        "sync.orders",
        "export.table",
        "mails.farewell",
        "mails.newsletter",
        "images.render",
    }


def test_a_newsletter_goes_on_where_it_was_and_says_so(registry):
    ctx = context({"readers": ["a", "b", "c"]})
    ctx.effects.before = b"1"
    assert call(registry, "mails.newsletter", ctx) == {"sent": 2}
    assert ctx.effects.lines == ["sent reader=b", "sent reader=c"]
    assert (ctx.effects.fraction, ctx.effects.message, ctx.effects.kept) == (1.0, "mail 3 of 3", b"3")
