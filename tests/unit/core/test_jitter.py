"""Jitter: the same for the same job and instant, spread evenly, never out of order or past the end."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.core.planning.jitter import Jitter
from noonmark.core.schedules.schedule import AnyOf, Cron, Interval

T0 = datetime(2026, 5, 4, tzinfo=UTC)


def test_a_job_keeps_its_delay_in_every_process():
    code = (
        "from datetime import *; from noonmark.core.planning.jitter import Jitter; from noonmark.core.schedules.schedule import Cron\n"
        "at = datetime(2026, 5, 4, tzinfo=UTC)\n"
        "print(Jitter(Cron('0 * * * *', jitter_seconds=600), b'a job').fire_at(at).isoformat())"
    )
    here = Jitter(Cron("0 * * * *", jitter_seconds=600), b"a job").fire_at(T0)
    for seed in ("1", "2"):
        out = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        )  # fmt: skip
        assert out.stdout.strip() == here.isoformat()
    # Pinned: another value would move every jittered run of every installation.
    assert (here - T0).total_seconds() == 397.636476


def test_jobs_of_one_instant_are_spread_evenly():
    schedule = Cron("0 * * * *", jitter_seconds=60)
    delays = [(Jitter(schedule, n.to_bytes(16, "big")).fire_at(T0) - T0).total_seconds() for n in range(6000)]
    assert all(0 <= delay < 60 for delay in delays)
    per_second = [sum(int(delay) == second for delay in delays) for second in range(60)]
    assert min(per_second) > 60
    assert max(per_second) < 150


@given(
    st.binary(min_size=16, max_size=16),
    st.sampled_from(
        [
            Cron("* * * * *", jitter_seconds=59),
            Interval(timedelta(seconds=20), T0, jitter_seconds=19),
            # Instants that come closer than the jitter: the order is kept all the same.
            AnyOf((Cron("0 * * * *"), Cron("7 3 * * *"), Cron("8 3 * * *")), jitter_seconds=1800),
            Cron("*/5 * * * *", jitter_seconds=200, end=T0 + timedelta(hours=2)),
        ]
    ),
)
@settings(max_examples=100, deadline=None)
def test_starts_keep_the_order_of_their_instants_and_never_pass_the_end(key, schedule):
    jitter = Jitter(schedule, key)
    instants = schedule.between(T0, T0 + timedelta(hours=6), 100)
    starts = [jitter.fire_at(at) for at in instants]
    assert starts == sorted(starts)
    for at, start in zip(instants, starts, strict=True):
        assert at <= start <= at + jitter.longest
        assert schedule.end is None or start <= schedule.end


def test_without_jitter_a_run_starts_at_its_instant():
    assert Jitter(Cron("* * * * *"), b"a job").fire_at(T0) == T0
