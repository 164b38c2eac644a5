"""What must be in the ledger after an outage: a clerk goes through the instants one by one, with the written rules.

Nothing here is the product's: no counting, no ranges, no cuts. Times are UTC datetimes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

HOUR = 3600.0


@dataclass(frozen=True)
class Policy:
    """The misfire rule of a job, as its document has it. `look_back` None: an hour or a period, the longer."""

    name: str
    policy: str
    grace: float = 60.0
    look_back: float | None = None
    start_deadline: float | None = None

    def document(self) -> dict[str, object]:
        """Return the fields of the job document."""
        misfire: dict[str, object] = {"policy": self.policy, "grace_seconds": self.grace}
        if self.look_back is not None:
            misfire["look_back_seconds"] = self.look_back
        document: dict[str, object] = {"misfire": misfire}
        if self.start_deadline is not None:
            document["start_deadline_seconds"] = self.start_deadline
        return document


class Row(NamedTuple):
    """A ledger row: one instant, or the range of `count` instants from `at` to `last`."""

    at: datetime
    state: str
    reason: str | None = None
    last: datetime | None = None
    count: int = 1


@dataclass
class Clerk:
    """Keeps the ledger of one job by hand.

    Attributes:
        instants: of the schedule, in order, from before the first to after the last moment looked at.
        done: up to where there are verdicts: at first the job's creation.
        run_cap: most runs of one claim.
        row_cap: skipped instants of one claim that get a row each; if there are more they are summed up.
        step_cap: most instants that one claim looks at.
        rhythm: seconds of a period; None: the time between the instants about now.
        runs_left: the job is complete after so many.
    """

    instants: Sequence[datetime]
    policy: Policy
    done: datetime
    run_cap: int = 100
    row_cap: int = 1000
    step_cap: int | None = None
    rhythm: float | None = None
    runs_left: int | None = None
    rows: list[Row] = field(default_factory=list)
    is_paused: bool = False
    resumed_at: datetime | None = None
    choice: str = "skip"

    def pause(self) -> None:
        """Note that the job, or its namespace, is paused: it owes its verdicts until the resume."""
        self.is_paused = True

    def resume(self, at: datetime, choice: str) -> None:
        """Note that a pause ended."""
        self.is_paused, self.resumed_at, self.choice = False, at, choice

    def claim(self, now: datetime, *, until_idle: bool = True) -> None:
        """Judge what is due: once, or as often as something is left."""
        while (
            not self.is_paused
            and self.runs_left != 0
            and (pending := [at for at in self.instants if self.done < at <= now])
        ):
            self._step(pending, now)
            if not until_idle:
                return

    def _step(self, pending: list[datetime], now: datetime) -> None:
        held = [at for at in pending if self._is_held(at)]
        last_held = held[-1] if held else None
        look_back = self._look_back(now)
        skipped: list[tuple[datetime, str]] = []
        ran: list[Row] = []
        for at in pending[: self.step_cap]:
            if len(ran) == self.run_cap or self.runs_left == 0:
                break
            self.done = at
            reason = self._reason(at, now, look_back, latest=at == pending[-1], latest_held=at == last_held)
            if reason is None:
                ran.append(Row(at, "queued"))
                if self.runs_left is not None:
                    self.runs_left -= 1
            else:
                skipped.append((at, reason))
        self.rows += _summed_up(skipped) if len(skipped) > self.row_cap else _one_by_one(skipped)
        self.rows += ran

    def _is_held(self, at: datetime) -> bool:
        return self.resumed_at is not None and at < self.resumed_at

    def _reason(
        self, at: datetime, now: datetime, look_back: float, *, latest: bool, latest_held: bool
    ) -> str | None:
        age = (now - at).total_seconds()
        p = self.policy
        if self._is_held(at):
            if self.choice == "skip":
                return "paused"
            # Whoever resumes decides about the pause; of the job's own rules only its explicit limits stand.
            if p.look_back is not None and age > p.look_back:
                return "look_back"
            if self.choice == "latest" and not latest_held:
                return "coalesced"
        else:
            if age > look_back:
                return "look_back"
            if p.policy == "skip" and age > p.grace:
                return "misfired"
            if p.policy == "fire_latest" and age > p.grace and not latest:
                return "coalesced"
        if p.start_deadline is not None and age > p.start_deadline:
            return "start_deadline"
        return None

    def _look_back(self, now: datetime) -> float:
        if self.policy.look_back is not None:
            return self.policy.look_back
        period = self.rhythm
        if period is None:
            before = max(at for at in self.instants if at <= now)
            after = min(at for at in self.instants if at > now)
            period = (after - before).total_seconds()
        return max(HOUR, self.policy.grace, period)


def _one_by_one(skipped: Sequence[tuple[datetime, str]]) -> list[Row]:
    return [Row(at, "skipped", reason) for at, reason in skipped]


def _summed_up(skipped: Sequence[tuple[datetime, str]]) -> list[Row]:
    """Make one row of all that follow each other with the same reason."""
    groups: list[list[tuple[datetime, str]]] = []
    for at, reason in skipped:
        if groups and groups[-1][-1][1] == reason:
            groups[-1].append((at, reason))
        else:
            groups.append([(at, reason)])
    return [Row(group[0][0], "skipped", group[0][1], group[-1][0], len(group)) for group in groups]
