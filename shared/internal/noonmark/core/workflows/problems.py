"""What is wrong with a workflow, with JSON pointers into its document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple


class Problem(NamedTuple):
    """One problem of a document.

    Attributes:
        pointer: JSON pointer (RFC 6901) to the value.
        message: what is wrong.
        expected: what is allowed.
    """

    pointer: str
    message: str
    expected: str


class InvalidWorkflowError(ValueError):
    """A workflow, or a condition in it, is not valid. `problems` lists all that was found, at least one."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems: Final = tuple(problems)
        super().__init__("; ".join(f"{where}: {what}" for where, what, _ in self.problems[:10]))


def below(pointer: str, name: str) -> str:
    """Return the pointer to a field of the object at a pointer."""
    return f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
