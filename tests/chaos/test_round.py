"""Two rounds of the chaos run: one with every kind of fault, one with poison alone."""

import json

import pytest
from tests.chaos.run import Options, run
from tests.support.cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_rounds_of_load_and_faults_violate_nothing(request: pytest.FixtureRequest) -> None:
    seed = request.config.getoption("--chaos-seed")
    found = run(Options(seed, rounds=2, poison_every=2))
    assert found["violations"] == 0, json.dumps(found, indent=1, default=str)
    assert found["kills"] > 0
    assert found["planned"] > 0
    assert found["ran"] > 0


def test_a_round_that_does_not_come_to_rest_reports_only_what_did_not(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One run never ends, whatever the system does.
    unsettled = Cluster.unsettled
    monkeypatch.setattr(Cluster, "unsettled", lambda self, load: {**unsettled(self, load), "unfinished": 1})
    seed = request.config.getoption("--chaos-seed")

    found = run(Options(seed, rounds=1, seconds=15.0, kills=3, bound=1.0))

    assert found["restless_rounds"] == 1
    assert {one["invariant"] for one in found["findings"]} <= {"V2", "V3"}
    assert "did not come to rest in time: 1 unfinished runs" in [one["what"] for one in found["findings"]]
    assert found["invariants"]["S6"] == "not applicable: the system did not come to rest"
