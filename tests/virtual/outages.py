"""Outages on a virtual clock: jobs of every kind and policy, what happens to them, and what the clerk expects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from tests.support.settings_orders import pause_namespace, resume_namespace
from tests.virtual.instants import Member, Shape, due
from tests.virtual.system import NAMESPACE, System, job_document, utc
from tests.virtual.verdicts import Clerk, Policy, Row

from noonmark.core.states import ResumeChoice

NEW_YORK = "America/New_York"
DTSTART = datetime(2026, 1, 1, 2, 30)  # noqa: DTZ001 - local
POLICIES = (
    Policy("fire_all", "fire_all"),
    Policy("fire_all, look-back 7 d", "fire_all", look_back=7 * 86_400),
    Policy("fire_all, deadline 30 min", "fire_all", look_back=7 * 86_400, start_deadline=1800),
    Policy("fire_latest", "fire_latest"),
    Policy("skip", "skip"),
)
SETTINGS = {"claim_batch": 10_000}


@dataclass(frozen=True)
class Kind:
    """A schedule, as users write it and as the oracle reads it.

    Attributes:
        ends: it has its last instant in the middle of the story.
        rhythm: seconds of its period, where the oracle cannot see it in the instants.
    """

    name: str
    document: dict[str, Any]
    members: tuple[Member, ...]
    zone: str = "UTC"
    max_runs: int | None = None
    ends: bool = False
    rhythm: float | None = None

    def within(self, story: Outage) -> Kind:
        """Return it with the end that it has in this story."""
        if not self.ends:
            return self
        low, high = story.created, story.steps[-1][0]
        end = (low + (high - low) / 2).replace(microsecond=0)
        (member,) = self.members
        document = {**self.document, "end": end.isoformat()}
        return replace(self, document=document, members=(replace(member, end=int(end.timestamp())),))

    def instants(self, story: Outage) -> list[datetime]:
        """Return the instants of the story, with the one before it and the one after it."""
        created, high = story.created, story.steps[-1][0]
        made = int(created.timestamp())
        # An interval is counted from the creation; what others had before it tells their period.
        low = made if any(member.kind == "every" for member in self.members) else made - 32 * 86_400
        shape = Shape(self.zone, start=low)
        found = due(self.members, shape, low, int(high.timestamp()) + 32 * 86_400).instants
        listed = [datetime.fromtimestamp(at, UTC) for at in found]
        before = [at for at in listed if at <= created][-1:] or [created]
        after = [at for at in listed if at > high][:1]
        return [*before, *(at for at in listed if created < at <= high), *after]


def _cron(name: str, text: str, zone: str = "UTC", **more: Any) -> Kind:
    return Kind(name, {"cron": text, "timezone": zone}, (Member("cron", text),), zone, **more)


_HOURS: Final = "FREQ=DAILY;BYHOUR=1,2,14,18"
KINDS = (
    _cron("minutely", "* * * * *", NEW_YORK),
    _cron("hourly", "0 * * * *", NEW_YORK),
    _cron("daily 02:30", "30 2 * * *", NEW_YORK),
    _cron("daily 01:30", "30 1 * * *", NEW_YORK),
    Kind(
        "rrule",
        {"rrule": _HOURS, "dtstart": DTSTART.isoformat(), "timezone": NEW_YORK},
        (Member("rrule", _HOURS, dtstart=DTSTART),),
        NEW_YORK,
    ),
    Kind("every 7 min", {"every": "PT7M"}, (Member("every", every=420),)),
    _cron("monthly", "0 0 1 * *"),
    Kind(
        "union",
        {"any": [{"cron": "*/20 * * * *"}, {"every": 1000}], "timezone": NEW_YORK},
        (Member("cron", "*/20 * * * *"), Member("every", every=1000)),
        NEW_YORK,
    ),
    replace(
        _cron("hourly, 5 runs", "20 * * * *", NEW_YORK, max_runs=5),
        document={"cron": "20 * * * *", "timezone": NEW_YORK, "max_runs": 5},
    ),
    _cron("minutely, ends", "* * * * *", ends=True, rhythm=60.0),
)

Step = tuple[datetime, str]
"""When something happens: claim, claim once, pause, resume CHOICE, pause all, resume all CHOICE."""


@dataclass(frozen=True)
class Outage:
    """A story: when jobs are made, and what happens then, in order."""

    name: str
    created: datetime
    steps: Sequence[Step]


def around(begin: datetime, end: datetime, *, minutes: int = 6) -> tuple[datetime, list[Step], list[Step]]:
    """Return a creation before an outage, and the claims of a healthy trigger before and after it.

    A trigger claims a second after each full minute.
    """
    full = begin.replace(second=1)
    before = [(full - timedelta(minutes=n), "claim") for n in range(minutes, 0, -1)]
    after = [(end.replace(second=1) + timedelta(minutes=n), "claim") for n in range(1, minutes + 1)]
    return before[0][0] - timedelta(seconds=44), before, after


def down(name: str, begin: str, end: str) -> Outage:
    """No trigger claims from `begin` to `end`."""
    low, high = utc(begin), utc(end)
    created, before, after = around(low, high)
    return Outage(f"trigger down {name}", created, [*before, (high, "claim"), *after])


def paused(name: str, begin: str, end: str, choice: str, whole: str = "") -> Outage:
    """Jobs, or with `whole` their namespace, are paused; the trigger works on."""
    low, high = utc(begin), utc(end)
    created, before, after = around(low, high)
    # A trigger that is up finds nothing due in the pause.
    idle = [(low + (high - low) * part / 4, "claim") for part in (1, 2, 3)]
    order = f"resume{whole} {choice}"
    steps = [*before, (low, f"pause{whole}"), *idle, (high, order), (high, "claim"), *after]
    return Outage(f"{'namespace' if whole else 'job'} paused {name}, resume {choice}", created, steps)


def slow(name: str, begin: str, *, claims: int, apart: int, late: int) -> Outage:
    """Claims come `late` seconds after a full minute, every `apart` minutes."""
    low = utc(begin)
    steps = [(low + timedelta(minutes=apart * n, seconds=late), "claim") for n in range(1, claims + 1)]
    return Outage(f"slow claim, {name}", low - timedelta(seconds=43), steps)


LENGTHS = (
    ("2 h", "2026-05-31T22:30:30Z", "2026-06-01T00:30:30Z"),
    ("3 days", "2026-05-30T04:30:30Z", "2026-06-02T04:30:30Z"),
    ("over spring forward", "2026-03-07T22:17:30Z", "2026-03-09T12:43:30Z"),
    ("over fall back", "2026-10-31T22:17:30Z", "2026-11-02T12:43:30Z"),
)


def outages() -> Iterator[Outage]:
    """Return every story of the table."""
    for length in LENGTHS:
        yield down(*length)
    for length in LENGTHS:
        for choice in ResumeChoice:
            yield paused(*length, choice.value)
    for length in LENGTHS[:2]:
        for choice in ResumeChoice:
            yield paused(*length, choice.value, " all")
    yield slow("90 s late", "2026-06-01T03:57:00Z", claims=50, apart=3, late=90)


@dataclass
class Told:
    """What the ledger says of the jobs of one policy."""

    instants: int = 0
    summaries: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)

    def add(self, rows: Sequence[Row]) -> None:
        """Count the rows of a job."""
        for row in rows:
            self.instants += row.count
            self.summaries += row.last is not None
            self.verdicts[row.reason or row.state] += row.count


@dataclass(frozen=True)
class Result:
    """The ledger after an outage, and where it differs from the clerk's."""

    told: dict[str, Told]
    wrong: list[str]


def go_through(
    system: System,
    outage: Outage,
    *,
    kinds: Sequence[Kind] = KINDS,
    policies: Sequence[Policy] = POLICIES,
    run_cap: int = 100,
    row_cap: int = 1000,
    step_cap: int | None = None,
) -> Result:
    """Play an outage with one job of each kind and policy, and hold the ledger against the clerks' books."""
    system.empty(outage.created)
    trigger = system.start_trigger(catch_up_cap=run_cap, ledger_cap=row_cap, **SETTINGS)
    try:
        cases = [(kind.within(outage), policy) for kind in kinds for policy in policies]
        ids = system.submit(
            "create",
            [job_document(f"{k.name}, {p.name}", k.document, **p.document()) for k, p in cases],
        )
        instants = {kind.name: kind.instants(outage) for kind, _ in cases[:: len(policies)]}
        clerks = {
            job_id: Clerk(
                instants[kind.name],
                policy,
                outage.created,
                run_cap,
                row_cap,
                step_cap,
                rhythm=kind.rhythm,
                runs_left=kind.max_runs,
            )
            for job_id, (kind, policy) in zip(ids, cases, strict=True)
        }
        for at, order in outage.steps:
            # The dispatcher works all the time: what a pause or a resume wrote has left before the next step. Otherwise a
            # claim that happens to check the outbox finds rows of hours ago in it, and holds claims back.
            system.relay()
            system.turn_to(at)
            _carry_out(system, order, ids, clerks)
    finally:
        system.stop_trigger(trigger, leave=True)
    told: dict[str, Told] = {policy.name: Told() for policy in policies}
    wrong: list[str] = []
    for (kind, policy), job_id in zip(cases, ids, strict=True):
        rows = ledger(system, job_id)
        told[policy.name].add(rows)
        wrong += _differences(f"{outage.name}: {kind.name}, {policy.name}", rows, clerks[job_id].rows)
    return Result(told, wrong)


def _carry_out(system: System, order: str, ids: Sequence[UUID], clerks: dict[UUID, Clerk]) -> None:
    match order.split():
        case ["claim"]:
            system.claim()
            for clerk in clerks.values():
                clerk.claim(system.now)
        case ["claim", "once"]:
            system.claim(until_idle=False)
            for clerk in clerks.values():
                clerk.claim(system.now, until_idle=False)
        case ["pause"]:
            system.submit("pause", [{"job_id": str(job_id)} for job_id in ids])
            for clerk in clerks.values():
                clerk.pause()
        case ["resume", choice]:
            system.submit("resume", [{"job_id": str(job_id), "missed": choice} for job_id in ids])
            for clerk in clerks.values():
                clerk.resume(system.now, choice)
        case ["pause", "all"]:
            pause_namespace(system.db, NAMESPACE)
            for clerk in clerks.values():
                clerk.pause()
        case ["resume", "all", choice]:
            resume_namespace(system.db, NAMESPACE, ResumeChoice(choice))
            for clerk in clerks.values():
                clerk.resume(system.now, choice)
        case _:
            raise ValueError(order)


def ledger(system: System, job_id: UUID) -> list[Row]:
    """Return the ledger rows of a job in order."""
    return [
        Row(*row)
        for row in system.db.execute(
            "select scheduled_for, state, reason, last_scheduled_for, instants from runs"
            " where job_id = %s and origin = 'schedule' order by scheduled_for",
            [job_id],
        )
    ]


def _differences(name: str, found: Sequence[Row], expected: Sequence[Row]) -> Iterator[str]:
    # The clerk writes what ran below what was skipped in a step; the ledger is in the order of time.
    if list(found) == sorted(expected, key=lambda row: row.at):
        return
    missing = [row for row in expected if row not in found]
    extra = [row for row in found if row not in expected]
    yield f"{name}: missing {_shown(missing)}; instead {_shown(extra)}"


def _shown(rows: Sequence[Row]) -> str:
    texts = [
        f"{row.at:%d %H:%M:%S} {row.reason or row.state}"
        + (f" x{row.count} to {row.last:%d %H:%M:%S}" if row.last else "")
        for row in rows
    ]
    middle = [f"... {len(texts) - 4} more ..."] if len(texts) > 5 else texts[2:3]
    return f"{len(rows)} [" + ", ".join([*texts[:2], *middle, *texts[max(2, len(texts) - 2) :]][:6]) + "]"


COLUMNS = ("queued", "misfired", "coalesced", "look_back", "paused", "start_deadline")


def table(results: Sequence[tuple[str, Result]], say: Callable[[str], None]) -> None:
    """Print what became of the instants, a row per outage and policy."""
    width = max(len(name) for name, _ in results)
    policy_width = max(len(policy) for _, result in results for policy in result.told)
    heads = ("instants", "ran", *COLUMNS[1:], "summary rows")
    say(f"{'outage':<{width}}  {'policy':<{policy_width}}  " + "  ".join(f"{head:>9}" for head in heads))
    for name, result in results:
        for policy, told in result.told.items():
            numbers = (told.instants, *(told.verdicts[column] for column in COLUMNS), told.summaries)
            shown = "  ".join(
                f"{number or '-':>{max(9, len(head))}}" for number, head in zip(numbers, heads, strict=True)
            )
            say(f"{name:<{width}}  {policy:<{policy_width}}  {shown}")
            name = ""  # noqa: PLW2901 - once per outage
