"""The code of docs/receiver.md does what the page says."""

import base64
import hmac
import sqlite3
import time

import pytest
from tests.unit.docs.pages import DOCS, blocks

from noonmark.receiver import SignedCall

SECRET = "whsec_" + base64.b64encode(b"k" * 24).decode()


@pytest.fixture(scope="module")
def code():
    names = {}
    for block in blocks(DOCS / "receiver.md", "python"):
        exec(block, names)  # the page's own code
    return names


def test_a_call_is_told_by_what_its_headers_say(code):
    stamp = int(time.time())
    content = f"run-1.{stamp}.".encode() + b"{}"
    mac = base64.b64encode(hmac.digest(b"k" * 24, content, "sha256")).decode()
    headers = {"webhook-id": "run-1", "webhook-timestamp": str(stamp), "webhook-signature": f"v1,{mac}"}
    assert code["receive"](headers, b"{}", [SECRET]).startswith("run run-1")
    assert code["receive"](headers, b"{ }", [SECRET]) == 401


def test_a_booking_is_made_by_the_newest_attempt(code):
    db = sqlite3.connect(":memory:")
    code["fences"].create(db)
    db.execute("create table bookings (run text, amount integer)")
    answers = [code["book"](db, SignedCall("run-1", 0, fence), 3) for fence in (2, 2, 1)]
    assert answers == [201, 200, 409]
    assert db.execute("select count(*) from bookings").fetchone() == (1,)
    db.close()
