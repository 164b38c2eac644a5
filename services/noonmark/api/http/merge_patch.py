"""JSON merge patch (RFC 7396) of job documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noonmark.schemas.jobs.retry_rules import SHORT_FORMS


def merge_patch(target: object, patch: object) -> Any:
    """Apply a patch to a value: objects are merged, null removes a field, all other values replace."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def patched(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a patch to a job document that has all fields in their full form.

    The short forms `max_retries` and `retry_delay_seconds` are moved to their fields of `retry`. If the
    patch also sets that field, they stay, and are refused as in a new document.
    """
    changes = dict(patch)
    retry = changes.get("retry", {})
    for short, full in SHORT_FORMS.items():
        if short in changes and isinstance(retry, Mapping) and full not in retry:
            retry = {**retry, full: changes.pop(short)}
            changes["retry"] = retry
    merged: dict[str, Any] = merge_patch(document, changes)
    return merged
