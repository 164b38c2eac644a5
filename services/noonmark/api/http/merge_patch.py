"""JSON merge patch (RFC 7396) of job documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noonmark.schemas.jobs.retry_rules import SHORT_FORMS


def merge_patch(target: object, patch: object) -> Any:
    """Return what a value becomes by a patch: objects are merged, null takes away, all else replaces."""
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
    """Return a job document with a patch applied; the document names every field in its long form.

    The short forms `max_retries` and `retry_delay_seconds` stand for fields of `retry`. Beside a patch of
    that very field they stay, and are refused as they are in a new document.
    """
    changes = dict(patch)
    retry = changes.get("retry", {})
    for short, full in SHORT_FORMS.items():
        if short in changes and isinstance(retry, Mapping) and full not in retry:
            retry = {**retry, full: changes.pop(short)}
            changes["retry"] = retry
    merged: dict[str, Any] = merge_patch(document, changes)
    return merged
