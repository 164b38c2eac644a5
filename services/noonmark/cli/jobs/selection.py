"""Select jobs of a namespace by label, name and state, for commands about many jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from noonmark.cli.terminal.options import read_labels

if TYPE_CHECKING:
    from noonmark.client import Client

_WILDCARDS: Final = re.compile(r"[*?]+")
_LONGEST_SEARCH: Final = 200


@dataclass(frozen=True, slots=True)
class JobSelection:
    """Filter for jobs; all given conditions must match.

    Attributes:
        namespace: their namespace; None for that of the client.
        labels: labels that they have.
        pattern: pattern of their name, with the wildcards * and ?.
        states: their states; empty for any.
        recurring: only jobs with a schedule (True), or without (False); None for all.
    """

    namespace: str | None
    labels: Mapping[str, str]
    pattern: str | None = None
    states: Sequence[str] = ()
    recurring: bool | None = None

    @classmethod
    def make(
        cls,
        namespace: str | None,
        label: Sequence[str] | None,
        pattern: str | None,
        states: Sequence[str] = (),
        *,
        recurring: bool | None = None,
    ) -> JobSelection:
        """Return the selection of a command's options.

        Raises:
            CliError: a label is invalid.
        """
        return cls(namespace, read_labels(label), pattern, states, recurring)

    def read(self, api: Client) -> list[Mapping[str, Any]]:
        """Return the selected jobs as the API lists them, by name; their payloads are hidden."""
        fixed = [part for part in _WILDCARDS.split(self.pattern or "") if part]
        exact = self.pattern is not None and fixed == [self.pattern]
        found = api.jobs.list(
            namespace=self.namespace,
            labels=self.labels,
            name=self.pattern if exact else None,
            # Finds more than the pattern matches: this text anywhere in a name or a label.
            search=max(fixed, key=len)[:_LONGEST_SEARCH] if fixed and not exact else None,
            state=self.states,
            recurring=self.recurring,
            limit=200,
        )
        matching = [dict(job) for job in found if self._matches(job["name"])]
        return sorted(matching, key=lambda job: (job["name"] or "", job["id"]))

    def _matches(self, name: str | None) -> bool:
        if self.pattern is None:
            return True
        parts = re.split(r"([*?])", self.pattern)
        regex = "".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in parts)
        return re.fullmatch(regex, name or "", re.DOTALL) is not None
