"""What receivers of our calls import: the check of a call, and fences in their own database (here SQLite)."""

import base64
import hmac
import json
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from examples.receiver_wsgi import Bookings

from noonmark.core.access.webhook_signature import new_secret
from noonmark.receiver import FenceStore, SignatureError, StaleFence, Verdict, environ_headers, verify

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
DUE = "2026-06-01T09:00:00Z"

# The example of the Standard Webhooks reference implementation, by which any other agrees with us.
REFERENCE = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


def signed(run="run-1", fence=1, body=b'{"amount": 3}', secret=SECRET, at=None):
    stamp, key = int(time.time() if at is None else at), base64.b64decode(secret.removeprefix("whsec_"))

    def mac(content):
        return "v1," + base64.b64encode(hmac.digest(key, content, "sha256")).decode()

    return {
        "Webhook-Id": run,
        "Webhook-Timestamp": str(stamp),
        "Webhook-Signature": mac(f"{run}.{stamp}.".encode() + body),
        "Noonmark-Fence": str(fence),
        "Noonmark-Attempt": "1",
        "Noonmark-Scheduled-For": DUE,
        "Noonmark-Signature": mac(f"fence.{run}.{stamp}.{fence}.1.{DUE}".encode()),
    }


def test_the_reference_example_of_the_scheme_is_accepted():
    call = verify(REFERENCE, b'{"test": 2432232314}', [SECRET], now=1614265330)
    assert (call.id, call.fence) == ("msg_p5jXN8AQM9LWM0D4loKWxJek", None)


def test_a_call_is_checked_by_the_receivers_clock():
    call = verify(signed(fence=4), b'{"amount": 3}', [new_secret(), SECRET])
    assert (call.id, call.fence, call.attempt) == ("run-1", 4, 1)
    with pytest.raises(SignatureError, match="webhook-timestamp"):
        verify(signed(at=time.time() - 400), b'{"amount": 3}', [SECRET])
    assert verify(signed(at=time.time() - 400), b'{"amount": 3}', [SECRET], tolerance_seconds=600).fence == 1


@pytest.mark.parametrize(
    "change", [{"Noonmark-Fence": "9"}, {"Webhook-Id": "other"}, {"Noonmark-Attempt": "2"}]
)
def test_a_header_that_was_changed_on_its_way_is_noticed(change):
    with pytest.raises(SignatureError):
        verify({**signed(), **change}, b'{"amount": 3}', [SECRET])


def test_the_receiver_imports_the_standard_library_alone():
    script = (
        "import sys; before = set(sys.modules); import noonmark.receiver;"
        "print(*sorted({m.partition('.')[0] for m in set(sys.modules) - before} - set(sys.stdlib_module_names)));"
        "print(*sorted(m for m in sys.modules if m.startswith('noonmark.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    foreign, own = done.stdout.splitlines()
    assert foreign == "noonmark"
    assert own.split() == [
        "noonmark.core",
        "noonmark.core.access",
        "noonmark.core.access.webhook_signature",
        "noonmark.receiver",
        "noonmark.receiver.calls",
        "noonmark.receiver.fences",
    ]


@pytest.fixture
def db(tmp_path):
    connection = sqlite3.connect(tmp_path / "fences.db", timeout=20)
    FenceStore("qmark").create(connection)
    connection.commit()
    yield connection
    connection.close()


@pytest.mark.parametrize("paramstyle", ["qmark", "numeric", "named"])
def test_fences_rise_and_never_fall(db, paramstyle):
    store = FenceStore(paramstyle)
    told = []
    for fence in (1, 1, 3, 2, 3, 4):
        try:
            told.append(store.accept(db, "run-1", fence))
        except StaleFence as stale:
            told.append((stale.fence, stale.seen))
    assert told == [Verdict.NEW, Verdict.REPEATED, Verdict.NEW, (2, 3), Verdict.REPEATED, Verdict.NEW]
    assert store.accept(db, "run-2", 1) is Verdict.NEW


def test_a_fence_goes_back_with_the_receivers_transaction(db):
    store = FenceStore("qmark")
    store.accept(db, "run-1", 2)
    db.rollback()
    assert store.accept(db, "run-1", 1) is Verdict.NEW


def test_of_two_attempts_at_once_the_older_never_comes_after_the_newer(db, tmp_path):
    store, seen, lock = FenceStore("qmark"), [], threading.Lock()

    def attempt(fence):
        mine = sqlite3.connect(tmp_path / "fences.db", timeout=20)
        try:
            store.accept(mine, "run-1", fence)
            with lock:
                seen.append(fence)
            mine.commit()
        except StaleFence:
            mine.rollback()
        finally:
            mine.close()

    threads = [threading.Thread(target=attempt, args=[fence]) for fence in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert seen == sorted(seen)
    assert db.execute("select max(fence) from noonmark_fences").fetchone() == (8,)


@pytest.mark.parametrize("table", ["x; drop table y", "X", "", "a.b.c", '"a"', "1a"])
def test_a_table_is_a_plain_name(table):
    with pytest.raises(ValueError, match="not a plain name"):
        FenceStore("qmark", table=table)


def test_what_is_no_paramstyle_key_or_fence_is_refused(db):
    with pytest.raises(ValueError, match="paramstyle"):
        FenceStore("questions")
    store = FenceStore("qmark")
    for key, fence in (("", 1), ("k" * 1001, 1), ("k", -1), ("k", True), ("k", "1"), ("k", None)):
        with pytest.raises(ValueError, match=r"a key has|is not a fence"):
            store.accept(db, key, fence)


def test_headers_of_a_wsgi_request():
    environ = {"HTTP_WEBHOOK_ID": "x", "HTTP_NOONMARK_FENCE": "3", "wsgi.input": None, "PATH_INFO": "/"}
    assert environ_headers(environ) == {"WEBHOOK-ID": "x", "NOONMARK-FENCE": "3"}


# the example, over HTTP


class Quiet(WSGIRequestHandler):
    def log_message(self, *_arguments):
        """Say nothing."""


@pytest.fixture
def service(tmp_path):
    database = str(tmp_path / "bookings.db")
    with make_server("127.0.0.1", 0, Bookings(database, [SECRET]), handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def post(headers, body=b'{"amount": 3}'):
            url = f"http://127.0.0.1:{server.server_port}/"
            request = urllib.request.Request(url, body, headers)
            try:
                with urllib.request.urlopen(request, timeout=20) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, json.load(error)

        yield post, database
        server.shutdown()
        thread.join(20)


def test_the_example_books_each_run_once_and_refuses_what_is_late_or_forged(service):
    post, database = service
    assert post(signed(fence=1)) == (200, {"booked": "now"})
    assert post(signed(fence=1)) == (200, {"booked": "before"})
    assert post(signed(fence=3)) == (200, {"booked": "by an earlier attempt"})
    assert post(signed(fence=2))[0] == 409
    assert post(signed(secret=new_secret()))[0] == 401
    assert post(signed(), b'{"amount": 4000}')[0] == 401
    assert post(signed("run-2")) == (200, {"booked": "now"})
    with sqlite3.connect(database) as db:
        assert db.execute("select run, amount from bookings").fetchall() == [("run-1", 3), ("run-2", 3)]
    db.close()
