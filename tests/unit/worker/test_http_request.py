"""What an HTTP job may ask to send."""

import json

import pytest

from noonmark.core.kinds.http_request import BadRequestError
from noonmark.worker.http.request import prepare


def refusal(**spec):
    with pytest.raises(BadRequestError) as error:
        prepare({"url": "http://e.com", **spec}, {})
    return str(error.value)


def test_the_shortest_spec_is_a_post_without_a_body():
    request = prepare({"url": "http://e.com"}, {"Noonmark-Fence": "3"})
    assert (request.method, request.body) == ("POST", None)
    assert request.headers == {"Accept-Encoding": "identity", "Noonmark-Fence": "3"}
    assert request.expected_text == "200 to 299"


@pytest.mark.parametrize("body", [{"a": 1}, [], 0, False, {}, {"é": None}])
def test_other_bodies_than_strings_are_sent_as_json(body):
    request = prepare({"body": body}, {})
    assert json.loads(request.body) == body
    assert request.headers["Content-Type"] == "application/json"


def test_a_string_body_is_sent_as_it_stands():
    request = prepare({"body": "a=b", "headers": {"content-type": "application/x-www-form-urlencoded"}}, {})
    assert request.body == b"a=b"
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert "Content-Type" not in request.headers
    assert prepare({"body": "é"}, {}).headers["Content-Type"] == "text/plain; charset=utf-8"


def test_a_body_that_is_no_text_or_json_is_refused():
    assert "not JSON" in refusal(body={"a": {1}})
    assert "surrogate" in refusal(body="\ud800")


@pytest.mark.parametrize("method", ["get", "Delete", "PATCH"])
def test_methods_are_taken_in_any_case(method):
    assert prepare({"method": method}, {}).method == method.upper()


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "GET /x", "GET\r\n", 7, "PRI"])
def test_other_methods_are_refused(method):
    assert "is not supported; use one of GET, HEAD" in refusal(method=method)


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\nb", "a\rb", "a\0b", "a\x7f", "é", "a\x0b"])
def test_line_breaks_and_control_characters_in_values_are_refused_without_showing_the_value(value):
    message = refusal(headers={"X-Token": f"hunter2{value}"})
    assert message.startswith("the value of header X-Token holds a line break")
    assert "hunter2" not in message


@pytest.mark.parametrize("name", ["", "a b", "a\r\nb", "a:b", "a\0", "é", "a\n", "(a)", 7])
def test_names_that_are_no_tokens_are_refused(name):
    assert "header name" in refusal(headers={name: "x"})


@pytest.mark.parametrize(
    "name",
    ["Host", "CONTENT-LENGTH", "transfer-encoding", "Connection", "Upgrade", "TE", "Proxy-Authorization",
     "Noonmark-Fence", "noonmark-x", "Idempotency-Key", "Webhook-Id", "webhook-signature", "User-Agent", "Expect"],
)  # fmt: skip
def test_headers_of_the_protocol_and_of_noonmark_are_refused(name):
    assert refusal(headers={name: "x"}) == f"header {name} is set by noonmark and cannot be given"


def test_headers_are_bounded_in_number_and_bytes():
    assert "65 headers are too many" in refusal(headers={f"x-{n}": "" for n in range(65)})
    assert "longer than 16384 bytes" in refusal(headers={"x": "a" * 16384})


def test_headers_of_a_wrong_shape_are_refused():
    assert refusal(headers=["a"]) == "headers must be an object of names and values"
    assert refusal(headers={"x": 1}) == "the value of header x must be a string"


@pytest.mark.parametrize(
    ("expected", "good", "bad"),
    [
        (None, (200, 204, 299), (199, 300, 404)),
        (204, (204,), (200, 205)),
        ("2xx", (200, 299), (300,)),
        ("200-399", (200, 302, 399), (400,)),
        ([200, "404-404", "5XX"], (200, 404, 503), (201, 403)),
    ],
)
def test_expected_status_is_a_code_a_class_a_range_or_a_list(expected, good, bad):
    request = prepare({"expected_status": expected}, {})
    assert all(map(request.expects, good))
    assert not any(map(request.expects, bad))


@pytest.mark.parametrize("value", [True, 99, 600, "ok", "2x", "300-200", "200", 200.0, [None], {}, [[200]]])
def test_other_expected_status_values_are_refused(value):
    assert "is not valid; use 204" in refusal(expected_status=value)


def test_an_empty_list_of_codes_is_refused():
    assert "empty list" in refusal(expected_status=[])


def test_unknown_fields_are_refused_by_name():
    assert refusal(proxy="http://x", auth="y").startswith("unknown field auth, proxy; an HTTP job has url")
