"""Reads the retry policy of a job document from its short or its full form, and writes the full form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from noonmark.core.failures import FailureRules
from noonmark.core.retry import Jitter, RetryPolicy
from noonmark.schemas.jobs.documents import JobDocument
from noonmark.schemas.jobs.policies import FailureRules as RulesDocument
from noonmark.schemas.jobs.policies import RetryDocument
from noonmark.schemas.jobs.retry_rules import REPLACED_BY_DELAYS, SHORT_FORMS
from noonmark.schemas.jobs.task_documents import TaskDefaults, TaskDocument
from noonmark.schemas.problems.refusal import FieldError

_DEFAULT: Final = RetryPolicy()
_ONCE: Final = RetryPolicy(max_retries=0)
_DOCUMENT: Final = RetryDocument()


def check_retry(data: Mapping[str, Any], problems: list[FieldError]) -> None:
    """Check rules between the fields of the policy, on the raw document: all are reported."""
    retry = data.get("retry")
    if not isinstance(retry, dict):
        return
    for short, full in SHORT_FORMS.items():
        if short in data and full in retry:
            problems.append(
                FieldError(f"/retry/{full}", f"is given twice, also as /{short}", "one of the two")
            )
    if retry.get("delays") is not None:
        given = [f"/retry/{name}" for name in REPLACED_BY_DELAYS if name in retry]
        given += ["/retry_delay_seconds"] if "retry_delay_seconds" in data else []
        problems += [
            FieldError(at, "cannot be combined with /retry/delays", "one of the two") for at in given
        ]
    for name in ("only_on", "never_on"):
        rules = retry.get(name)
        if isinstance(rules, dict) and not any(rules.values()):
            expected = "status, grpc, exceptions or exit_codes, or no rule"
            problems.append(FieldError(f"/retry/{name}", "names no failure", expected))


def retry_of(document: JobDocument | TaskDocument | TaskDefaults, problems: list[FieldError]) -> RetryPolicy:
    """Read the retry policy of a checked document, with all defaults filled in.

    With delivery `at_most_once` a run is not retried, unless the document sets the number of retries.
    """
    full, once = document.retry, document.delivery == "at_most_once"
    written = document.model_fields_set
    if full is None and "max_retries" not in written and "retry_delay_seconds" not in written:
        return _ONCE if once else _DEFAULT
    full = full or _DOCUMENT
    given = full.model_fields_set
    delays = tuple(full.delays or ())
    if "max_retries" in given:
        retries = full.max_retries
    elif "max_retries" in written:
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
    """Write a policy in its full form, which `retry_of` reads again."""
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
