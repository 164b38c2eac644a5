"""Days of 320 jobs and 30 faults, in the order of a seed: clean, and the same again for the same seed.

NOONMARK_SIMULATED_SEEDS sets the number of seeds.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest
from tests.simulation import faults
from tests.simulation.judging import first_difference, judge_day

SEEDS = int(os.environ.get("NOONMARK_SIMULATED_SEEDS", "20"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_a_day_of_faults_is_judged_clean(seed, postgres_server, template_database):
    judged = judge_day(postgres_server, template_database, seed)

    assert not judged.problem, (
        f"{judged.line()}\nreplay: python -m tests.simulation --seed {seed} -v\n"
        + "\n".join(violation.what for violation in judged.report.violations[:10])
    )
    assert judged.jobs >= 300
    assert judged.report.runs >= 1000
    assert len(judged.faults) >= 20


@pytest.mark.timeout(600)
def test_the_same_seed_leaves_the_same_ledger(postgres_server, template_database):
    one, other = (judge_day(postgres_server, template_database, 3) for _ in range(2))

    assert not first_difference(one.rows, other.rows)
    assert one.rows


@dataclass(frozen=True)
class Flaw:
    """A mistake of an actor, the faults under which it shows, and the invariants that must find it."""

    name: str
    schedule: tuple[tuple[float, faults.Fault], ...] | None
    found_by: frozenset[str]


HOUR = 3600.0
FLAWS = [
    Flaw("drops messages", None, frozenset({"S6"})),
    Flaw("commits early", ((HOUR, faults.kill_worker_with_a_full_buffer),), frozenset({"S5", "V2"})),
    Flaw(
        "ignores its lost lease",
        tuple((hours * HOUR, faults.pause_worker_before_it_begins) for hours in (1, 5, 9, 13)),
        frozenset({"V3"}),
    ),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.name.replace(" ", "_"))
def test_a_flaw_of_an_actor_is_found(flaw, postgres_server, template_database):
    judged = judge_day(postgres_server, template_database, 4, frozenset({flaw.name}), schedule=flaw.schedule)

    assert judged.problem
    assert flaw.found_by <= {violation.invariant for violation in judged.report.violations}
