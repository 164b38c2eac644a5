"""Which topics need no signature: `topic=namespace`, and nothing that could mean two things."""

from __future__ import annotations

import pytest

from noonmark.core.access.topic_bindings import read_bindings


def test_bindings_are_read():
    given = ("noonmark.submissions=default", " own.Topic_1 = acme-2 ", "open=*", "open=*")
    assert read_bindings(given) == {"noonmark.submissions": "default", "own.Topic_1": "acme-2", "open": "*"}
    assert read_bindings(()) == {}


@pytest.mark.parametrize(
    ("items", "told"),
    [
        (("acme",), "has no namespace"),
        (("topic=",), "has no namespace"),
        (("=acme",), "has no topic"),
        (("a topic=acme",), "has no topic"),
        (("noonmark.*=acme",), "has no topic"),
        (("topic=Acme",), "has no namespace"),
        (("topic=a=b",), "has no namespace"),
        (("topic=**",), "has no namespace"),
        (("topic=a", "topic=b"), "bound to 'a' and to 'b'"),
        (("topic=a", "topic=*"), r"bound to 'a' and to '\*'"),
    ],
)
def test_what_cannot_be_read_is_refused(items, told):
    with pytest.raises(ValueError, match=told):
        read_bindings(items)
