"""RFC 7396, by the examples of its appendix, and what the short forms of a job document add."""

from __future__ import annotations

from typing import Any

import pytest

from noonmark.api.http.merge_patch import merge_patch, patched


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_the_standard(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


FULL = {"retry": {"max_retries": 3, "delay_seconds": 60, "factor": 2}, "owner": "me"}


@pytest.mark.parametrize(
    ("patch", "retry"),
    [
        ({"max_retries": 5}, {"max_retries": 5, "delay_seconds": 60, "factor": 2}),
        (
            {"retry_delay_seconds": 1, "retry": {"factor": 1}},
            {"max_retries": 3, "delay_seconds": 1, "factor": 1},
        ),
        ({"max_retries": None}, {"delay_seconds": 60, "factor": 2}),
    ],
)
def test_short_forms_are_of_the_retry_policy(patch: dict[str, Any], retry: dict[str, Any]) -> None:
    assert patched(FULL, patch) == {"owner": "me", "retry": retry}


def test_a_field_that_is_patched_twice_is_left_to_be_refused() -> None:
    patch = {"max_retries": 5, "retry": {"max_retries": 6}}
    assert patched(FULL, patch)["max_retries"] == 5
    assert patched(FULL, {"max_retries": 5, "retry": None}) == {"owner": "me", "max_retries": 5}
