"""What an exception was raised from."""

from __future__ import annotations

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def cause_of(raised: BaseException | None, kind: type[E]) -> E | None:
    """Return the first exception of a kind among `raised` and its causes; None if there is none."""
    while raised is not None and not isinstance(raised, kind):
        raised = raised.__cause__ or raised.__context__
    return raised
