"""A campaign: chaos runs over seeds until enough was killed, one line a seed in a file.

`python -m tests.chaos.campaign --kills 2500 --file campaign.jsonl`. It may be killed at any time: started again
with the same file, it continues with the seeds that are not in it. Ends with 0 only if nothing was found.

`--summary` prints what the file says; `--summary --write` writes it into `docs/verification.md`.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.chaos.campaign import records
from tests.chaos.campaign.records import Record
from tests.support.marked import write_part

from noonmark.devstack.processes import processes

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "chaos" / "campaign" / "campaign.jsonl"
PAGE = ROOT / "docs" / "verification.md"
PART = "campaign"
KEPT = (
    *("seed", "rounds", "minutes", "kills", "kills_by_service", "pauses", "faults", "releases"),
    *("planned", "ran", "runs"),
    *("calls", "lost", "extra", "second_verdicts", "stale_writes", "duplicates", "late_seconds"),
    *("restless_rounds", "convergence_seconds", "judged_rounds", "violations", "findings", "notes"),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How long a campaign lasts.

    Attributes:
        file: of its lines.
        kills: kills and pauses at which it ends.
        minutes: after which no further round begins; 0 for no limit.
        rounds: of each seed.
        first: the first seed.
        seconds: of faults in a round.
        moments: of a round at which something is killed.
    """

    file: Path
    kills: int
    minutes: float
    rounds: int
    first: int = 1
    seconds: float = 10.0
    moments: int = 14


Play = Callable[[int, Plan, float], Record]
"""Plays a seed: its number, the plan, the minutes that are left (0 for no limit); returns its record."""


def campaign(plan: Plan, play: Play, clock: Callable[[], float] = time.monotonic) -> Iterator[Record]:
    """Play the seeds that are not in the file, in order; yield each record once it is in the file."""
    begun = clock()
    played = records.read(plan.file)
    seen = {record["seed"] for record in played}
    hurt = records.hurt(played)
    for seed in count(plan.first):
        left = plan.minutes - (clock() - begun) / 60 if plan.minutes else 0.0
        if hurt >= plan.kills or left < 0 or (plan.minutes and not left):
            return
        if seed not in seen:
            record = play(seed, plan, left)
            records.append(plan.file, record)
            hurt += records.hurt([record])
            yield record


def play_seed(seed: int, plan: Plan, minutes: float) -> Record:
    """Play a chaos run in a process of its own; a run that ends without a verdict is recorded as such."""
    made = {"seed": seed, "commit": commit(), "seconds": plan.seconds, "moments": plan.moments}
    with tempfile.TemporaryDirectory(prefix="noonmark-campaign-") as folder:
        out, log = Path(folder) / "run.json", Path(folder) / "run.log"
        command = [sys.executable, "-m", "tests.chaos.run", "--seed", str(seed), "--rounds", str(plan.rounds)]
        command += ["--seconds", str(plan.seconds), "--kills", str(plan.moments)]
        process = processes.spawn(
            [*command, "--minutes", str(minutes), "--json", str(out)],
            log_file=log,
            cwd=ROOT,
            death_signal=signal.SIGTERM,
        )
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
        if not out.exists():
            last = processes.tail(log, lines=8).replace(f"{ROOT}/", "")
            return {**made, "error": f"exit code {code}: {last[-1500:]}"}
        found = json.loads(out.read_text(encoding="utf-8"))
    violated = {rule: n for rule, n in found["invariants"].items() if isinstance(n, int)}
    return {**made, **{name: found[name] for name in KEPT}, "violated": violated}


def commit() -> str:
    """Return the commit that is tested, with a mark if the tree differs from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def line(record: Record) -> str:
    """A seed in one line."""
    if "error" in record:
        return f"seed {record['seed']:>4}: NO VERDICT: {record['error']}"
    found = record["violations"]
    return (
        f"seed {record['seed']:>4}: {record['rounds']} rounds, {record['kills']} kills, {record['pauses']} pauses,"
        f" {record['planned']} planned, {record['runs']} runs: {f'{found} VIOLATIONS' if found else 'clean'}"
    )


def main() -> int:
    """Run as a program."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos.campaign",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--file", type=Path, default=RECORDED, help="JSON lines, one per seed.")
    parser.add_argument("--kills", type=int, default=2500, help="Kills and pauses to stop at.")
    parser.add_argument("--minutes", type=float, default=0.0, help="Start no round after this time.")
    parser.add_argument("--rounds", type=int, default=5, help="Rounds of each seed.")
    parser.add_argument("--first", type=int, default=1, help="First seed.")
    parser.add_argument("--seconds", type=float, default=10.0, help="Time of faults in a round.")
    parser.add_argument(
        "--moments", type=int, default=14, help="Moments of a round at which something is killed."
    )
    parser.add_argument("--summary", action="store_true", help="Print the file as Markdown, play nothing.")
    parser.add_argument("--write", action="store_true", help="With --summary: write it into the page.")
    given = parser.parse_args()
    if not given.summary:
        plan = Plan(
            given.file, given.kills, given.minutes, given.rounds, given.first, given.seconds, given.moments
        )
        for record in campaign(plan, play_seed):
            print(line(record), flush=True)
    played = records.read(given.file)
    if given.summary and given.write:
        write_part(PAGE, PART, "\n".join(records.summary(played)))
        return 0
    if given.summary:
        print("\n".join(records.summary(played)))
    return 1 if any("error" in record or record["violations"] for record in played) else 0


if __name__ == "__main__":
    sys.exit(main())
