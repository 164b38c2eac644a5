"""A namespace and a job are paused and resumed on the command line, while real processes work."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from tests.support.cli import Called
from tests.support.cluster import SERVICES, Cluster

EVERY = timedelta(seconds=1)


class Operator:
    """Who runs commands and reads the JSON that they print."""

    def __init__(self, noonmark: Cluster, command: Callable[..., Called]) -> None:
        self.folder = noonmark.folder
        self.command = command

    def __call__(self, *arguments: str) -> Any:
        return json.loads(self.command(*arguments, "--json").stdout)

    def submit(self, document: dict[str, Any]) -> None:
        """Submit a job of namespace `shop`."""
        self._publish({"namespace": "shop", "type": "python", "handler": "chaos.record", **document})

    def order(self, word: str, **data: Any) -> None:
        """Give an order about a job of namespace `shop` as an event."""
        event = {
            "specversion": "1.0",
            "id": uuid4().hex,
            "source": "operator",
            "type": f"noonmark.job.{word}.v1",
        }
        self._publish({**event, "datacontenttype": "application/json", "data": {"namespace": "shop", **data}})

    def _publish(self, document: dict[str, Any]) -> None:
        file = self.folder / "document.json"
        file.write_text(json.dumps(document))
        self("submit", str(file))

    def tick(self) -> dict[str, Any]:
        """Show the recurring job."""
        shown: dict[str, Any] = self("job", "show", "tick", "--namespace", "shop")
        return shown


@pytest.fixture
def operator(noonmark: Cluster, command: Callable[..., Called]) -> Operator:
    return Operator(noonmark, command)


def ledger(noonmark: Cluster) -> list[tuple[datetime, str, str | None]]:
    """What became of the instants of the recurring job."""
    return noonmark.rows(
        "select scheduled_for, state, reason from runs where job_id = (select id from jobs where name = 'tick')"
        " order by 1"
    )


@pytest.mark.slow
def test_what_a_pause_held_runs_after_the_resume_once_each_or_is_accounted_for(
    noonmark: Cluster, operator: Operator
) -> None:
    noonmark.start(*SERVICES)
    operator("namespace", "set", "shop", "--timezone", "Europe/Berlin")
    operator.submit({"name": "tick", "schedule": {"every": 1}, "overlap": "allow"})
    operator.submit({"name": "nightly", "schedule": "0 3 * * *"})
    noonmark.wait(lambda: len(noonmark.calls("shop")) >= 2, "the job to run")
    zone = "select schedule ->> 'timezone' from jobs where name = 'nightly'"
    noonmark.wait(lambda: noonmark.rows(zone), "the other job to be taken in")
    assert noonmark.value(zone) == "Europe/Berlin"

    # The whole namespace, with a trigger that is killed and one that takes over in between.
    paused = operator("namespace", "pause", "shop", "--reason", "moving")
    assert (paused["changed"], paused["jobs"]) == (True, 2)
    noonmark.wait(lambda: noonmark.states("shop").keys() <= {"succeeded", "waiting"}, "what runs to end")
    ran = len(noonmark.calls("shop"))
    noonmark.node("trigger").kill()
    operator.submit({"name": "single"})
    operator.order("resume", name="tick", missed="all")
    told = operator.command("job", "resume", "tick", "--namespace", "shop", "--missed", "all", code=1).stderr
    assert "its namespace 'shop' is paused" in told
    noonmark.start("trigger")
    noonmark.wait(lambda: noonmark.rows("select from rejections"), "the resume to be refused")
    noonmark.wait(
        lambda: noonmark.rows("select from waits w join jobs j on j.id = w.job_id where name = 'single'"),
        "the new job's run to wait",
    )
    noonmark.wait(lambda: operator.tick()["held_instants"] >= 1, "an instant to pass that the pause holds")
    shown = operator.tick()
    assert (shown["state"], shown["paused_by"], shown["next_run_at"]) == ("paused", "namespace", None)
    assert len(noonmark.calls("shop")) == ran
    (refusal,) = operator("rejection", "list")["items"]
    assert refusal["reason"] == "conflict"
    assert "its namespace 'shop' is paused" in json.dumps(refusal)

    resumed = operator("namespace", "resume", "shop", "--missed", "all")
    assert (resumed["changed"], resumed["jobs"]) == (True, 3)
    noonmark.wait(lambda: len(noonmark.calls("shop")) >= ran + 5, "the held instants to run")

    # The job alone: the latest of what it misses is enough.
    operator("job", "pause", "tick", "--namespace", "shop", "--reason", "too loud")
    held = "select from jobs where name = 'tick' and paused_at < now() - interval '3.5 s'"
    noonmark.wait(lambda: noonmark.rows(held), "three instants to pass")
    shown = operator.tick()
    assert (shown["paused_by"], shown["state_reason"]) == ("job", "too loud")
    assert shown["held_instants"] >= 3
    coalesced = "select count(*) from runs where reason = 'coalesced'"
    before = noonmark.value(coalesced)
    operator("job", "resume", "tick", "--namespace", "shop", "--missed", "latest")
    noonmark.wait(lambda: noonmark.value(coalesced) >= before + 2, "the others to be coalesced")
    operator("namespace", "pause", "shop")
    noonmark.wait(lambda: not noonmark.states("shop").keys() & {"queued", "running"}, "what runs to end")

    instants = ledger(noonmark)
    assert [at for at, _, _ in instants] == [instants[0][0] + n * EVERY for n in range(len(instants))]
    assert {(state, reason) for _, state, reason in instants} <= {
        ("succeeded", None),
        ("skipped", "coalesced"),
        ("waiting", "paused"),
    }
    calls = noonmark.calls("shop")
    assert len({call["key"] for call in calls}) == len(calls)
    assert len(calls) == noonmark.states("shop")["succeeded"]
