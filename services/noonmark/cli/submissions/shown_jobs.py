"""Job documents in what `noonmark job show --json`, `job list --json` and `job export --json` print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

NOTE: Final = (
    "only `document` of jobs that `noonmark job show --json` printed is used; other fields are ignored"
)

_HIDDEN: Final = (
    "is a job without its payload, as `noonmark job list --json` prints it; use `noonmark job export`, which"
    " includes payloads"
)


class Found(NamedTuple):
    """One document in a printed job or list.

    Attributes:
        pointer: where it is (RFC 6901); empty for the whole.
        document: the job document.
        problem: why it cannot be used; empty if it can.
        shown: it was in a printed job, with fields that are not part of a document.
    """

    pointer: str
    document: Any
    problem: str = ""
    shown: bool = False


def documents_in(data: Any) -> Iterator[Found]:
    """Yield the job documents of a list or a job that a command printed; other data is yielded unchanged."""
    if _is_list(data):
        for index, item in enumerate(data["items"]):
            for found in documents_in(item):
                yield found._replace(pointer=f"/items/{index}{found.pointer}")
    elif _is_job(data):
        yield Found("/document", data["document"], _HIDDEN if data["payload_hidden"] else "", shown=True)
    else:
        yield Found("", data)


def _is_job(data: Any) -> bool:
    return isinstance(data, Mapping) and isinstance(data.get("document"), dict) and "payload_hidden" in data


def _is_list(data: Any) -> bool:
    """Whether this is a printed list: no job document has a field `items`."""
    return (
        isinstance(data, Mapping)
        and isinstance(data.get("items"), list)
        and data.keys() <= {"items", "next_cursor"}
    )
