"""Where a submission event says to which trace it belongs."""

import pytest

from noonmark.intake.event_traces import traceparent_of
from noonmark.kafka.consumers.records import Record
from noonmark.schemas.events.envelope import render_structured

ONE, TWO = (f"00-{digit * 32}-{digit * 16}-01" for digit in "12")


def record(value=b"{}", headers=None):
    return Record("t", 0, 0, 1, None, value, 0, headers)


def structured(**extensions):
    value = render_structured(id="1", source="/s", type="t", data={"traceparent": TWO})
    more = b"".join(b'"%b":"%b",' % (k.encode(), v.encode()) for k, v in extensions.items())
    return b"{" + more + value[1:]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (record(), None),
        (record(headers=[("other", b"1"), ("empty", None)]), None),
        (record(headers=[("traceparent", ONE.encode())]), ONE),
        (record(headers=[("traceparent", TWO.encode()), ("ce_traceparent", ONE.encode())]), ONE),
        (record(structured(traceparent=ONE), [("traceparent", TWO.encode())]), ONE),
        (record(structured()), None),
        (record(b'{"traceparent": 7}'), None),
        (record(b'{"traceparent"', [("traceparent", ONE.encode())]), ONE),
        (record(headers=[("traceparent", b"\xff\xfe")]), "\ufffd\ufffd"),
    ],
    ids=[
        *("nothing", "other headers", "header", "binary mode", "structured mode", "only in the data"),
        *("no text", "no json", "no ascii"),
    ],
)
def test_the_extension_goes_before_the_header(given, found):
    assert traceparent_of(given) == found
