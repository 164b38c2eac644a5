"""Edits of a history that planted faults are made of."""

from __future__ import annotations

from typing import Any

from tests.chaos.good_history import NS, STEP, call, tell

from noonmark.verify import History
from noonmark.verify.history import Message, Run


def edit(h: History, kind: str, row: str, /, **changes: Any) -> None:
    """Change the rows of one run, job or worker in a list of the history."""
    rows = getattr(h, kind)
    key = "id" if kind in {"runs", "jobs", "workers"} else "job" if kind == "versions" else "run"
    assert any(str(getattr(one, key)) == row for one in rows), f"no {row} in {kind}"
    setattr(h, kind, [one._replace(**changes) if str(getattr(one, key)) == row else one for one in rows])


def drop(h: History, *names: str) -> None:
    """Take runs away, with all that was written about them."""
    for kind in ("runs", "attempts", "dead_letters", "messages", "passed", "calls", "lifecycle"):
        key = "id" if kind == "runs" else "run"
        setattr(h, kind, [row for row in getattr(h, kind) if getattr(row, key) not in names])


def add(h: History, made: Run) -> None:
    """Add a run with all that a sound one leaves."""
    h.runs.append(made)
    h.messages.append(Message("runs.low", 900, made.id, made.fence, NS))
    h.lifecycle.append(tell(made))
    if made.started_at is not None:
        h.calls.append(call(made, made.fence, made.started_at + STEP))


def forget(h: History, name: str, *fences: int) -> None:
    """Delete rows of attempts."""
    before = len(h.attempts)
    h.attempts = [a for a in h.attempts if a.run != name or a.fence not in fences]
    assert len(h.attempts) == before - len(fences)


def edit_attempt(h: History, name: str, fence: int, **changes: Any) -> None:
    """Rewrite the row of one attempt."""
    h.attempts = [a._replace(**changes) if (a.run, a.fence) == (name, fence) else a for a in h.attempts]


def edit_call(h: History, name: str, fence: int, **changes: Any) -> None:
    """Rewrite the call of one attempt."""
    h.calls = [c._replace(**changes) if (c.run, c.fence) == (name, fence) else c for c in h.calls]
