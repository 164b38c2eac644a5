"""The model of the claim: two triggers, one shard that moves between them, a timer, and the runs that it plans.

Ownership is a belief from the last heartbeat, so both may believe that they own the shard. A claim locks the timer, plans by
`core.planning.plan`, and commits runs, messages and the moved timer together; a crash before that leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple
from uuid import UUID

from tests.model.checker import Broken, Step

from noonmark.core.planning.plan import Misfire, plan
from noonmark.core.schedules.schedule import load_schedule
from noonmark.store.cluster.members import owner_of

NAMES = "AB"
MEMBERS = (UUID(int=1), UUID(int=2))
MINUTE = timedelta(minutes=1)
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
LAST = 2
"""The number of the last instant that comes due."""

MUTANTS = {
    "no lock on the timer": "a claim reads a timer that another claim has locked",
    "neither lock nor run key": "a claim reads locked timers, and inserts a run whose instant is in the ledger already",
    "timer before runs": "the timer is moved in one transaction and the runs are written in another",
    "runs without messages": "the runs are written in one transaction and their messages in another",
    "silent members keep shards": "shards are distributed among all members, also those without a heartbeat",
}


class Claim(NamedTuple):
    """An open claim: the instants that it plans, and where it moves the timer."""

    instants: tuple[int, ...]
    next_at: int
    moved: bool = False


class Trigger(NamedTuple):
    alive: bool = True
    beats: bool = True
    owns: bool = False
    claim: Claim | None = None


class State(NamedTuple):
    """The clock, the timer, planned instants and those with a message, and the triggers."""

    now: int = 0
    timer: int = 0
    runs: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()
    triggers: tuple[Trigger, ...] = tuple(Trigger(owns=owner_of(0, list(MEMBERS)) == one) for one in MEMBERS)
    faults: int = 3

    def with_trigger(self, number: int, one: Trigger) -> State:
        other = self.triggers[1 - number]
        return self._replace(triggers=(one, other) if number == 0 else (other, one))


class Shards:
    """The model; `faults` are crashes, and heartbeats that stop."""

    def __init__(self, *, faults: int = 3, broken: Broken = frozenset()) -> None:
        self.name = f"shards: {LAST + 1} instants, {faults} faults"
        self._first = State(faults=faults)
        self._broken = broken

    def initial(self) -> State:
        return self._first

    def steps(self, state: State) -> Iterator[Step[State]]:
        if state.now < LAST:
            yield Step(("tick",), f"Instant {state.now + 1} comes due", state._replace(now=state.now + 1))
        for number, one in enumerate(state.triggers):
            yield from self._member(state, number, one)
            if one.alive:
                yield from self._claim(state, number, one)

    def _member(self, state: State, number: int, one: Trigger) -> Iterator[Step[State]]:
        name = f"Trigger {NAMES[number]}"
        if one.beats:
            silent = state.with_trigger(number, one._replace(beats=False))
            if not one.alive:
                yield Step(("silent", number), f"The last heartbeat of {name} is too old", silent)
            elif state.faults:
                told = f"The heartbeats of {name} stop, and it goes on"
                yield Step(("silent", number), told, silent._replace(faults=state.faults - 1), True)
        if not one.alive:
            new = state.with_trigger(number, Trigger(beats=one.beats))
            yield Step(("restart", number), f"{name} is started again", new, True)
            return
        if state.faults and state.triggers[1 - number].alive:
            dead = state.with_trigger(number, Trigger(alive=False, beats=one.beats))
            yield Step(("crash", number), f"{name} crashes", dead._replace(faults=state.faults - 1), True)
        everyone = "silent members keep shards" in self._broken
        live = [
            MEMBERS[n] for n, other in enumerate(state.triggers) if everyone or other.beats or n == number
        ]
        owns = owner_of(0, live) == MEMBERS[number]
        if (True, owns) != (one.beats, one.owns):
            told = f"{name} sends a heartbeat and {'owns' if owns else 'does not own'} the shard"
            yield Step(
                ("beat", number), told, state.with_trigger(number, one._replace(beats=True, owns=owns))
            )

    def _claim(self, state: State, number: int, one: Trigger) -> Iterator[Step[State]]:
        name, claim = f"Trigger {NAMES[number]}", one.claim
        if claim is not None:
            yield self._commit(state, number, one, claim)
            return
        if not one.owns or state.timer > state.now:
            return
        unlocked = {"no lock on the timer", "neither lock nor run key"} & self._broken
        if state.triggers[1 - number].claim is not None and not unlocked:
            yield Step(("claim", number), f"{name} finds the timer locked", state)
            return
        instants, next_at = planned(state.timer, state.now)
        told = f"{name} locks the timer and plans {_listed(instants)}"
        yield Step(
            ("claim", number), told, state.with_trigger(number, one._replace(claim=Claim(instants, next_at)))
        )

    def _commit(self, state: State, number: int, one: Trigger, claim: Claim) -> Step[State]:
        name = f"Trigger {NAMES[number]}"
        done = state.with_trigger(number, one._replace(claim=None))
        if "timer before runs" in self._broken and not claim.moved:
            moved = state.with_trigger(number, one._replace(claim=claim._replace(moved=True)))
            return Step(
                ("commit", number), f"{name} commits the moved timer", moved._replace(timer=claim.next_at)
            )
        twice = "neither lock nor run key" in self._broken
        new = tuple(at for at in claim.instants if twice or at not in state.runs)
        sent = () if "runs without messages" in self._broken else new
        after = done._replace(
            timer=claim.next_at,
            runs=tuple(sorted((*state.runs, *new))),
            messages=tuple(sorted((*state.messages, *sent))),
        )
        return Step(("commit", number), f"{name} commits the runs of {_listed(claim.instants)}", after)

    def wrong(self, state: State) -> str | None:
        for at in range(LAST + 1):
            if state.runs.count(at) > 1:
                return f"instant {at} is planned twice"
            if at < state.timer and at not in state.runs:
                return f"the timer has passed instant {at}, which has no run"
            if state.messages.count(at) != state.runs.count(at):
                return f"instant {at} has a run without its message"
        return None

    def wrong_step(self, before: State, step: Step[State]) -> str | None:
        return "the timer moves back" if step.after.timer < before.timer else None

    def settled(self, state: State) -> bool:
        return state.now == LAST and state.timer == LAST + 1


def _listed(instants: tuple[int, ...]) -> str:
    return f"instant {', '.join(map(str, instants))}"


@cache
def planned(due: int, now: int) -> tuple[tuple[int, ...], int]:
    """Return the instants that a claim plans, and the next one, by the rule of the code."""
    anchor = FIRST.isoformat().replace("+00:00", "Z")
    schedule = load_schedule({"every": "PT1M", "anchor": anchor})
    found = plan(schedule, Misfire(grace_seconds=3600.0), due=FIRST + due * MINUTE, now=FIRST + now * MINUTE)
    assert found.next_at is not None
    return tuple((one.scheduled_for - FIRST) // MINUTE for one in found.runs), (
        found.next_at - FIRST
    ) // MINUTE


SCOPES = (lambda broken: Shards(faults=3, broken=broken),)
