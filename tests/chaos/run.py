"""The chaos run: rounds of load and faults that a seed decides, each judged by the checker.

`make chaos SEED=7 ROUNDS=20 JSON=out.json`. Ends with 0 only if no invariant was violated.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from tests.chaos import planted
from tests.chaos.faults import Agenda, Menu
from tests.chaos.fleet import Fleet
from tests.chaos.loads import LIMIT, ChaosLoad, Publisher, in_whole_seconds
from tests.chaos.releases import releases
from tests.chaos.watching import Rest, Watch, children, settled
from tests.chaos.world import EMITTED, World, effects, world
from tests.support.evidence import Place, gather

from noonmark.store.limits.limits import Figures, set_limit
from noonmark.verify import INVARIANTS, Expected, Report, judge
from noonmark.verify.history import History, Span, Write

SETTINGS = {"worker_slots": "48", "intake_batch": "100", "claim_batch": "100", "relay_batch": "100"}
BEAT_SECONDS = 0.4


@dataclass(slots=True)
class Options:
    """How a run is made."""

    seed: int
    rounds: int
    seconds: float = 10.0
    kills: int = 14
    bound: float = 60.0
    minutes: float = 0.0
    poison_every: int = 5
    """Of so many rounds one has poison as its only fault, so that its effect on others can be measured."""


@dataclass(slots=True)
class Totals:
    """Sums over all rounds."""

    options: Options
    planned: int = 0
    ran: int = 0
    runs: int = 0
    calls: int = 0
    rounds: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    invariants: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    unjudged: dict[str, str] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    rising: int = 0
    late: list[tuple[float, float, float]] = field(default_factory=list)
    convergence: list[float] = field(default_factory=list)
    restless: int = 0
    findings: list[dict[str, Any]] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)

    def add(self, number: int, report: Report, converged: float | None) -> None:
        """Add a round."""
        self.rounds += 1
        self.planned += report.planned
        self.ran += report.ran
        self.runs += report.runs
        self.calls += report.calls
        self.kinds.update(violation.kind for violation in report.violations)
        for name, count in report.by_invariant().items():
            if isinstance(count, int):
                self.invariants[name] += count
                self.judged[name] += 1
            else:
                self.unjudged[name] = count
        self.skipped.update(report.skipped)
        self.duplicates += len(report.duplicates)
        self.rising += report.rising
        self.late.append(report.late)
        self.convergence.append(self.options.bound if converged is None else converged)
        self.restless += converged is None
        self.findings += [{"round": number, **v._asdict()} for v in report.violations]

    def as_json(self, fleet: Fleet, notes: list[str]) -> dict[str, Any]:
        """The whole run for other programs."""
        minutes = (time.monotonic() - self.begun) / 60
        return {
            "seed": self.options.seed,
            "rounds": self.rounds,
            "minutes": round(minutes, 2),
            "kills": fleet.done["kill"],
            "kills_per_minute": round(fleet.done["kill"] / minutes, 1),
            "kills_by_service": dict(fleet.kills),
            "pauses": fleet.done["pause"],
            "faults": dict(fleet.done),
            "releases": dict(fleet.releases.started),
            "planned": self.planned,
            "ran": self.ran,
            "runs": self.runs,
            "calls": self.calls,
            "lost": self.kinds["lost"],
            "extra": self.kinds["extra"],
            "second_verdicts": self.kinds["second_verdict"],
            "stale_writes": self.kinds["stale_write"],
            "duplicates": self.duplicates,
            "duplicates_with_rising_fence": self.rising,
            "skipped": dict(self.skipped),
            "late_seconds": {
                "p50": sorted(p50 for p50, _, _ in self.late)[len(self.late) // 2],
                "p99": max(p99 for _, p99, _ in self.late),
                "max": max(most for *_, most in self.late),
            },
            "restless_rounds": self.restless,
            "convergence_seconds": {
                "p50": sorted(self.convergence)[len(self.convergence) // 2],
                "max": max(self.convergence),
            },
            "invariants": {
                item.id: self.invariants[item.id]
                if self.judged[item.id]
                else self.unjudged.get(item.id, "not applicable")
                for item in INVARIANTS
            },
            "judged_rounds": {item.id: self.judged[item.id] for item in INVARIANTS},
            "violations": len(self.findings),
            "findings": self.findings[:100],
            "notes": notes,
        }


class Round:
    """One round: load, faults, repair, verdict."""

    def __init__(self, made: World, fleet: Fleet, options: Options, number: int) -> None:
        self._world, self._fleet, self._options, self._number = made, fleet, options, number
        self._noonmark = made.noonmark
        self._dice = Random(f"{options.seed}/{number}")
        self._load = ChaosLoad(namespace=f"r{number}")
        self._publisher = Publisher(made.noonmark)
        self._watch = Watch(made.postgres.direct, self._load.namespace)
        self._at_rest = Rest(made.noonmark, self._load)
        self._poison_only = number % options.poison_every == options.poison_every - 1
        self._since = self._until = datetime.now(UTC)
        self._steps_before = len(made.clocks.steps)

    def play(self) -> tuple[Report, float | None]:
        """Play it; return the verdict, and the seconds that the system took to come to rest."""
        try:
            self._prepare()
            self._hurt()
            converged = self._rest()
        finally:
            self._watch.stop()
        return self._judge(), converged

    def _prepare(self) -> None:
        set_limit(self._noonmark.database, self._load.namespace, LIMIT, Figures(max_running=2))
        at = in_whole_seconds(self._noonmark.soon(4))
        self._load.prepare(at, int(self._options.seconds) - 1)
        self._publisher.publish(self._load, self._load.events)
        made = "select count(*) from jobs where namespace = %s"
        jobs = len(self._load.jobs)
        within = (at - self._noonmark.soon(0)).total_seconds() + self._options.seconds
        taken = settled(lambda: self._noonmark.value(made, self._load.namespace) == jobs, within)
        assert taken is not None, f"the jobs of a round were not taken in:\n{self._noonmark.state()}"

    def _hurt(self) -> None:
        seconds, agenda = self._options.seconds, Agenda()
        self._since = self._noonmark.soon(0)
        menu = Menu(self._world, self._fleet, self._publisher, agenda, self._dice)
        if self._poison_only:
            for moment in (0.1, 0.4, 0.7):
                agenda.add(moment * seconds, menu.poison)
        else:
            menu.plan(seconds, self._options.kills)
        for moment, order in self._load.orders(self._dice, seconds):
            agenda.add(moment, lambda order=order: self._publisher.publish(self._load, [order]))
        for beat in range(int(seconds / BEAT_SECONDS)):
            agenda.add(beat * BEAT_SECONDS, self._beat)
        agenda.run(seconds)
        agenda.finish()
        self._world.heal()
        self._until = self._noonmark.soon(0)

    def _beat(self) -> None:
        self._publisher.publish(self._load, self._load.beat(self._noonmark, self._dice))

    def _rest(self) -> float | None:
        self._publisher.flush()
        self._fleet.await_ready()
        took = self._at_rest.wait(self._options.bound)
        if took is not None:
            self._fleet.await_leaving()
        return took

    def _judge(self) -> Report:
        load = self._load
        place = Place(
            self._noonmark.dsn,
            self._noonmark.bootstrap,
            self._noonmark.prefix,
            self._noonmark.target_log,
            [load.namespace],
            [load.source],
            EMITTED,
            digests=not self._fleet.releases.mixed,
        )
        history = gather(place)
        # Targets date calls by the machine's clock, but for events, which have noonmark's time.
        clocks = self._world.clocks
        history.calls = [
            call._replace(at=clocks.by_postgres(call.at)) if call.pid else call for call in history.calls
        ]
        # When the jump itself was is known to some milliseconds only, and its length is seconds.
        history.clocks_agree &= len(clocks.steps) == self._steps_before
        history.restless = self._at_rest.restless
        self._add_watched(history)
        # All faults ended L ago, or all has come to rest: nothing is excused for being young.
        return judge(history, self._expected(), bound=timedelta(0))

    def _add_watched(self, history: History) -> None:
        runs = {run.id for run in history.runs}
        history.writes = [Write(*row) for row in effects(self._noonmark.dsn) if row[0] in runs]
        history.sightings = self._watch.sightings
        history.pauses = self._watch.pauses
        history.children = [child for child in children(self._noonmark) if child.run in runs]
        self._fleet.note_starved()
        history.unreachable = set(self._fleet.unreachable)
        history.exits, self._fleet.exits = self._fleet.exits, []
        history.owners = self._fleet.owners()
        # What comes after the faults may take L to find its way back, and on a busy machine L is longer.
        bound = timedelta(seconds=self._options.bound)
        until = self._until if self._poison_only else max(self._until + bound, self._noonmark.soon(0))
        span = Span("poison" if self._poison_only else "faults", self._since, until)
        history.faults = [] if self._poison_only else [span]
        history.poisoned = [span] if self._poison_only else None

    def _expected(self) -> Expected:
        load, ns = self._load, self._load.namespace
        return Expected(
            {(ns, job.name): load.as_expected(job) for job in load.jobs},
            {(ns, job.name): frozenset(job.ends) for job in load.jobs},
            acknowledged=load.acknowledged,
            rejected=set(load.rejected),
            refusable=load.refusable,
        )


def run(options: Options) -> dict[str, Any]:
    """Play all rounds; return the figures."""
    with world(**SETTINGS) as made, TemporaryDirectory(prefix="noonmark-release-") as folder:
        chosen = releases(options.seed, Path(folder) / "before")
        made.notes += chosen.notes
        fleet = Fleet(made.noonmark, made.clocks, chosen)
        fleet.start()
        totals = Totals(options)
        for number in range(options.rounds):
            report, converged = Round(made, fleet, options, number).play()
            totals.add(number, report, converged)
            print(line(number, report, converged, fleet), flush=True)
            for violation in report.violations[: 5 if converged is not None else None]:
                print(f"    {violation.invariant} {violation.kind}: {violation.what[:600]}", flush=True)
            if options.minutes and time.monotonic() - totals.begun > options.minutes * 60:
                break
        return totals.as_json(fleet, made.notes)


def line(number: int, report: Report, converged: float | None, fleet: Fleet) -> str:
    """A round in one line."""
    rest = "did not come to rest" if converged is None else f"at rest after {converged:.1f} s"
    return (
        f"round {number:>3}: {report.planned} planned, {report.runs} runs, {len(report.duplicates)} called again,"
        f" late max {report.late[2]:.1f} s, {rest}, {fleet.done['kill']} kills so far:"
        f" {'clean' if report.clean else f'{len(report.violations)} VIOLATIONS'}"
    )


def report_page(found: dict[str, Any]) -> Iterator[str]:
    """The run on one page."""
    late, rest = found["late_seconds"], found["convergence_seconds"]
    yield f"verdict       {'CLEAN' if not found['violations'] else str(found['violations']) + ' VIOLATIONS'}"
    yield f"seed          {found['seed']}, {found['rounds']} rounds in {found['minutes']} minutes"
    yield f"kills         {found['kills']} ({found['kills_per_minute']} a minute): {found['kills_by_service']}"
    yield f"faults        {found['faults']}"
    yield f"processes     {found['releases']}"
    yield f"planned       {found['planned']} instants; {found['ran']} of {found['runs']} runs began"
    yield f"missed        {found['lost']}; extra {found['extra']}; second verdicts {found['second_verdicts']}"
    yield f"skipped       {found['skipped']}"
    yield f"late          p50 {late['p50']:.2f} s, worst p99 {late['p99']:.2f} s, max {late['max']:.2f} s"
    yield (
        f"duplicates    {found['duplicates']} runs called again,"
        f" {found['duplicates_with_rising_fence']} of them under a higher fence each time"
    )
    yield f"stale writes  {found['stale_writes']}"
    yield f"at rest       p50 {rest['p50']:.1f} s, max {rest['max']:.1f} s after the last fault"
    if found["restless_rounds"]:
        yield f"restless      {found['restless_rounds']} rounds, of which only V2 and V3 were judged"
    for note in found["notes"]:
        yield f"note          {note}"
    yield ""
    for item in INVARIANTS:
        count = found["invariants"][item.id]
        shown = "ok" if count == 0 else count if isinstance(count, str) else f"{count} VIOLATIONS"
        yield f"{item.id:<4}{item.title:<96}{shown}"
    yield ""
    yield "faults planted in a good history, and by which invariant the checker finds them:"
    yield from planted.table()


def main() -> int:
    """Run as a program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=10.0, help="Time of faults in a round.")
    parser.add_argument(
        "--kills", type=int, default=14, help="Moments of a round at which something is killed."
    )
    parser.add_argument("--bound", type=float, default=60.0, help="L: seconds to come to rest in.")
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="End after the round in which so many passed."
    )
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    # An exit that passes through every block, so that no server is left; SIGINT is ignored in the background.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = Options(given.seed, given.rounds, given.seconds, given.kills, given.bound, given.minutes)
    found = run(options)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1, default=str) + "\n", encoding="utf-8")
    print("\n".join(report_page(found)))
    return 1 if found["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
