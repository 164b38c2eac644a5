"""The models beside Postgres: random walks, and what the mutants did, step by step, with rows compared after each."""

from __future__ import annotations

import pytest
from tests.integration.store.world import World
from tests.model.catalogue import SUBJECTS
from tests.model.conformance import Real, refuses, repeat_walks
from tests.model.limits.postgres import LimitsInPostgres
from tests.model.outbox.postgres import OutboxInPostgres
from tests.model.runs.postgres import RunsInPostgres
from tests.model.shards.postgres import ShardsInPostgres

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(1800)]

REAL = {
    "runs": RunsInPostgres,
    "outbox": OutboxInPostgres,
    "limits": LimitsInPostgres,
    "shards": ShardsInPostgres,
}
WALKS = {"runs": (600, 250, 250), "outbox": (300,), "limits": (300,), "shards": (300,)}
"""The number of walks in each scope of a model."""


def real_of(name: str, world: World, scope: int) -> Real:
    return REAL[name](world, SUBJECTS[name].model(scope))


def test_there_are_at_least_two_thousand_walks():
    assert set(WALKS) == set(SUBJECTS)
    assert sum(sum(walks) for walks in WALKS.values()) >= 2000


@pytest.mark.parametrize(
    ("name", "scope"),
    [(name, scope) for name, subject in SUBJECTS.items() for scope in range(len(subject.scopes))],
)
def test_random_walks_leave_the_same_rows_in_model_and_postgres(world, name, scope):
    model = SUBJECTS[name].model(scope)
    walks = WALKS[name][scope]
    explored = SUBJECTS[name].explored[scope]

    taken = repeat_walks(model, real_of(name, world, scope), explored, seed=scope, walks=walks)

    print(f"{model.name}: {walks} walks, {taken.total()} steps, {taken.most_common()[-3:]}")
    # Every kind of step was compared.
    assert set(taken) == explored.kinds


@pytest.mark.parametrize("name", SUBJECTS)
def test_postgres_refuses_what_every_mutant_did(world, name):
    subject = SUBJECTS[name]
    for mutant in subject.mutants:
        scope, trace = subject.caught(mutant)
        model = subject.model(scope)

        assert refuses(model, real_of(name, world, scope), trace), f"{mutant}:\n{trace.story()}"
