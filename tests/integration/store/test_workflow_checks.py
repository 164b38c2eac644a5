"""The check of workflow runs that other tests end with: each planted fault is found."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.integration.store.workflow_checks import assert_consistent
from tests.integration.store.workflow_room import Flows
from tests.integration.store.world import World

from noonmark.core.states import RunState

TASKS = {"a": {}, "b": {"depends_on": ["a"]}, "c": {"depends_on": ["b"]}}

OPEN = {
    "a fact that is lost": "delete from timers where kind = 5",
    "a fact that is parked": "update timers set fire_at = '9999-12-31 00:00+00' where kind = 5",
    "a task that is taken for undecided": r"update workflows set progress = '\x02000000'",
    "a task that is taken for ended": r"update workflows set progress = '\x02020000'",
    "a run without a state": "delete from workflows",
    "a task that came too early": "update runs set due_at = due_at - interval '1 h' where request_id like '%/1/0/1'",
    "a run of a final task before its time": "update runs set request_id = replace(request_id, '/1/0/1', '/3/0/1')",
    "a run of another version": "update runs set job_version = 2 where origin = 'task'",
    "a dead letter of a task": """insert into dead_letters (run_id, scheduled_for, job_id, namespace, attempts, reason, fingerprint, died_at)
        select id, scheduled_for, job_id, namespace, 1, 'x', 'x', now() from runs where request_id like '%/1/0/1'""",
}
ENDED = {
    "another verdict": "update runs set state = 'succeeded', reason = null where pool = '$workflow'",
    "another reason": "update runs set reason = 'finally_failed' where pool = '$workflow'",
    "another reason of a skip": "update runs set reason = 'not_needed' where request_id like '%/2/0/1'",
    "a task without a run": "delete from runs where request_id like '%/2/0/1'",
    "no dead letter": "delete from dead_letters",
    "a timer that is left": """insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind,
        namespace, pool) select now(), scheduled_for, job_id, id, 1, shard, 1, 5, 'tests', pool from runs limit 1""",
    "a slot that is left": """insert into slots (key, slot_no, run_id, taken_at) select job_id, 1, id, now() from runs where pool = '$workflow'""",
}


@pytest.fixture
def flows(world: World) -> Flows:
    return Flows(world)


def begun(flows: Flows) -> UUID:
    run_id = flows.open(TASKS, **{"finally": {"tidy": {}}})
    flows.end(run_id, ["a"])
    flows.end(run_id, ["b"], RunState.DEAD, advance=False)
    assert_consistent(flows.world)
    return run_id


@pytest.mark.parametrize("fault", OPEN)
def test_a_fault_of_an_open_run_is_found(flows: Flows, fault: str) -> None:
    begun(flows)
    flows.world.db.execute(OPEN[fault].encode())
    with pytest.raises(AssertionError):
        assert_consistent(flows.world)


@pytest.mark.parametrize("fault", ENDED)
def test_a_fault_of_a_run_that_has_ended_is_found(flows: Flows, fault: str) -> None:
    run_id = begun(flows)
    flows.advance()
    flows.end(run_id, ["tidy"])
    flows.nothing_is_left(run_id)
    flows.world.db.execute(ENDED[fault].encode())
    with pytest.raises(AssertionError):
        assert_consistent(flows.world)
