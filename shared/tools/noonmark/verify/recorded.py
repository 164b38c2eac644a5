"""What the ledger must still contain about attempts and outcomes: S15 and S17.

Rows that were deleted or rewritten contradict what is left: counters, calls, lifecycle events, dead letters.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Final

from noonmark.core.states import BY_HANDLER, AttemptOutcome, RunState
from noonmark.verify.case import HOLDING, Case, Violation, offence
from noonmark.verify.history import Attempt, LifecycleRecord, Run

_UNCOUNTED: Final = frozenset(
    {AttemptOutcome.LOST, AttemptOutcome.HANDED_BACK, AttemptOutcome.SNOOZED, AttemptOutcome.REJECTED}
)
"""Outcomes that give the attempt back to the retry budget: the next one has the same number."""
_GIVEN_BACK: Final = frozenset({AttemptOutcome.SNOOZED, AttemptOutcome.REJECTED})
"""Outcomes that a worker announces with the number of the attempt, before it gives that back."""
_AFTER_A_ROW: Final = frozenset({RunState.RETRYING, RunState.DEAD, RunState.UNKNOWN, RunState.DISCARDED})
"""States that a run enters together with the row of the attempt that did not succeed."""
_EXPLAINED: Final = frozenset(
    {AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT, AttemptOutcome.LOST, AttemptOutcome.REJECTED}
)
"""Outcomes that always have an error."""
_COMPARED: Final = 3900
"""Characters of an error that are compared where an event may have shortened it."""


def attempts_are_whole(case: Case) -> Iterator[Violation]:
    """S15: every attempt that did not succeed has its row, and the counters agree with the rows."""
    for run in case.history.runs:
        rows = sorted(case.attempts.get(run.id, ()), key=lambda row: row.fence)
        if run.is_workflow:
            if rows:
                what = f"{case.title(run)} is a workflow run, and has attempts"
                yield offence("S15", "attempt", what, run, *rows)
            continue
        yield from _numbers_follow(case, run, rows)
        yield from _losses_agree(case, run, rows)
        yield from _newest_row_fits(case, run, rows)
        fences = {row.fence for row in rows}
        for fence in sorted({call.fence for call in case.calls.get(run.id, ())} - fences):
            # Cancelling a run that waits for a callback raises the fence and leaves no row.
            unrecorded = run.state == RunState.CANCELLED and fence == run.fence - 1
            if fence < run.fence and not unrecorded:
                what = f"{case.title(run)} was called under fence {fence}, which no attempt records"
                yield offence("S15", "attempt_gone", what, run)
        yield from _announced_attempts_are_there(case, run, fences)
        yield from _called_numbers_agree(case, run, rows)


def _announced_attempts_are_there(case: Case, run: Run, fences: set[int]) -> Iterator[Violation]:
    """A retry is announced under the fence of the attempt before it; a death with all its attempts."""
    announced = {event.fence for event in case.retries.get(run.id, ())}
    announced |= {past.fence for death in case.deaths.get(run.id, ()) for past in death.history}
    for fence in sorted(announced - fences):
        what = f"{case.title(run)}: an event tells of an attempt of fence {fence}, which has no row"
        yield offence("S15", "attempt_gone", what, run)


def _called_numbers_agree(case: Case, run: Run, rows: Sequence[Attempt]) -> Iterator[Violation]:
    numbers = {row.fence: row.attempt for row in rows}
    if run.state == RunState.SUCCEEDED:
        numbers.setdefault(run.fence, run.attempt)
    for call in case.calls.get(run.id, ()):
        if call.attempt is not None and numbers.get(call.fence, call.attempt) != call.attempt:
            what = f"{case.title(run)} was called as attempt {call.attempt}, recorded: {numbers[call.fence]}"
            yield offence("S15", "number", what, run, call)


def _numbers_follow(case: Case, run: Run, rows: Sequence[Attempt]) -> Iterator[Violation]:
    deaths = _deaths(case, run)
    last, counted = 0, {0}
    for row in rows:
        if any(last <= death < row.fence for death in deaths):
            counted = {0}  # redriven: the budget starts again
        if row.attempt - 1 not in counted and not (case.partway and row.attempt == 1):
            what = f"{case.title(run)}: attempt {row.attempt} under fence {row.fence} follows {min(counted)}"
            yield offence("S15", "attempt_gone", what, run, row)
        counted = {row.attempt - (row.outcome in _UNCOUNTED)}
        if row.outcome == AttemptOutcome.REJECTED:
            counted |= {row.attempt}  # workers of release 0.2 count it
        last = row.fence
    if rows and run.state == RunState.UNKNOWN and rows[-1].outcome == AttemptOutcome.LOST:
        counted = {rows[-1].attempt}  # it is not repeated, so it counts
    if any(last <= death < run.fence for death in deaths):
        counted = {0}
    following = {count + 1 for count in counted}
    allowed = following if run.state in HOLDING else set(counted)
    if run.state == RunState.CANCELLED:
        # An attempt that was asked to stop may or may not leave a row.
        allowed |= following
    if case.partway:
        # The event of a death before a redrive may not have been read yet.
        allowed |= {0, 1}
    if run.attempt not in allowed:
        what = f"{case.title(run)}: the run says attempt {run.attempt}, its attempts say {min(allowed)}"
        yield offence("S15", "attempt_count", what, run, *rows)


def _losses_agree(case: Case, run: Run, rows: Sequence[Attempt]) -> Iterator[Violation]:
    """A worker that stops may record the loss of an at_most_once run itself, which is not counted."""
    if case.partway:
        # Without events, a redrive is not known. It lowers the count, and keeps the rows.
        recorded = sum(row.outcome == AttemptOutcome.LOST for row in rows)
        if run.losses > recorded:
            what = f"{case.title(run)}: {run.losses} losses are counted, {recorded} are recorded"
            yield offence("S15", "losses", what, run, *rows)
        return
    # Only a redrive raises the fence above that of a death, and it sets the count to zero.
    since = max((death for death in _deaths(case, run) if death < run.fence), default=0)
    lost = sum(row.outcome == AttemptOutcome.LOST and row.fence > since for row in rows)
    spare = run.state in {RunState.UNKNOWN, RunState.CANCELLED}
    if not run.losses <= lost <= run.losses + spare:
        what = f"{case.title(run)}: {run.losses} losses are counted, {lost} are recorded"
        yield offence("S15", "losses", what, run, *rows)


def _newest_row_fits(case: Case, run: Run, rows: Sequence[Attempt]) -> Iterator[Violation]:
    here = next((row for row in rows if row.fence == run.fence), None)
    if here is not None and (run.state in HOLDING - {RunState.CANCELLING} or run.state == RunState.QUEUED):
        what = f"{case.title(run)} is {run.state}, and its attempt of fence {run.fence} {here.outcome}"
        yield offence("S15", "outcome", what, run, here)
    if run.state not in _AFTER_A_ROW:
        return
    found = _last_row(run, rows)
    if found is None:
        what = f"{case.title(run)} is {run.state}, and no attempt says why"
        yield offence("S15", "attempt_gone", what, run)
    elif found.outcome in {AttemptOutcome.HANDED_BACK, AttemptOutcome.CANCELLED, AttemptOutcome.SUCCEEDED}:
        what = f"{case.title(run)} is {run.state}, and its attempt of fence {found.fence} {found.outcome}"
        yield offence("S15", "outcome", what, run, found)


def outcomes_stay_as_recorded(case: Case) -> Iterator[Violation]:
    """S17: a run agrees with its event, its dead letter, its attempts and what its target returned."""
    letters = {letter.run: letter for letter in case.history.dead_letters}
    for run in case.history.runs:
        rows = sorted(case.attempts.get(run.id, ()), key=lambda row: row.fence)
        last = _last_row(run, rows)
        for event in case.lifecycle.get(run.id, {}).values():
            if event.fence == run.fence and event.state == run.state:
                yield from _event_agrees(case, run, event, last)
        letter = letters.get(run.id)
        if letter is not None and letter.attempts is not None and run.state == RunState.DEAD:
            counted = letter.attempts == run.attempt or _given_back(last)
            same = (letter.reason, letter.error) == (run.reason, run.error)
            if not counted or not same:
                yield offence("S17", "letter", f"{case.title(run)} and its dead letter differ", run, letter)
        yield from _attempts_agree(case, run, rows)
        yield from _errors_are_kept(case, run, rows, last)
        yield from _success_is_kept(case, run)


def _event_agrees(case: Case, run: Run, event: LifecycleRecord, last: Attempt | None) -> Iterator[Violation]:
    differ = []
    if event.attempt is not None and event.attempt != run.attempt:
        # A snooze or a rejection gives its attempt back after it was announced; a cancel then may, too.
        differ += [] if _given_back(last) or run.state == RunState.CANCELLED else ["attempt"]
    if run.state in {RunState.DEAD, RunState.UNKNOWN, RunState.SKIPPED, RunState.DISCARDED}:
        differ += ["reason"] if event.reason is not None and event.reason != run.reason else []
    # A run that is planned as skipped gets its date and its event from two statements.
    dated = event.finished_at is not None and run.state != RunState.SKIPPED
    if dated and event.finished_at != run.finished_at:
        differ.append("finished_at")
    if event.error is not None and not _same_error(event.error, run.error):
        differ.append("error")
    if event.result_digest is not None and event.result_digest != _digest(run.result_digest, run.result):
        differ.append("result")
    # A success, and a cancel at that moment, may leave the error of the attempt before in the row.
    told = bool(event.error_digest) or run.state not in {RunState.SUCCEEDED, RunState.CANCELLED}
    if event.error_digest is not None and told and event.error_digest != _digest(run.error_digest, run.error):
        differ.append("error")
    if event.started_at is not None and event.started_at != run.started_at:
        differ.append("started_at")
    if differ:
        what = f"{case.title(run)}: the ledger and the lifecycle event differ in {', '.join(differ)}"
        yield offence("S17", "rewritten", what, run, event)


def _attempts_agree(case: Case, run: Run, rows: Sequence[Attempt]) -> Iterator[Violation]:
    """The event of a retry tells of the attempt before it, that of a death of all."""
    by_fence = {row.fence: row for row in rows}
    for event in case.retries.get(run.id, ()):
        row = by_fence.get(event.fence)
        if row is None:
            continue
        said = event.attempt, event.started_at, event.error_digest
        kept = row.attempt, row.started_at, _digest(row.error_digest, row.error)
        if any(one not in {None, other} for one, other in zip(said, kept, strict=True)):
            what = f"{case.title(run)}: the attempt of fence {row.fence} and its event differ"
            yield offence("S17", "rewritten", what, run, row, event)
    for death in case.deaths.get(run.id, ()):
        for past in death.history:
            row = by_fence.get(past.fence)
            same = row is None or past._replace(error=None) == row._replace(
                error=None, scheduled_for=None, error_digest=None
            )
            if row is not None and not (same and _same_error(past.error, row.error)):
                what = (
                    f"{case.title(run)}: the attempt of fence {row.fence} and the event of the death differ"
                )
                yield offence("S17", "rewritten", what, run, row, past)


def _errors_are_kept(
    case: Case, run: Run, rows: Sequence[Attempt], last: Attempt | None
) -> Iterator[Violation]:
    for row in rows:
        # A handler may discard its run without a reason.
        by_handler = row.fence == run.fence and (
            run.reason == BY_HANDLER or run.state in {RunState.CANCELLED, RunState.DISCARDED}
        )
        if row.outcome in _EXPLAINED and row.error is None and not by_handler:
            what = f"{case.title(run)}: the attempt of fence {row.fence} {row.outcome} without an error"
            yield offence("S17", "error_gone", what, run, row)
    needed = run.state == RunState.UNKNOWN or (run.state == RunState.DEAD and not _snoozed(last))
    if run.state in _AFTER_A_ROW and last is not None and last.error is not None:
        needed = True
    # The row of a loss says less than its run.
    by_worker = last is not None and last.outcome != AttemptOutcome.LOST and last.fence == run.fence
    if run.state in _AFTER_A_ROW and last is not None and by_worker and last.error != run.error:
        what = f"{case.title(run)}: its error and that of its last attempt differ"
        yield offence("S17", "error", what, run, last)
    if needed and run.error is None:
        yield offence("S17", "error_gone", f"{case.title(run)} is {run.state} without an error", run, last)


def _success_is_kept(case: Case, run: Run) -> Iterator[Violation]:
    if run.state == RunState.SUCCEEDED and run.reason is not None:
        yield offence("S17", "reason", f"{case.title(run)} succeeded, and has the reason {run.reason}", run)
    if run.result is not None and run.state not in {RunState.SUCCEEDED, RunState.CANCELLED}:
        yield offence("S17", "result", f"{case.title(run)} is {run.state}, and has a result", run)
    if run.state != RunState.SUCCEEDED:
        return
    for call in case.calls.get(run.id, ()):
        if call.fence != run.fence or call.returns is None:
            continue
        if json.loads(call.returns) != json.loads(run.result or "null"):
            what = f"{case.title(run)}: its target returned {call.returns}, its result is {run.result}"
            yield offence("S17", "result", what, run, call)


def _deaths(case: Case, run: Run) -> list[int]:
    """Fences under which the run was announced as dead."""
    return [event.fence for event in case.lifecycle.get(run.id, {}).values() if event.state == RunState.DEAD]


def _last_row(run: Run, rows: Sequence[Attempt]) -> Attempt | None:
    """The row that was written with the run's state; a loss raises the fence after it."""
    for row in rows:
        after_loss = row.fence == run.fence - 1 and row.outcome == AttemptOutcome.LOST
        if row.fence == run.fence or (after_loss and run.state != RunState.RETRYING):
            return row
    return None


def _given_back(row: Attempt | None) -> bool:
    return row is not None and row.outcome in _GIVEN_BACK


def _snoozed(row: Attempt | None) -> bool:
    return row is not None and row.outcome == AttemptOutcome.SNOOZED


def digest(text: str | None) -> str:
    """The digest of a result or an error in an event; empty if there is none."""
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def _digest(known: str | None, text: str | None) -> str:
    return known if known is not None else digest(text)


def _same_error(announced: str | None, kept: str | None) -> bool:
    return announced is None or (kept is not None and announced[:_COMPARED] == kept[:_COMPARED])
