"""Job documents in what `job show`, `job list` and `job export` print as JSON, and in an object `jobs`."""

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

_JOBS: Final = "jobs"
_LISTS: Final[Mapping[str, frozenset[str]]] = {
    "items": frozenset({"items", "next_cursor"}),
    _JOBS: frozenset({_JOBS}),
}
"""The field of a list, with all fields that such an object has: of what commands print, and of the API's
`POST /v1/jobs/bulk`."""

_NO_LIST: Final = "must be a list of job documents, each with its `name`"


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
    """Yield the job documents of a list or a job that a command printed, or of a list `jobs`.

    Other data is yielded unchanged.
    """
    if (name := _list_in(data)) is not None:
        for index, item in enumerate(data[name]):
            for found in documents_in(item):
                yield found._replace(pointer=f"/{name}/{index}{found.pointer}")
    elif isinstance(data, Mapping) and data.keys() == {_JOBS}:
        yield Found(f"/{_JOBS}", data, _NO_LIST)
    elif _is_job(data):
        yield Found("/document", data["document"], _HIDDEN if data["payload_hidden"] else "", shown=True)
    else:
        yield Found("", data)


def _is_job(data: Any) -> bool:
    return isinstance(data, Mapping) and isinstance(data.get("document"), dict) and "payload_hidden" in data


def _list_in(data: Any) -> str | None:
    """Return the field with the documents of a list: no job document has a field `items` or `jobs`."""
    if not isinstance(data, Mapping):
        return None
    for name, fields in _LISTS.items():
        if isinstance(data.get(name), list) and data.keys() <= fields:
            return name
    return None
