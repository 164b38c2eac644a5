"""Methods, preconditions and lists as RFC 9110 has them, over every route."""

from __future__ import annotations

import pytest
from tests.integration.api.scene import ROUTES, Scene, target_of
from tests.support.asgi import Answer, Caller

from noonmark.api.app import build_api
from noonmark.api.http.route_list import routes_of

pytestmark = pytest.mark.postgres

JOB = {
    "name": "a",
    "type": "http",
    "payload": {"url": "https://example.com/"},
    "run_at": "2030-01-01T00:00:00Z",
}
CALENDAR = "/v1/calendars/feasts"
OPEN = ("/healthz", "/openapi.json", "/asyncapi.json")


def told(answer: Answer, status: int) -> str:
    assert answer.status == status, answer.body
    return str(answer.json()["detail"])


def comparable(answer: Answer) -> dict[str, str]:
    """The headers that do not differ from request to request."""
    varying = {"noonmark-request-id", "date"}
    return {name: value for name, value in answer.headers.items() if name not in varying}


def test_head_answers_as_get_does_without_the_body_on_every_path(scene: Scene):
    key = scene.keys["admin"]
    routes = [path for method, path in ROUTES if method == "GET" and path != "/v1/events"]
    assert len(routes) > 25
    for route in routes:
        path = target_of(scene, "GET", route)
        got, headed = scene.call("GET", path, key=key), scene.call("HEAD", path, key=key)
        assert (headed.status, headed.body) == (got.status, b""), path
        if got.status == 200 and "etag" not in got.headers:
            # The length of what changes with the time can differ.
            assert comparable(headed).keys() == comparable(got).keys(), path


def test_head_of_a_stream_ends(call: Caller, key: str):
    answer = call("HEAD", "/v1/events", key=key)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_open_paths_answer_head_and_options_without_a_key(call: Caller):
    for path in OPEN:
        assert (call("HEAD", path).status, call("HEAD", path).body) == (200, b"")
        answer = call("OPTIONS", path)
        assert (answer.status, answer.headers["allow"]) == (204, "GET, HEAD, OPTIONS")


def test_options_lists_the_methods_of_every_path(call: Caller, key: str):
    by_path: dict[str, set[str]] = {}
    for (method, path), _ in routes_of(build_api()):
        by_path.setdefault(path, set()).add(method)
    for path, methods in by_path.items():
        concrete = path
        while "{" in concrete:
            before, _, rest = concrete.partition("{")
            concrete = f"{before}01890000-0000-7000-8000-000000000000{rest.partition('}')[2]}"
        answer = call("OPTIONS", concrete, key=key)
        wanted = methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
        assert answer.status == 204, concrete
        assert wanted <= set(answer.headers["allow"].split(", ")), concrete
        refused = call("TRACE", concrete, key=key)
        assert (refused.status, refused.headers["allow"]) == (405, answer.headers["allow"]), concrete
    assert call("OPTIONS", "*", key=key).status == 204
    assert call("OPTIONS", "/v1/nothing", key=key).status == 404
    assert call("OPTIONS", "/v1/jobs").status == 401


def test_an_unchanged_object_is_not_sent_again(call: Caller, key: str):
    made = call("POST", "/v1/jobs", key=key, body=JOB)
    path = made.headers["location"]
    got = call("GET", path, key=key)
    etag = got.headers["etag"]
    for method in ("GET", "HEAD"):
        for header in (etag, f"W/{etag}", "*", f'"a,b", {etag}'):
            again = call(method, path, key=key, headers={"If-None-Match": header})
            assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag), header
            assert "content-type" not in again.headers
        assert call(method, path, key=key, headers={"If-None-Match": '"older"'}).status == 200
    lines = [("If-None-Match", '"older"'), ("If-None-Match", etag)]
    assert call("GET", path, key=key, repeated=lines).status == 304
    # Dates are ignored where there is none to compare with (RFC 9110, 13.1.3).
    past = {"If-Modified-Since": "Sat, 01 Jan 2000 00:00:00 GMT"}
    assert call("GET", path, key=key, headers=past).status == 200
    assert call("GET", path, key=key, headers={"If-Match": etag}).status == 200
    detail = told(call("GET", path, key=key, headers={"If-Match": '"older"'}), 412)
    assert etag in detail
    call("PATCH", path, key=key, body={"owner": "me"})
    assert call("GET", path, key=key, headers={"If-None-Match": etag}).status == 200


def test_a_put_can_be_made_for_new_objects_only(call: Caller, key: str):
    new, any_ = {"If-None-Match": "*"}, {"If-Match": "*"}
    body = {"dates": ["2030-12-24"]}
    assert "there is no such object" in told(call("PUT", CALENDAR, key=key, body=body, headers=any_), 412)
    made = call("PUT", CALENDAR, key=key, body=body, headers=new)
    assert made.status == 200
    assert "the object exists" in told(call("PUT", CALENDAR, key=key, body={"dates": []}, headers=new), 412)
    assert call("GET", CALENDAR, key=key).json()["dates"] == ["2030-12-24"]
    lines = [("If-Match", '"older"'), ("If-Match", made.headers["etag"])]
    assert call("PUT", CALENDAR, key=key, body={"dates": []}, repeated=lines).status == 200


@pytest.mark.parametrize("name", ["Authorization", "Content-Type", "Idempotency-Key", "traceparent", "Host"])
def test_a_header_that_says_one_thing_is_refused_twice(call: Caller, key: str, name: str):
    lines = [(name, "one"), (name, "two")]
    answer = call("POST", "/v1/jobs", key=key, body=JOB, repeated=lines)
    assert f"several {name.title()} headers" in told(answer, 400)
    assert call("GET", "/v1/jobs", key=key).json()["items"] == []


def test_a_query_parameter_is_given_once_unless_it_is_a_list(call: Caller, key: str):
    detail = told(call("GET", "/v1/jobs?namespace=default&namespace=acme", key=key), 400)
    assert detail == "query parameter namespace is given 2 times; expected the parameter once"
    assert call("GET", "/v1/jobs?state=active&state=paused", key=key).status == 200


def test_a_body_is_sent_as_it_is(call: Caller, key: str):
    answer = call("POST", "/v1/jobs", key=key, body=JOB, headers={"Content-Encoding": "gzip"})
    assert "the Content-Encoding of the body is gzip" in told(answer, 415)
    assert answer.headers["accept-encoding"] == "identity"


def test_a_name_that_is_given_twice_in_a_body_is_refused_with_its_place(call: Caller, key: str):
    raw = b'{"name":"a","type":"http","payload":{"url":"https://a.example/","url":"https://b.example/"}}'
    errors = call("POST", "/v1/jobs", key=key, body=raw).json()["errors"]
    assert [error["pointer"] for error in errors] == ["/payload/url"]
    assert "more than once" in errors[0]["message"]
