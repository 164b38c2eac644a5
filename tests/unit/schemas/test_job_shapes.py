"""What is known of one document of a sort never changes what the next one means, or what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.schemas.job_cases import PYTHON, WELCOME, outcome, parse

from noonmark.schemas.jobs import job
from noonmark.schemas.jobs.job import Shapes, is_plain_line, shape_of

NIGHTLY = {"name": "a", "schedule": "0 3 * * *"}
HTTP = {"type": "HTTP", "handler": None}
CALL = {"url": "https://example.com/a"}
LINES = (
    st.none()
    | st.text(max_size=6)
    | st.sampled_from(["a" * 200, "a" * 201, " a", "a ", "a\n", "\u00e9", 7, True])
)
OWN = st.fixed_dictionaries(
    {},
    optional={
        "name": LINES,
        "idempotency_key": LINES,
        "run_at": st.sampled_from([None, "2026-06-01T09:00:00+02:00", "2020-01-01T00:00:00Z", "soon", 7]),
        "schedule": st.sampled_from(
            [
                None,
                "0 3 * * *",
                "H 3 * * *",
                {"every": "PT15M"},
                {"cron": "0 3 * * *", "calendars": ["none"]},
                7,
            ]
        ),
        "payload": st.none()
        | st.integers(0, 9)
        | st.just({"n": [1, "x"]})
        | st.just("x" * 300)
        | st.sampled_from([{"url": "https://example.com/a"}, {"url": "nowhere"}, {"command": ["ls"]}]),
    },
)
OTHERS = st.fixed_dictionaries(
    {},
    optional={
        "max_retries": st.sampled_from([0, 1, 1.0, True, -1, 3]),
        "timeout_seconds": st.sampled_from([1, 1.0, 0, None]),
        "priority": st.sampled_from(["high", "LOW", 1, True]),
        "labels": st.sampled_from([{}, {"team": "a"}, {"team": 1}]),
        "delivery": st.sampled_from(["at_most_once", "exactly_once", "never"]),
        "overlap": st.sampled_from([None, "skip"]),
        "unknown": st.just(1),
        "type": st.sampled_from(["python", "http", "HTTP", "script", "what"]),
        "handler": st.sampled_from([None, "a.b", "a b"]),
        "retry": st.sampled_from([{"delays": [1]}, {"max_retries": 2}]),
    },
)


@settings(max_examples=250, deadline=None)
@given(first=OWN, second=OWN, others=OTHERS)
@example(first={}, second={"payload": "x" * 300}, others={})
@example(first=NIGHTLY, second={"name": "b", "schedule": {"every": "PT15M"}}, others={})
@example(first=NIGHTLY, second={"name": "b", "schedule": "H 3 * * *"}, others={})
@example(first=NIGHTLY, second={"schedule": "0 3 * * *"}, others={})
@example(first=NIGHTLY, second={**NIGHTLY, "run_at": "2026-06-01T09:00:00Z"}, others={})
@example(first=NIGHTLY, second={**NIGHTLY, "schedule": "no"}, others={})
@example(first={"payload": CALL}, second={"payload": {**CALL, "method": "PUT"}}, others=HTTP)
@example(first={"payload": CALL}, second={"payload": {"url": "nowhere"}}, others=HTTP)
@example(first={"payload": CALL}, second={}, others=HTTP)
def test_a_document_means_the_same_whatever_came_before(
    first: dict[str, Any], second: dict[str, Any], others: dict[str, Any]
) -> None:
    def read(document: dict[str, Any]) -> object:
        found = outcome(lambda: parse(document, max_payload_bytes=200))
        return getattr(found, "errors", found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "_SHAPES", Shapes())
        alone = read({**PYTHON, **others, **second})
        patch.setattr(job, "_SHAPES", Shapes())
        read({**PYTHON, **others, **first})
        assert read({**PYTHON, **others, **second}) == alone


def test_only_what_is_of_its_own_may_differ() -> None:
    assert shape_of(WELCOME) == shape_of({**WELCOME, "name": "other", "payload": [], "run_at": None})
    for changed in ({"handler": "a.b"}, {"max_retries": 1}, {"namespace": "shop"}):
        assert shape_of({**WELCOME, **changed}) != shape_of(WELCOME)
    assert len({shape_of({**WELCOME, "max_retries": value}) for value in (1, 1.0, True, "1")}) == 4
    recurring = {**WELCOME, "schedule": "0 3 * * *"}
    assert shape_of(recurring) == shape_of({**recurring, "schedule": "5 3 * * *"})
    assert shape_of(recurring) != shape_of(WELCOME), "whose defaults are others"
    assert shape_of({**WELCOME, "schedule": None}) == shape_of(WELCOME)
    assert shape_of({**WELCOME, "description": "x" * 3000}) is None, "too long to be kept"


@pytest.mark.parametrize("line", ["", " a", "a ", "a\tb", "\u2028", "a" * 201, 1])
def test_what_may_be_no_line_is_left_to_the_whole_check(line: object) -> None:
    assert not is_plain_line(line)


def test_no_more_is_kept_than_there_is_room_for() -> None:
    shapes, spec = Shapes(most=2), parse(WELCOME)
    for shape in (b"a", b"b", b"c"):
        shapes.keep(shape, spec)
    assert shapes.get(b"c") is spec
    assert shapes.get(b"a") is None
