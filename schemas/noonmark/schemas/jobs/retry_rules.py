"""JSON Schema rules between the retry fields of a job document."""

from __future__ import annotations

from typing import Final

from pydantic.config import JsonDict

SHORT_FORMS: Final = {"max_retries": "max_retries", "retry_delay_seconds": "delay_seconds"}
"""Fields of the job document that are short forms of a field of `retry`: short name to full name."""

REPLACED_BY_DELAYS: Final = ("delay_seconds", "factor")
"""Fields of `retry` that cannot be combined with `delays`."""


def retry_rules() -> list[JsonDict]:
    """Return the rules between the retry fields, as JSON Schema of the job document."""
    delays: JsonDict = {"type": "object", "required": ["delays"], "properties": {"delays": {"type": "array"}}}
    conflicts: list[JsonDict] = [_not_with_delays(delays, name) for name in REPLACED_BY_DELAYS]
    short: JsonDict = {"not": {"required": ["retry_delay_seconds", "retry"], "properties": {"retry": delays}}}
    return [*(_given_once(name, full) for name, full in SHORT_FORMS.items()), *conflicts, short]


def _given_once(short: str, full: str) -> JsonDict:
    retry: JsonDict = {"type": "object", "required": [full]}
    return {"not": {"required": [short, "retry"], "properties": {"retry": retry}}}


def _not_with_delays(delays: JsonDict, name: str) -> JsonDict:
    both: JsonDict = {"allOf": [delays, {"required": [name]}]}
    return {"not": {"required": ["retry"], "properties": {"retry": both}}}
