"""The retry policy of a job document, short or in full, checked; and written out again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pydantic.config import JsonDict

from noonmark.core.failures import FailureRules
from noonmark.core.retry import Jitter, RetryPolicy
from noonmark.schemas.jobs.policies import FailureRules as RulesDocument
from noonmark.schemas.jobs.policies import RetryDocument
from noonmark.schemas.problems.refusal import FieldError

if TYPE_CHECKING:
    from noonmark.schemas.jobs.documents import JobDocument

SHORT_FORMS: Final = {"max_retries": "max_retries", "retry_delay_seconds": "delay_seconds"}
"""Fields of the document that stand for one of `retry`, by name."""

_DEFAULT: Final = RetryPolicy()
_ONCE: Final = RetryPolicy(max_retries=0)
_DOCUMENT: Final = RetryDocument()
_PLACE_OF_DELAYS: Final = ("delay_seconds", "factor")
"""What says nothing where the delays are given one by one."""


def retry_rules() -> list[JsonDict]:
    """Return what the fields of a retry policy say about each other, as JSON Schema of the job document."""
    delays: JsonDict = {"type": "object", "required": ["delays"], "properties": {"delays": {"type": "array"}}}
    beside: list[JsonDict] = [_not_beside(delays, name) for name in _PLACE_OF_DELAYS]
    short: JsonDict = {"not": {"required": ["retry_delay_seconds", "retry"], "properties": {"retry": delays}}}
    return [*(_given_once(name, full) for name, full in SHORT_FORMS.items()), *beside, short]


def _given_once(short: str, full: str) -> JsonDict:
    retry: JsonDict = {"type": "object", "required": [full]}
    return {"not": {"required": [short, "retry"], "properties": {"retry": retry}}}


def _not_beside(delays: JsonDict, name: str) -> JsonDict:
    both: JsonDict = {"allOf": [delays, {"required": [name]}]}
    return {"not": {"required": ["retry"], "properties": {"retry": both}}}


def check_retry(data: Mapping[str, Any], problems: list[FieldError]) -> None:
    """Check the fields of the policy against each other; on the raw document, so that all is reported."""
    retry = data.get("retry")
    if not isinstance(retry, dict):
        return
    for short, full in SHORT_FORMS.items():
        if short in data and full in retry:
            problems.append(
                FieldError(f"/retry/{full}", f"is given twice, also as /{short}", "one of the two")
            )
    if retry.get("delays") is not None:
        given = [f"/retry/{name}" for name in _PLACE_OF_DELAYS if name in retry]
        given += ["/retry_delay_seconds"] if "retry_delay_seconds" in data else []
        problems += [FieldError(at, "is given beside /retry/delays", "one of the two") for at in given]
    for name in ("only_on", "never_on"):
        rules = retry.get(name)
        if isinstance(rules, dict) and not any(rules.values()):
            told = "names no failure"
            problems.append(
                FieldError(f"/retry/{name}", told, "status, grpc, exceptions or exit_codes, or no rule")
            )


def retry_of(document: JobDocument, problems: list[FieldError]) -> RetryPolicy:
    """Read the retry policy of a checked document, every default settled.

    A run that is promised to be done at most once is not tried again unless the document says how often.
    """
    full, once = document.retry, document.delivery == "at_most_once"
    said = document.model_fields_set
    if full is None and "max_retries" not in said and "retry_delay_seconds" not in said:
        return _ONCE if once else _DEFAULT
    full = full or _DOCUMENT
    given = full.model_fields_set
    delays = tuple(full.delays or ())
    if "max_retries" in given:
        retries = full.max_retries
    elif "max_retries" in said:
        retries = document.max_retries
    else:
        retries = len(delays) if delays else 0 if once else document.max_retries
    delay = full.delay_seconds if "delay_seconds" in given else document.retry_delay_seconds
    return RetryPolicy(
        retries,
        delay,
        full.factor,
        _longest(full, max(delays, default=delay), problems),
        Jitter(full.jitter),
        delays,
        full.max_age_seconds,
        _rules(full.only_on),
        _rules(full.never_on),
    )


def _longest(full: RetryDocument, delay: float, problems: list[FieldError]) -> float:
    longest = full.max_delay_seconds
    if longest >= delay:
        return longest
    if "max_delay_seconds" in full.model_fields_set:
        problems.append(
            FieldError(
                "/retry/max_delay_seconds",
                f"{longest:g} is below the delay, {delay:g}",
                "a number of seconds not below the delay",
            )
        )
    return delay


def _rules(document: RulesDocument | None) -> FailureRules | None:
    return None if document is None else FailureRules.of(document.model_dump())


def retry_document(policy: RetryPolicy) -> dict[str, Any]:
    """Write a policy out in full, as `retry_of` takes it back."""
    document: dict[str, Any] = {"max_retries": policy.max_retries}
    if policy.delays:
        document["delays"] = [_number(delay) for delay in policy.delays]
    else:
        document["delay_seconds"] = _number(policy.delay_seconds)
        document["factor"] = _number(policy.factor)
        document["delays"] = None
    age = policy.max_age_seconds
    return document | {
        "max_delay_seconds": _number(policy.max_delay_seconds),
        "jitter": policy.jitter.value,
        "max_age_seconds": None if age is None else _number(age),
        "only_on": policy.only_on.written() if policy.only_on else None,
        "never_on": policy.never_on.written() if policy.never_on else None,
    }


def _number(value: float) -> float:
    return int(value) if float(value).is_integer() else value
