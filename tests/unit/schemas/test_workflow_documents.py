"""The document of a workflow: what is taken, what the store saves of it, and what is refused."""

from __future__ import annotations

import random
from time import process_time
from typing import Any
from uuid import UUID

import orjson
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.schemas.job_cases import FLOOR, HTTP, NOW, PYTHON, outcome, parse, refusal

from noonmark.core.retry import Jitter, RetryPolicy
from noonmark.core.states import Lane, Overlap
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.core.workflows.compile import MOST_TASKS, definition_of
from noonmark.core.workflows.definition import ResultSource, Rule
from noonmark.schemas.events.envelope import Event
from noonmark.schemas.events.submissions import UPDATE, JobRef, UpdateJob, parse_submission
from noonmark.schemas.jobs import job, workflow
from noonmark.schemas.jobs.job import JobSpec, Shapes, payload_for
from noonmark.schemas.jobs.workflow import TaskSpec, WorkflowSpec
from noonmark.schemas.problems.refusal import MAX_ERRORS, Refused
from noonmark.store.documents.columns import work_text
from noonmark.store.documents.jobs import document_of_spec, effective

KINDS = "http, grpc, script, python or kafka"
LATER = "is not available in this version"
KEY_RULE = "1 to 63 of a-z, 0-9, '-' and '_', the first a letter"
NIGHTLY: dict[str, Any] = {
    "name": "nightly-invoices", "type": "Workflow", "schedule": "30 2 * * *", "overlap": "queue_one",
    "deadline_seconds": 14400, "priority": "high", "limits": ["billing"], "pause_after_failures": 3,
    "defaults": {"pool": "etl", "retry": {"max_retries": 2, "delay_seconds": 30}, "timeout_seconds": 600},
    "tasks": {
        "customers": {"type": "PYTHON", "handler": "billing.customers"},
        "is_month_end": {**PYTHON, "timeout_seconds": None, "pool": "default", "priority": 9},
        "invoice": {
            **HTTP, "depends_on": ["customers"], "max_retries": 5, "start_deadline_seconds": 60,
            "when": {"all": [{"result": "customers", "at": "/ids", "exists": True}]},
        },
        "close": {
            **PYTHON, "depends_on": ["invoice", {"task": "is_month_end", "if": {"at": "/yes", "eq": True}}],
            "rule": "none_failed", "may_fail": True, "handles": ["invoice"], "delivery": "exactly_once",
            "payload": {"b": [1, None], "a": {"result": "paid"}},
        },
    },
    "finally": {"tidy": {"type": "script", "payload": {"argv": ["rm"]}, "when": {"verdict": "close", "in": ["failed"]}}},
    "result": {"result": "customers", "at": "/summary"},
}  # fmt: skip


def flow(**tasks: Any) -> dict[str, Any]:
    return {"type": "workflow", "tasks": tasks}


def flow_of(spec: JobSpec) -> WorkflowSpec:
    assert spec.workflow is not None
    return spec.workflow


def tasks_of(document: dict[str, Any]) -> dict[str, TaskSpec]:
    return {task.key: task for task in flow_of(parse(document)).tasks}


def work(task: TaskSpec) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(task.work_json)
    return found


def shown(task: TaskSpec) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(task.document_json)
    return found


def test_a_workflow_is_a_job_with_tasks():
    spec = parse(NIGHTLY)
    tasks = flow_of(spec).tasks
    assert (spec.kind, spec.handler, spec.pool, spec.lane) == ("workflow", None, WORKFLOW_POOL, Lane.HIGH)
    assert (spec.retry.max_retries, spec.timeout_seconds) == (0, 600.0), "the longest of its tasks"
    assert spec.payload_json == b'{"tasks":"%s"}' % flow_of(spec).digest.encode()
    assert (spec.overlap, spec.limits) == (Overlap.QUEUE_ONE, (("billing", None),))
    assert [task.key for task in tasks] == ["customers", "is_month_end", "invoice", "close", "tidy"]
    assert [task.kind for task in tasks] == ["python", "python", "http", "python", "script"]
    assert [task.pool for task in tasks] == ["etl", "default", "etl", "etl", "etl"]
    assert [task.lane for task in tasks] == [Lane.HIGH, Lane.LOW, Lane.HIGH, Lane.HIGH, Lane.HIGH]
    assert [task.handler for task in tasks] == ["billing.customers", "tasks.run", None, "tasks.run", None]
    assert tasks[4].pointer == "/finally/tidy"
    assert flow_of(spec).result == ResultSource(0, "/summary")


def test_the_graph_of_its_tasks_is_stored_with_them():
    definition = definition_of(
        [(task.key, orjson.loads(task.graph_json)) for task in flow_of(parse(NIGHTLY)).tasks]
    )
    assert definition.result == ResultSource(0, "/summary")
    invoice, close, tidy = definition.tasks[2:]
    assert (invoice.start_deadline_seconds, [edge.parent for edge in invoice.edges]) == (60, [0])
    assert (close.rule, close.may_fail, close.handles) == (Rule.NONE_FAILED, True, (2,))
    assert [edge.parent for edge in close.edges] == [2, 1]
    assert tidy.is_final
    assert tidy.when is not None


def test_the_document_of_a_task_has_all_defaults():
    assert shown(tasks_of(NIGHTLY)["close"]) == {
        "type": "python",
        "handler": "tasks.run",
        "payload": {"b": [1, None], "a": {"result": "paid"}},
        "depends_on": ["invoice", {"task": "is_month_end", "if": {"at": "/yes", "eq": True}}],
        "rule": "none_failed",
        "may_fail": True,
        "handles": ["invoice"],
        "retry": {
            "max_retries": 2,
            "delay_seconds": 30,
            "factor": 2,
            "max_delay_seconds": 3600,
            "jitter": "full",
        },
        "timeout_seconds": 600,
        "priority": "high",
        "pool": "etl",
        "delivery": "exactly_once",
    }


@pytest.mark.parametrize(
    "fields",
    [
        PYTHON,
        HTTP,
        {**PYTHON, "payload": None, "max_retries": 0, "delivery": "at_most_once", "timeout_seconds": 5},
        {**HTTP, "retry": {"delays": [1, 2.5], "max_age_seconds": 60, "never_on": {"status": [404]}}},
        {"type": "kafka", "payload": {"topic": "ledger", "value": 1}},
        {"type": "script", "payload": {"argv": ["a"]}},
    ],
)
def test_workers_read_of_a_task_what_they_read_of_a_job(fields: dict[str, Any]):
    task = tasks_of(flow(a=fields))["a"]
    plain = parse(fields)
    assert task.work_json == work_text(plain)
    assert (task.kind, task.handler, task.lane, task.pool) == (
        plain.kind,
        plain.handler,
        plain.lane,
        plain.pool,
    )


RETRIES: list[tuple[dict[str, Any], dict[str, Any], RetryPolicy]] = [
    ({}, {}, RetryPolicy()),
    ({"max_retries": 1}, {}, RetryPolicy(1)),
    ({"max_retries": 1, "retry_delay_seconds": 5}, {"max_retries": 7}, RetryPolicy(7, 5.0)),
    ({"retry": {"max_retries": 1, "delay_seconds": 5}}, {"retry_delay_seconds": 9}, RetryPolicy(1, 9.0)),
    (
        {"retry": {"factor": 3, "jitter": "none"}},
        {"max_retries": 0},
        RetryPolicy(0, factor=3.0, jitter=Jitter.NONE),
    ),
    ({"retry": {"delays": [1, 2]}}, {}, RetryPolicy(2, delays=(1.0, 2.0))),
    ({"retry": {"delays": [1, 2]}}, {"retry": {"delay_seconds": 5}}, RetryPolicy(3, 5.0)),
    ({"retry": {"delay_seconds": 5, "factor": 3}}, {"retry": {"delays": [1]}}, RetryPolicy(1, delays=(1.0,))),
    ({"max_retries": 4}, {"retry": {"delays": [1]}}, RetryPolicy(4, delays=(1.0,))),
    ({"delivery": "at_most_once"}, {}, RetryPolicy(0)),
    ({"delivery": "at_most_once", "retry": {"delay_seconds": 1}}, {}, RetryPolicy(0, 1.0)),
    ({"delivery": "at_most_once"}, {"max_retries": 2}, RetryPolicy(2)),
    ({"retry": {"delay_seconds": 1}}, {"delivery": "at_most_once"}, RetryPolicy(0, 1.0)),
    ({"retry_delay_seconds": 7200}, {}, RetryPolicy(delay_seconds=7200.0, max_delay_seconds=7200.0)),
]


@pytest.mark.parametrize(("defaults", "own", "expected"), RETRIES)
def test_the_retry_fields_of_a_task_take_precedence_one_by_one(
    defaults: dict[str, Any], own: dict[str, Any], expected: RetryPolicy
):
    task = tasks_of({**flow(a={**PYTHON, **own}), "defaults": defaults})["a"]
    assert RetryPolicy.of(work(task)["retry"]) == expected


def test_fields_of_defaults_apply_to_tasks_that_do_not_set_them():
    defaults = {"pool": "etl", "priority": 1, "timeout_seconds": 7, "delivery": "at_most_once"}
    task = tasks_of(
        {**flow(a=HTTP), "priority": "low", "defaults": {**defaults, "start_deadline_seconds": 5}}
    )["a"]
    assert (task.pool, task.lane, work(task)["timeout_seconds"]) == ("etl", Lane.HIGH, 7)
    assert (work(task)["delivery"], shown(task)["start_deadline_seconds"]) == ("at_most_once", 5)
    own = {"pool": "b", "priority": 5, "timeout_seconds": 8, "delivery": "at_least_once"}
    task = tasks_of({**flow(a={**HTTP, **own}), "defaults": defaults})["a"]
    assert (task.pool, task.lane, work(task)["timeout_seconds"]) == ("b", Lane.NORMAL, 8)
    assert "delivery" not in work(task)
    assert tasks_of({**flow(a=HTTP), "defaults": None})["a"].pool == "default"


def edited(**changes: Any) -> dict[str, Any]:
    """Return the workflow with other tasks, by key; a name of the document itself has two underscores."""
    document = {**NIGHTLY, "tasks": dict(NIGHTLY["tasks"])}
    for key, change in changes.items():
        if key.startswith("__"):
            document[key[2:]] = change
        elif change is None:
            del document["tasks"][key]
        else:
            document["tasks"][key] = {**document["tasks"].get(key, PYTHON), **change}
    return document


@pytest.mark.parametrize(
    "change",
    [
        {"customers": {"handler": "billing.others"}},
        {"customers": {"payload": 1}},
        {"customers": {"max_retries": 3}},
        {"customers": {"priority": 5}},
        {"customers": {"pool": "b"}},
        {"close": {"rule": "all_done"}},
        {"close": {"may_fail": False}},
        {"close": {"handles": []}},
        {"close": {"depends_on": ["invoice", "is_month_end"]}},
        {"close": {"depends_on": ["is_month_end", "invoice"]}},
        {"invoice": {"start_deadline_seconds": 61}},
        {"new": {}},
        {"__finally": {}, "close": {}},
        {"__finally": {"tidier": NIGHTLY["finally"]["tidy"]}},
        {"__result": None},
        {"__result": {"result": "customers"}},
        {"__defaults": {}},
        {"__priority": "low"},
    ],
)
def test_each_edit_of_a_task_is_an_edit_of_the_job(change: dict[str, Any]):
    assert parse(edited(**change)).payload_json != parse(NIGHTLY).payload_json


def shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        items = list(value.items())
        rng.shuffle(items)
        return {key: shuffled(one, rng) for key, one in items}
    return [shuffled(one, rng) for one in value] if isinstance(value, list) else value


@given(st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_the_order_of_fields_and_tasks_makes_no_difference(rng: random.Random):
    given_, plain = parse(shuffled(NIGHTLY, rng)), parse(NIGHTLY)
    assert given_.payload_json == plain.payload_json
    assert [task.key for task in flow_of(given_).tasks] == [task.key for task in flow_of(plain).tasks]


def test_yaml_and_json_are_the_same_workflow():
    text = """
    type: workflow
    defaults: {pool: etl}
    tasks:
      a: {type: python, handler: tasks.run}
      b:
        type: http
        payload: {url: "https://example.com/"}
        depends_on:
          - a
          - {task: c, if: {at: /yes, eq: true}}
        when: {not: {result: a, at: /n, in: [1, "1", null]}}
      c: {type: python, handler: tasks.run}
    finally:
      d: {type: python, handler: tasks.run, when: {verdict: b, in: [failed]}}
    result: {result: a}
    """
    written = {
        "type": "workflow",
        "defaults": {"pool": "etl"},
        "tasks": {
            "a": PYTHON,
            "b": {
                **HTTP,
                "depends_on": ["a", {"task": "c", "if": {"at": "/yes", "eq": True}}],
                "when": {"not": {"result": "a", "at": "/n", "in": [1, "1", None]}},
            },
            "c": PYTHON,
        },
        "finally": {"d": {**PYTHON, "when": {"verdict": "b", "in": ["failed"]}}},
        "result": {"result": "a"},
    }
    assert parse(yaml.safe_load(text)) == parse(orjson.loads(orjson.dumps(written)))
    assert parse(yaml.safe_load(yaml.safe_dump(NIGHTLY, sort_keys=False))) == parse(NIGHTLY)


def test_the_effective_document_is_the_workflow_again():
    spec = parse(NIGHTLY)
    spelt = orjson.loads(orjson.dumps(effective(spec)))
    assert (
        spelt.keys() & {"handler", "payload", "pool", "retry", "timeout_seconds", "delivery", "defaults"}
        == set()
    )
    assert parse(spelt) == spec
    assert orjson.loads(orjson.dumps(document_of_spec(spec)))["tasks"].keys() == NIGHTLY["tasks"].keys()
    data = {"job_id": "01890a5d-ac96-774b-bcce-b302099a8057", **spelt}
    event = Event("1", "/s", UPDATE, None, None, None, data)
    assert parse_submission(event, now=NOW, ledger_floor=FLOOR) == UpdateJob(
        JobRef(UUID(data["job_id"]), "default", spec.name), spec, spelt["schedule"]
    )


TABLE: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"type": "workflow"}, {"/tasks": "is missing; an object with 1 to 5000 tasks by their keys"}),
    ({"type": "workflow", "tasks": None}, {"/tasks": "is missing; an object with 1 to 5000 tasks by their keys"}),
    (flow(), {"/tasks": "is empty; an object with 1 to 5000 tasks by their keys"}),
    ({"type": "workflow", "tasks": [PYTHON]}, {"/tasks": "is an array; an object of tasks by their keys"}),
    ({**flow(a=PYTHON), "finally": "x"}, {"/finally": "is a string; an object of tasks by their keys"}),
    (flow(A=PYTHON), {"/tasks/A": f'the name "A" has a form that is not allowed; {KEY_RULE}'}),
    (flow(**{"a/~b": PYTHON}), {"/tasks/a~1~0b": f'the name "a/~b" has a form that is not allowed; {KEY_RULE}'}),
    (flow(**{"a" * 64: PYTHON}), {f"/tasks/{'a' * 64}": f'the name "{"a" * 58}… has a form that is not allowed; {KEY_RULE}'}),
    (flow(a=None), {"/tasks/a": "is null; a task: an object with type"}),
    (flow(a={}), {"/tasks/a/type": f"is missing; {KINDS}"}),
    *[
        (flow(a={"type": kind}), {"/tasks/a/type": f'"{kind}" {LATER}; {KINDS}'})
        for kind in ("wait", "event", "approval", "workflow")
    ],
    (flow(a={"type": "ftp"}), {"/tasks/a/type": f'"ftp" is not allowed; {KINDS}'}),
    (flow(a={"type": "python"}), {"/tasks/a/handler": "is missing; the registered name, such as mails.send_welcome"}),
    (flow(a={**HTTP, "handler": "a.b"}), {"/tasks/a/handler": "is for python jobs only; no handler"}),
    (flow(a={"type": "http"}), {"/tasks/a/payload": "is missing; an object with the url to call"}),
    (flow(a={"type": "http", "payload": {}}), {"/tasks/a/payload/url": "is missing; an http or https URL of at most 2048 ASCII characters, without user information"}),
    (
        flow(a={**HTTP, "delivery": "exactly_once"}),
        {
            "/tasks/a/delivery": "exactly_once needs a handler with a transaction on noonmark's database; "
            "at_least_once or at_most_once for http jobs"
        },
    ),
    (flow(a={**PYTHON, "pool": "A"}), {"/tasks/a/pool": '"A" has a form that is not allowed; 1 to 48 of a-z, 0-9, \'-\' and \'_\', the first a letter or digit'}),
    (flow(a={**PYTHON, "pool": WORKFLOW_POOL}), {"/tasks/a/pool": '"$workflow" has a form that is not allowed; 1 to 48 of a-z, 0-9, \'-\' and \'_\', the first a letter or digit'}),
    (
        flow(a={**PYTHON, "max_retries": 1, "retry": {"max_retries": 2}}),
        {"/tasks/a/retry/max_retries": "is given twice, also as /max_retries; one of the two"},
    ),
    (
        {**flow(a={**PYTHON, "retry_delay_seconds": 9}), "defaults": {"retry": {"max_delay_seconds": 5, "delay_seconds": 1}}},
        {"/tasks/a/retry/max_delay_seconds": "5 is below the delay, 9; a number of seconds not below the delay"},
    ),
    *[
        (flow(a={**PYTHON, name: 1}), {f"/tasks/a/{name}": f"{LATER}; no such field"})
        for name in ("map", "limits", "late_after_seconds", "signal", "who", "until")
    ],
    (
        flow(a={**PYTHON, "schedule": "0 9 * * 1"}),
        {"/tasks/a/schedule": "unknown field; did you mean 'schedule' of the job?; one of type, handler, payload, depends_on, rule, when, …"},
    ),
    *[
        (
            flow(a={**PYTHON, name: 1}),
            {f"/tasks/a/{name}": f"unknown field; did you mean {name!r} of the job?; one of type, handler, payload, depends_on, rule, when, …"},
        )
        for name in ("run_at", "misfire", "overlap", "idempotency_key")
    ],
    (
        flow(a=PYTHON, b={**PYTHON, "depends_on": "a"}),
        {"/tasks/b/depends_on": '"a" is a string; a list of keys of tasks, or of objects with task and if'},
    ),
    (
        flow(a=PYTHON, b={**PYTHON, "depends_on": ["A b"]}),
        {"/tasks/b/depends_on/0": f'"A b" has a form that is not allowed; {KEY_RULE}'},
    ),
    (
        flow(a=PYTHON, b={**PYTHON, "depends_on": [{"task": "a", "when": {"eq": 1}}]}),
        {"/tasks/b/depends_on/0/when": "unknown field; did you mean 'if'?; one of task, if"},
    ),
    (
        flow(a=PYTHON, b={**PYTHON, "depends_on": [{"if": {"eq": 1}}]}),
        {"/tasks/b/depends_on/0/task": f"is missing; {KEY_RULE}"},
    ),
    (
        flow(a=PYTHON, b={**PYTHON, "depends_on": [{"task": "a", "if": {"at": "yes", "eq": 1}}]}),
        {
            "/tasks/b/depends_on/0/if/at": "is not a JSON pointer: a pointer is empty or begins with a slash, "
            "as in /status; a JSON pointer such as /total"
        },
    ),
    (
        flow(a=PYTHON, b={**PYTHON, "depends_on": ["a"], "when": {"at": "/x", "eq": 1}}),
        {"/tasks/b/when/result": "is missing; the key of a task"},
    ),
    (
        flow(a={**PYTHON, "rule": "always"}),
        {"/tasks/a/rule": '"always" is not allowed; all_succeeded, none_failed, all_done, one_succeeded or one_failed'},
    ),
    (flow(a={**PYTHON, "may_fail": "yes"}), {"/tasks/a/may_fail": '"yes" is a string; true or false'}),
    (flow(a={**PYTHON, "handles": [1]}), {"/tasks/a/handles/0": "1 is an integer; a list of keys of tasks"}),
    (
        flow(a={**PYTHON, "start_deadline_seconds": 0}),
        {"/tasks/a/start_deadline_seconds": "0 is not above 0; a number of seconds above 0, at most 366 days"},
    ),
    (
        flow(customers=PYTHON, b={**PYTHON, "depends_on": ["custmers"]}),
        {"/tasks/b/depends_on/0": "no task has the key 'custmers'; did you mean 'customers'?; the key of a task"},
    ),
    (
        flow(a={**PYTHON, "depends_on": ["c"]}, b={**PYTHON, "depends_on": ["a"]}, c={**PYTHON, "depends_on": ["b"]}),
        {"/tasks/a/depends_on/0": "a → c → b → a is a circle; "},
    ),
    ({**flow(a=PYTHON), "finally": {"a": PYTHON}}, {"/finally/a": "'a' is also a key in tasks; another key"}),
    ({**flow(a=PYTHON), "result": "a"}, {"/result": "is a string; an object with result and at"}),
    ({**flow(a=PYTHON), "result": {"result": "b"}}, {"/result/result": "no task has the key 'b'; the key of a task"}),
    (
        {**flow(a=PYTHON), "result": {"result": "a", "at": "x"}},
        {
            "/result/at": "is not a JSON pointer: a pointer is empty or begins with a slash, as in /status; "
            "a JSON pointer such as /total"
        },
    ),
    ({**flow(a=PYTHON), "defaults": []}, {"/defaults": "is an array; an object with fields of tasks"}),
    (
        {**flow(a=PYTHON), "defaults": {"handler": "a.b"}},
        {"/defaults/handler": "unknown field; one of max_retries, retry_delay_seconds, retry, timeout_seconds, priority, pool, delivery, start_deadline_seconds"},
    ),
    (
        {**flow(a=PYTHON), "defaults": {"queue": "x", "limits": []}},
        {
            "/defaults/queue": "unknown field; did you mean 'pool'?; one of max_retries, retry_delay_seconds, retry, "
            "timeout_seconds, priority, pool, delivery, start_deadline_seconds",
            "/defaults/limits": f"{LATER}; no such field",
        },
    ),
    (
        {**flow(a=PYTHON), "defaults": {"retry": {"delay_seconds": 9, "max_delay_seconds": 5}}},
        {"/defaults/retry/max_delay_seconds": "5 is below the delay, 9; a number of seconds not below the delay"},
    ),
    (
        {**flow(a=PYTHON), "defaults": {"max_retries": 1, "retry": {"max_retries": 2}}},
        {"/defaults/retry/max_retries": "is given twice, also as /max_retries; one of the two"},
    ),
    *[
        (
            {**flow(a=PYTHON), name: value},
            {f"/{name}": f"is a field of tasks, not of a workflow; {name} in defaults or in a task"},
        )
        for name, value in [
            ("pool", "etl"),
            ("retry", {}),
            ("max_retries", 1),
            ("retry_delay_seconds", 1),
            ("timeout_seconds", 5),
            ("delivery", "at_least_once"),
        ]
    ],
    *[
        (
            {**flow(a=PYTHON), name: value},
            {f"/{name}": f"is a field of tasks, not of a workflow; {name} in each task"},
        )
        for name, value in [("handler", "a.b"), ("payload", {})]
    ],
    ({**flow(a=PYTHON), "max_parallel": 5}, {"/max_parallel": f"{LATER}; no such field"}),
    *[
        ({**PYTHON, name: value}, {f"/{name}": f"is for workflows only; no {name}, or type workflow"})
        for name, value in [("tasks", {"a": PYTHON}), ("finally", {}), ("defaults", {}), ("result", {"result": "a"})]
    ],
    *[
        (
            flow(a=PYTHON, b={**PYTHON, "payload": {"x": [reference]}}),
            {"/tasks/b/payload/x/0": f"is a reference, which {LATER}; a literal value"},
        )
        for reference in [
            {"result": "a", "at": "/id"},
            {"result": "a", "at": "", "default": 1},
            {"run": "scheduled_for"},
            {"input": "/x"},
            {"item": ""},
            {"index": True},
            {"literal": {"result": "a"}},
        ]
    ],
]  # fmt: skip


@pytest.mark.parametrize(("document", "expected"), TABLE)
def test_what_is_wrong_is_refused_with_its_pointer(document: dict[str, Any], expected: dict[str, str]):
    assert refusal(document) == expected


def test_what_only_resembles_a_reference_is_a_value():
    for value in (
        {"result": "ok"},
        {"result": "a", "at": "/x", "more": 1},
        {"run": "fast"},
        {"item": 5},
        {"index": 1},
    ):
        assert parse(flow(a={**PYTHON, "payload": value})).workflow
    assert parse({**PYTHON, "payload": {"run": "id"}}), "and so is all that a job has"


def test_every_problem_of_every_task_is_reported_at_once():
    found = refusal(
        {
            "type": "workflow", "pool": "x", "name": " ", "defaults": {"pool": "X"},
            "tasks": {
                "a": {"type": "http", "payload": {}, "depends_on": ["b"], "when": {"run": "id"}},
                "b": {**PYTHON, "depends_on": ["a", "zzz"], "nmae": 1, "max_retries": "3"},
            },
            "result": {"result": 5},
        }
    )  # fmt: skip
    assert found.keys() == {
        "/pool", "/name", "/defaults/pool", "/tasks/a/payload/url", "/tasks/a/when/run", "/tasks/a/depends_on/0",
        "/tasks/b/depends_on/1", "/tasks/b/nmae", "/tasks/b/max_retries", "/result/result",
    }  # fmt: skip


def test_values_of_payloads_are_never_quoted():
    with pytest.raises(Refused) as caught:
        parse(flow(a={"type": "http", "payload": {"url": "https://u:s3cret@example.com"}}))
    assert "s3cret" not in str(caught.value)


def test_bounds_of_size():
    big = "x" * (128 * 1024)
    (at, words), = refusal(flow(a={**PYTHON, "payload": big})).items()  # fmt: skip
    assert (at, words[:27]) == ("/tasks/a/payload", "is 131074 bytes of JSON; at")
    many = {f"t{no}": {**PYTHON, "payload": big[:-2]} for no in range(16)}
    (at, words), = refusal(flow(**many)).items()  # fmt: skip
    assert at == "/tasks"
    assert words.startswith(
        f"has 2097184 bytes of payloads and dependencies; at most {workflow.MAX_WORKFLOW_BYTES} "
    )
    del many["t0"]
    assert parse(flow(**many))
    crowd = {f"t{no}": PYTHON for no in range(MOST_TASKS)}
    assert len(flow_of(parse(flow(**crowd))).tasks) == MOST_TASKS
    assert refusal({**flow(**crowd), "finally": {"x": PYTHON}}) == {"/tasks": "has 5001 tasks; at most 5000"}


def test_a_flood_of_problems_is_cut():
    with pytest.raises(Refused) as caught:
        parse(flow(**{f"t{no}": {} for no in range(MOST_TASKS)}))
    assert len(caught.value.errors) == MAX_ERRORS + 1


def test_a_circle_in_a_large_document_is_refused_at_once():
    tasks = {f"t{no}": {**PYTHON, "depends_on": [f"t{no - 1}"] if no else []} for no in range(1197)}
    tasks |= {"a": {**PYTHON, "depends_on": ["b"]}, "b": {**PYTHON, "depends_on": ["t1196", "c"]}}
    before = process_time()
    assert refusal(flow(**tasks, c={**PYTHON, "depends_on": ["a"]})) == {
        "/tasks/a/depends_on/0": "a → b → c → a is a circle; "
    }
    assert process_time() - before < 3, "it takes a fiftieth of this"


def test_a_trigger_of_a_workflow_takes_no_payload():
    with pytest.raises(Refused) as caught:
        payload_for("workflow", {})
    assert [str(one) for one in caught.value.errors] == [
        f"/payload: of a workflow {LATER}; expected no payload"
    ]


@pytest.mark.parametrize("first", [flow(a=PYTHON), PYTHON, {**flow(a=PYTHON), "payload": {}}])
@pytest.mark.parametrize(
    "second",
    [
        flow(a=PYTHON),
        flow(a={**PYTHON, "payload": 1}),
        {**flow(a=PYTHON), "name": "n"},
        {**flow(a=PYTHON), "payload": {}},
        {**flow(a=PYTHON), "payload": 1},
        PYTHON,
        {**PYTHON, "tasks": {"a": PYTHON}},
        {"type": "workflow"},
    ],
)
def test_a_workflow_means_the_same_whatever_came_before(
    first: dict[str, Any], second: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    def read(document: dict[str, Any]) -> object:
        found = outcome(lambda: parse(document))
        return getattr(found, "errors", found)

    monkeypatch.setattr(job, "_SHAPES", Shapes())
    alone = read(second)
    monkeypatch.setattr(job, "_SHAPES", Shapes())
    read(first)
    assert read(second) == alone
    assert read(second) == alone


CONDITION = st.sampled_from(
    [{"at": "/x", "eq": 1}, {"not": {"exists": True}}, {"any": [{"at": "", "in": [1, "a"]}, {"ne": None}]}]
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "payload": st.sampled_from([None, [], {"a": 1.5}, "x"]),
        "max_retries": st.integers(0, 3),
        "retry_delay_seconds": st.sampled_from([0, 1.5, 7200]),
        "timeout_seconds": st.sampled_from([None, 5, 2.5]),
        "pool": st.sampled_from(["a", "b"]),
        "priority": st.sampled_from(["low", 1, 10]),
        "delivery": st.sampled_from(["at_most_once", "exactly_once"]),
        "start_deadline_seconds": st.sampled_from([None, 5, 2.5]),
        "rule": st.sampled_from(list(Rule)).map(str),
        "may_fail": st.booleans(),
    },
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    size = draw(st.integers(1, 6))
    tasks: dict[str, Any] = {}
    for no in range(size):
        parents = draw(st.lists(st.sampled_from(sorted(tasks)), max_size=3, unique=True)) if tasks else []
        edges = [{"task": key, "if": draw(CONDITION)} if draw(st.booleans()) else key for key in parents]
        tasks[f"t{no}"] = {**PYTHON, **draw(FIELDS), "depends_on": edges}
        if len(parents) == 1:
            tasks[f"t{no}"]["handles"] = parents
    document: dict[str, Any] = {"type": "workflow", "tasks": tasks}
    if draw(st.booleans()):
        document["finally"] = {"z": {**PYTHON, **draw(FIELDS), "when": {"verdict": "t0", "in": ["failed"]}}}
    defaults = draw(FIELDS)
    document["defaults"] = {
        name: defaults[name] for name in defaults if name not in {"payload", "rule", "may_fail"}
    }
    if draw(st.booleans()):
        document["result"] = {"result": "t0", "at": draw(st.sampled_from(["", "/a"]))}
    return document


@settings(max_examples=150, deadline=None)
@given(documents())
def test_the_document_of_a_stored_workflow_is_that_workflow_again(document: dict[str, Any]):
    spec = parse(document)
    spelt = orjson.loads(orjson.dumps(effective(spec)))
    again = parse(spelt)
    assert again == spec
    assert orjson.loads(orjson.dumps(effective(again))) == spelt
