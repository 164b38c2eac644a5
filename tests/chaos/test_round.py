"""Two rounds of the chaos run: one with every kind of fault, one with poison alone."""

import json

import pytest
from tests.chaos.run import Options, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_rounds_of_load_and_faults_violate_nothing(request: pytest.FixtureRequest) -> None:
    seed = request.config.getoption("--chaos-seed")
    found = run(Options(seed, rounds=2, poison_every=2))
    assert found["violations"] == 0, json.dumps(found, indent=1, default=str)
    assert found["kills"] > 0
    assert found["planned"] > 0
    assert found["ran"] > 0
