"""Which media type a client gets for its `Accept`."""

import pytest

from noonmark.api.http.accept import accepted_type
from noonmark.api.http.problems import ProblemError

OFFERED = ("application/json", "text/plain", "text/event-stream")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, "application/json"),
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/plain", "text/plain"),
        ("TEXT/Plain; charset=utf-8", "text/plain"),
        ("text/*", "text/plain"),
        ("text/html, text/event-stream", "text/event-stream"),
        ("application/json;q=0.5, text/plain", "text/plain"),
        ("text/plain;q=0.2, */*;q=0.1", "text/plain"),
        ("*/*, application/json;q=0", "text/plain"),
        ("text/*;q=0, */*;q=0.1", "application/json"),
        ("text/plain;q=high", "text/plain"),
    ],
)
def test_the_preferred_type_is_taken_and_of_equal_ones_the_first(accept, expected):
    assert accepted_type(accept, OFFERED) == expected


@pytest.mark.parametrize("accept", ["application/xml", "text/plain;q=0", "image/*, text/html"])
def test_a_client_that_accepts_none_is_told_what_there_is(accept):
    with pytest.raises(ProblemError) as caught:
        accepted_type(accept, OFFERED)

    assert caught.value.kind.status == 406
    assert caught.value.detail.startswith(
        "the response can be application/json, text/plain or text/event-stream"
    )
