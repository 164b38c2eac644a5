"""Masks clients' keys in refused records, because these are stored and shown."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.store.jobs.rejections import RejectedRecord

_KEY: Final = re.compile(rb"nm[kp]_[a-z0-9]{12}_[A-Za-z0-9]{4,}")
_MASK: Final = b"nm*_********"


def holds_key(text: bytes) -> bool:
    """Return whether a text contains an API key or a publisher's key."""
    # This runs for every header: the substring test costs a fifth of the pattern.
    return (b"nmk_" in text or b"nmp_" in text) and _KEY.search(text) is not None


def masked(value: bytes) -> bytes:
    """Return a text with a mask for every key."""
    return _KEY.sub(_MASK, value) if holds_key(value) else value


def without_keys(refused: RejectedRecord) -> RejectedRecord:
    """Return a refused record with a mask for every key in its value, its name and its problems."""
    problems = [
        FieldError(_text(problem.pointer), _text(problem.message), _text(problem.expected))
        for problem in refused.refused.errors
    ]
    return replace(
        refused,
        source=refused.source and _text(refused.source),
        event_id=refused.event_id and _text(refused.event_id),
        refused=Refused(problems),
        value=_KEY.sub(_MASK, refused.value),
    )


def _text(text: str) -> str:
    return _KEY.sub(_MASK, text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
