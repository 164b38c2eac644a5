"""What a request may hold, and how it is told that it holds too much: before and behind the routes."""

from __future__ import annotations

from tests.support.asgi import Answer

from noonmark.api.server import gate

JOB = {"name": "a", "type": "http", "payload": {"url": "https://example.com/"}}


def problem(answer: Answer, status: int, slug: str) -> dict:
    """A problem document that says so, and gives nothing away."""
    assert answer.status == status, answer.body
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["type"] == f"urn:noonmark:problem:{slug}"
    assert told["status"] == status
    assert told["request_id"] == answer.headers["noonmark-request-id"]
    text = answer.body.decode().lower()
    assert not [word for word in ("traceback", 'file "', "psycopg", "sqlalchemy", "select ") if word in text]
    return told


def test_a_body_is_refused_by_its_length_before_it_is_read(call, key, settings):
    most = settings.max_submission_bytes
    told = problem(
        call("POST", "/v1/jobs", key=key, body=b"{}", headers={"content-length": str(most + 1)}),
        413,
        "too-large",
    )
    assert str(most) in told["detail"]
    for length in ("-1", "abc", "1e3", "0x10", " 5 5", ""):
        answer = call("POST", "/v1/jobs", key=key, body=b"{}", headers={"content-length": length})
        assert answer.status == 413, length


def test_a_body_that_does_not_say_its_length_is_counted(call, key, settings):
    part = b" " * 65536
    parts = [part] * (settings.max_submission_bytes // len(part) + 2)
    problem(call("POST", "/v1/jobs", key=key, chunks=[b"{", *parts, b"}"]), 413, "too-large")


def test_only_the_bulk_route_takes_bulk(call, key, settings):
    large = str(settings.max_submission_bytes + 1)
    assert settings.api_bulk_bytes > settings.max_submission_bytes
    for path in ("/v1/jobs/bulk/", "/v1/jobs/bulk/x", "/v1/JOBS/BULK", "/v1//jobs/bulk"):
        answer = call("POST", path, key=key, body=b"{}", headers={"content-length": large})
        assert answer.status in {404, 413}, path
    over = str(settings.api_bulk_bytes + 1)
    problem(
        call("POST", "/v1/jobs/bulk", key=key, body=b"{}", headers={"content-length": over}), 413, "too-large"
    )


def test_what_is_not_said_to_be_json_is_not_read(call, key):
    for media_type in (
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ):
        answer = call("POST", "/v1/jobs", key=key, body=JOB, headers={"content-type": media_type})
        problem(answer, 415, "unsupported-media-type")
    for media_type in ("application/json", "Application/JSON; charset=utf-8", "application/json;x=y"):
        assert call("POST", "/v1/jobs", key=key, body=JOB, headers={"content-type": media_type}).status == 202


UNFIT = [
    (b"", ""),
    (b"{", ""),
    (b"\xff\xfe{}", ""),
    (b'{"name": "\xc3\x28"}', None),
    (b'{"name": "\xed\xa0\x80"}', None),
    (b'{"type": "http", "name": "a\\u0000b"}', "/name"),
    (b'{"type": "http", "name": "\\ud800"}', None),
    (b"[" * 100_000 + b"]" * 100_000, None),
    (b'{"a":' * 40 + b"1" + b"}" * 40, None),
    (b'{"type": "http", "payload": {"n": 123456789012345678901234567890}}', "/payload/n"),
    (b'{"type": "http", "payload": NaN}', None),
    (b'"text"', ""),
    (b"[]", ""),
    (b"null", ""),
]


def test_what_is_no_fit_json_is_told_where(call, key):
    for body, pointer in UNFIT:
        answer = call("POST", "/v1/jobs", key=key, body=body)
        assert answer.status in {400, 422}, (body[:60], answer.body)
        told = answer.json()
        assert told["type"] in {"urn:noonmark:problem:malformed", "urn:noonmark:problem:invalid"}
        if pointer is not None:
            assert pointer in [error["pointer"] for error in told["errors"]], told


def test_a_request_id_is_kept_if_it_is_fit_and_made_if_not(call, key):
    given = call("GET", "/schemas/job", key=key, headers={"Noonmark-Request-Id": "order-42.a_b"})
    assert given.headers["noonmark-request-id"] == "order-42.a_b"
    for unfit in ("", "a b", "a\nb", "x" * 65, "<script>", "é"):
        answer = call("GET", "/v1/nothing", key=key, headers={"Noonmark-Request-Id": unfit})
        made = answer.headers["noonmark-request-id"]
        assert made != unfit
        assert len(made) == 36
        problem(answer, 404, "not-found")


def test_a_method_that_a_path_does_not_take_is_told_which_it_takes(call, key):
    answer = call("PUT", "/v1/jobs", key=key, body={})
    problem(answer, 405, "method-not-allowed")
    assert {method.strip() for method in answer.headers["allow"].split(",")} >= {"POST"}
    for method in ("TRACE", "CONNECT", "BREW", "get"):
        answer = call(method, "/v1/jobs", key=key)
        assert answer.status == 405, method


def test_no_origin_is_let_in(call, key):
    asked = {
        "Origin": "https://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    for method, path in (("OPTIONS", "/v1/jobs"), ("GET", "/schemas/job"), ("GET", "/healthz")):
        for who in (key, None):
            answer = call(method, path, key=who, headers=asked)
            assert not [name for name in answer.headers if name.startswith("access-control-")]
            assert answer.headers["x-content-type-options"] == "nosniff"


def test_nobody_caches_an_answer_that_needs_a_key(call, key):
    for path in ("/v1/nothing", "/v1/jobs/0197a2b4-1111-7000-8000-000000000001"):
        assert call("GET", path, key=key).headers["cache-control"] == "no-store"


def test_who_calls_too_often_is_told_how_long_to_wait(call, token, key):
    slow = token("viewer", "default", rate_per_minute=1)
    answers = [call("GET", "/schemas/job", key=slow) for _ in range(11)]
    assert [answer.status for answer in answers[:10]] == [200] * 10
    problem(answers[10], 429, "too-many-requests")
    assert 1 <= int(answers[10].headers["retry-after"]) <= 61
    assert call("GET", "/schemas/job", key=key).status == 200, "the bucket is the key's own"


def test_who_has_no_valid_key_is_not_let_try_for_ever(call, key, monkeypatch):
    monkeypatch.setattr(gate, "_FAILURES_PER_MINUTE", 20)
    answers = [call("GET", "/v1/jobs", key=f"nmk_{'a' * 12}_{n:043d}") for n in range(12)]
    assert {answer.status for answer in answers[:10]} == {401}
    assert answers[0].headers["www-authenticate"] == 'Bearer realm="noonmark"'
    told = problem(answers[-1], 429, "too-many-requests")
    assert "without valid credentials" in told["detail"]
    assert call("GET", "/schemas/job", key=key).status == 200, "a valid key works from there all the same"


def test_a_credential_in_another_form_is_none(call, key):
    for header in (
        key,
        f"Basic {key}",
        f"Bearer  {key} x",
        "Bearer",
        "Bearer ",
        f"bearer\t{key}",
        f"Token {key}",
    ):
        assert call("GET", "/schemas/job", headers={"Authorization": header}).status == 401, header
    for target in (f"/schemas/job?api_key={key}", f"/schemas/job?access_token={key}"):
        assert call("GET", target).status == 401


def test_a_websocket_is_refused(call, key):
    for path in ("/v1/events", "/healthz", "/"):
        assert call.websocket(path, key) == [{"type": "websocket.close", "code": 1008}]


def test_a_path_or_query_of_any_bytes_gets_an_answer(call, key):
    for target in ("/%ff", "/%00", "/v1/jobs/%2e%2e%2f", "/v1/jobs/" + "a" * 50_000, "/v1/jobs/%F0%9F%92%A9"):
        answer = call("GET", target, key=key)
        assert answer.status in {400, 404, 422}, (target[:40], answer.body)
        assert answer.headers["content-type"] == "application/problem+json"
    for query in ("limit=0", "limit=201", "limit=x", "limit=1e1", "cursor=%00", "cursor=" + "a" * 3000):
        answer = call("GET", f"/v1/audit?{query}", key=key)
        assert answer.status == 400, (query[:40], answer.body)


def test_who_hangs_up_in_the_middle_of_a_body_is_no_fault_of_the_server(call, key):
    for method, path in (("POST", "/v1/jobs"), ("POST", "/v1/keys"), ("PUT", "/v1/limits/one")):
        answer = call(method, path, key=key, chunks=[b"{"], is_cut=True)
        problem(answer, 400, "malformed")


def test_a_fault_of_ours_is_told_without_its_details_and_raised_to_nobody(call, key, database):
    database.execute("alter table limits rename to limits_away")
    try:
        problem(call("GET", "/v1/limits", key=key), 500, "internal")
    finally:
        database.execute("alter table limits_away rename to limits")
