"""The model of the relay: two dispatchers of one slice, one of which may be a zombie, send what the outbox holds.

A dispatcher reads rows, sends each to Kafka, and deletes what was acknowledged; it may crash between any two of these. A row
that commits late, a message that Kafka refuses, and a message that arrives twice are part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.checker import Broken, Step
from tests.model.runs.rules import ALLOWED

NAMES = "AB"
Message = tuple[int, int]
"""A run and a fence."""

MUTANTS = {
    "delete before send": "a dispatcher deletes the rows that it has read before it sends them",
    "delete what is there": "a dispatcher deletes the rows of its slice, not those that it has sent",
    "park without guard": "a refused message parks its run whatever the run's state and fence are",
    "park without timer": "a parked run has no timer that queues it again",
    "duplicate starts": "a start does not compare the state of the run",
}


class Run(NamedTuple):
    state: str = "queued"
    fence: int = 1
    timer: bool = False
    starts: int = 0


class Dispatcher(NamedTuple):
    """What a dispatcher has read and not finished, and which of it Kafka has acknowledged."""

    read: tuple[Message, ...] = ()
    sent: tuple[Message, ...] = ()


class State(NamedTuple):
    runs: tuple[Run, ...] = (Run(),)
    outbox: tuple[Message, ...] = ((0, 1),)
    topic: tuple[Message, ...] = ()
    dispatchers: tuple[Dispatcher, ...] = (Dispatcher(), Dispatcher())
    faults: int = 2

    def with_run(self, number: int, run: Run) -> State:
        return self._replace(runs=(*self.runs[:number], run, *self.runs[number + 1 :]))

    def with_dispatcher(self, number: int, one: Dispatcher) -> State:
        other = self.dispatchers[1 - number]
        return self._replace(dispatchers=(one, other) if number == 0 else (other, one))


class Outbox:
    """The model; `faults` are crashes and refusals."""

    def __init__(self, *, faults: int = 2, broken: Broken = frozenset()) -> None:
        self.name = f"outbox: 2 runs, {faults} faults"
        self._first = State(faults=faults)
        self._broken = broken

    def initial(self) -> State:
        return self._first

    def steps(self, state: State) -> Iterator[Step[State]]:
        if len(state.runs) == 1:
            late = state._replace(runs=(*state.runs, Run()), outbox=(*state.outbox, (1, 1)))
            yield Step(("commit",), "A trigger commits run 2 with its row", late)
        for number, one in enumerate(state.dispatchers):
            yield from self._dispatch(state, number, one)
        for message in dict.fromkeys(state.topic):
            yield self._start(state, message)
        for number, run in enumerate(state.runs):
            if run.timer:
                fence = run.fence + 1
                queued = state.with_run(number, run._replace(state="queued", fence=fence, timer=False))
                told = f"Run {number + 1} is tried again: it is queued under fence {fence}"
                yield Step(
                    ("retry", number),
                    told,
                    queued._replace(outbox=tuple(sorted((*queued.outbox, (number, fence))))),
                )

    def _dispatch(self, state: State, number: int, one: Dispatcher) -> Iterator[Step[State]]:
        name = f"Dispatcher {NAMES[number]}"
        if not one.read and state.outbox:
            yield Step(
                ("read", number),
                f"{name} reads the outbox",
                state.with_dispatcher(number, Dispatcher(state.outbox)),
            )
        for message in one.read:
            if message in one.sent:
                continue
            named = f"the message of run {message[0] + 1} with fence {message[1]}"
            if "delete before send" not in self._broken or message not in state.outbox:
                sent = state.with_dispatcher(number, one._replace(sent=(*one.sent, message)))
                sent = sent._replace(topic=tuple(sorted((*state.topic, message))))
                yield Step(("send", number, message), f"{name} sends {named}", sent)
            if state.faults:
                yield Step(
                    ("refuse", number, message),
                    f"Kafka refuses {named} of {name}",
                    self._park(state, number, message),
                    True,
                )
        early = "delete before send" in self._broken and set(one.read) & set(state.outbox)
        if one.sent or early:
            gone = set(one.read) if early else set(one.sent)
            if "delete what is there" in self._broken:
                gone = set(state.outbox)
            outbox = tuple(message for message in state.outbox if message not in gone)
            rest = one if early else Dispatcher(tuple(m for m in one.read if m not in one.sent))
            told = f"{name} deletes what was acknowledged"
            yield Step(("delete", number), told, state._replace(outbox=outbox).with_dispatcher(number, rest))
        if one.read and state.faults:
            dead = state.with_dispatcher(number, Dispatcher())._replace(faults=state.faults - 1)
            yield Step(("crash", number), f"{name} crashes and is started again", dead, True)

    def _park(self, state: State, number: int, message: Message) -> State:
        which, fence = message
        one, run = state.dispatchers[number], state.runs[which]
        rest = Dispatcher(tuple(m for m in one.read if m != message), one.sent)
        after = state.with_dispatcher(number, rest)._replace(
            outbox=tuple(m for m in state.outbox if m != message), faults=state.faults - 1
        )
        if (run.state, run.fence) == ("queued", fence) or "park without guard" in self._broken:
            parked = run._replace(state="waiting", timer="park without timer" not in self._broken)
            after = after.with_run(which, parked)
        return after

    def _start(self, state: State, message: Message) -> Step[State]:
        which, fence = message
        run, topic = state.runs[which], list(state.topic)
        topic.remove(message)
        after = state._replace(topic=tuple(topic))
        told = f"message of run {which + 1} with fence {fence}"
        if run.fence == fence and (run.state == "queued" or "duplicate starts" in self._broken):
            started = after.with_run(which, run._replace(state="running", starts=run.starts + 1))
            return Step(("start", message), f"A worker starts the {told}", started)
        return Step(("start", message), f"A worker drops the {told}", after)

    def wrong(self, state: State) -> str | None:
        for number, run in enumerate(state.runs):
            name = f"run {number + 1}"
            if run.state == "queued" and (number, run.fence) not in (*state.outbox, *state.topic):
                return f"{name} is queued, and its message is neither in the outbox nor in Kafka"
            if run.starts > 1:
                return f"{name} is started twice"
            if (run.state == "waiting") != run.timer:
                return f"{name} is {run.state}, and its timer says otherwise"
        return None

    def wrong_step(self, before: State, step: Step[State]) -> str | None:
        for number, (old, new) in enumerate(zip(before.runs, step.after.runs, strict=False)):
            if old.state != new.state and new.state not in ALLOWED[old.state]:
                return f"run {number + 1} moves from {old.state} to {new.state}, which no transition allows"
        return None

    def settled(self, state: State) -> bool:
        started = all(run.state == "running" for run in state.runs) and len(state.runs) == 2
        return started and not state.outbox and not state.topic


SCOPES = (lambda broken: Outbox(faults=2, broken=broken),)
