"""Every statement has its answer for timers of workflows, workflow runs and the runs of tasks."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.run_kinds import (
    ALL_OF_A_JOB,
    AS_ANY_RUN,
    KINDS_IN_CODE,
    LEFT_OUT,
    ORIGINS_IN_CODE,
    OWN_WAY,
    OWNERS,
    TIMERS,
    WALKED,
)
from tests.support.statement_facts import (
    about_owners,
    about_runs,
    about_timers,
    finds_runs_by_job,
    kinds_of,
    origins_of,
    owners_of,
)

from noonmark.core.states import BY_TASKS, Origin, TimerKind
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.kafka.topics import POOL_PATTERN
from noonmark.telemetry.declared.labels import CLAIM_STATEMENTS
from noonmark.trigger.claim_loop import _KINDS as CLAIMED

ROOT = Path(__file__).parents[2]
NAMES_KINDS = re.compile(r"\bTimerKind\.[A-Z]|\bkind (?:in|=|<>|not in) ?\(?\d")
NAMES_ORIGINS = re.compile(r"\bOrigin\.[A-Z]|\bBY_(?:TARGET|TASKS)\b")


def code() -> Iterator[tuple[str, str]]:
    """Each file of the services and of what they share, but for the definitions and what has been."""
    for part in ("services", "shared", "schemas"):
        for path in sorted((ROOT / part).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if "/migrations/" not in name and not name.endswith("core/states.py"):
                yield name, path.read_text()


def test_every_statement_about_timers_has_its_answer_for_those_of_workflows() -> None:
    assert {name: kinds_of(name) for name in about_timers()} == {
        name: kinds for name, (kinds, _) in TIMERS.items()
    }


def test_every_statement_that_names_an_owner_has_its_answer_for_workflow_runs() -> None:
    assert {name: owners_of(name) for name in about_owners()} == {
        name: owners for name, (owners, _) in OWNERS.items()
    }


def test_every_statement_about_runs_has_one_answer_for_those_of_tasks() -> None:
    answers = [*LEFT_OUT, *OWN_WAY, *ALL_OF_A_JOB, *AS_ANY_RUN]

    assert sorted(answers) == about_runs()


@pytest.mark.parametrize("name", [*LEFT_OUT, *WALKED])
def test_a_statement_that_leaves_tasks_out_says_so(name: str) -> None:
    said = origins_of(name)
    assert said & {"<> 'task'", "is distinct from 'task'", "not in ('backfill', 'task')"} or said & {
        "= 'schedule'",
        "= 'backfill'",
    }, said


@pytest.mark.parametrize("name", OWN_WAY)
def test_a_statement_with_its_own_way_for_tasks_names_them(name: str) -> None:
    assert any("'task'" in said for said in origins_of(name))


def test_what_finds_runs_by_their_job_has_decided_about_tasks() -> None:
    by_job = {name for name in about_runs() if finds_runs_by_job(name)}

    assert by_job - LEFT_OUT.keys() - OWN_WAY.keys() == ALL_OF_A_JOB.keys()


def test_every_answer_has_its_reason() -> None:
    tables = (LEFT_OUT, OWN_WAY, ALL_OF_A_JOB, WALKED, KINDS_IN_CODE, ORIGINS_IN_CODE)
    reasons = [why for table in tables for why in table.values()]
    assert all([*reasons, *(why for _, why in TIMERS.values()), *(why for _, why in OWNERS.values())])


def test_code_that_names_kinds_of_timers_is_listed() -> None:
    assert {name for name, text in code() if NAMES_KINDS.search(text)} == KINDS_IN_CODE.keys()


def test_code_that_names_origins_or_owners_is_listed() -> None:
    assert {name for name, text in code() if NAMES_ORIGINS.search(text)} == ORIGINS_IN_CODE.keys()


def test_the_claim_loop_leaves_workflows_to_their_own_loop() -> None:
    assert set(CLAIMED) == set(TimerKind) - {TimerKind.ADVANCE}
    assert "claim_advance" not in CLAIM_STATEMENTS


def test_the_names_are_those_of_the_statements() -> None:
    assert (TimerKind.ADVANCE.value, BY_TASKS, Origin.TASK.value) == (5, -1, "task")


def test_no_pool_can_have_the_name_of_the_workflows() -> None:
    assert not POOL_PATTERN.fullmatch(WORKFLOW_POOL)
