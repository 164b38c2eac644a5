"""The builder of workflows: it makes the document that a person would write, and refuses mistakes where they are."""

import asyncio
import json
from datetime import UTC, datetime

import httpx
import orjson
import pytest

from noonmark.client import AsyncClient, Client, Workflow
from noonmark.core.workflows.definition import Rule
from noonmark.outbox.checking import checked
from noonmark.schemas.jobs.job import parse_job

KEY = "nmk_abcdefghijkl_SECRETsecretSECRETsecretSECRETsecretSECRETsecret"
MADE = {"id": "j", "namespace": "default", "name": "n", "version": 1, "created": True}
WRITTEN = {
    "name": "nightly-sales",
    "type": "workflow",
    "schedule": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"},
    "deadline_seconds": 14400,
    "defaults": {"pool": "default", "retry": {"max_retries": 1, "delay_seconds": 30}},
    "tasks": {
        "extract": {"type": "python", "handler": "sales.extract", "payload": {"day": 1}},
        "orders": {
            "type": "http",
            "payload": {"url": "https://example.com/load"},
            "depends_on": ["extract"],
            "timeout_seconds": 60,
        },
        "refunds": {
            "type": "python",
            "handler": "sales.load_refunds",
            "depends_on": [{"task": "extract", "if": {"at": "/refunds", "gt": 0}}],
            "may_fail": True,
        },
        "publish": {
            "type": "python",
            "handler": "sales.publish",
            "depends_on": ["orders", "refunds"],
            "rule": "none_failed",
            "when": {
                "any": [
                    {"result": "extract", "at": "/day", "in": [1, 2]},
                    {"verdict": "orders", "in": ["succeeded"]},
                ]
            },
        },
        "tell": {
            "type": "python",
            "handler": "sales.tell",
            "depends_on": ["publish"],
            "rule": "one_failed",
            "handles": ["publish"],
        },
    },
    "finally": {"cleanup": {"type": "script", "payload": {"argv": ["true"]}}},
    "result": {"result": "extract", "at": "/rows"},
}


def sales() -> Workflow:
    flow = Workflow(
        "nightly-sales",
        schedule={"cron": "30 2 * * *", "timezone": "Europe/Berlin"},
        deadline_seconds=14400,
        defaults={"pool": "default", "retry": {"max_retries": 1, "delay_seconds": 30}},
    )
    extract = flow.task("extract", python="sales.extract", payload={"day": 1})
    orders = flow.task(
        "orders", http={"url": "https://example.com/load"}, depends_on=[extract], timeout_seconds=60
    )
    refunds = flow.task(
        "refunds", python="sales.load_refunds", depends_on=[extract.when(at="/refunds", gt=0)], may_fail=True
    )
    publish = flow.task(
        "publish",
        python="sales.publish",
        depends_on=[orders, refunds],
        rule="none_failed",
        when={"any": [extract.result(at="/day", in_=(1, 2)), orders.verdict("succeeded")]},
    )
    flow.task("tell", python="sales.tell", depends_on=[publish], rule="one_failed", handles=[publish])
    flow.finally_task("cleanup", script={"argv": ["true"]})
    flow.result(extract, at="/rows")
    return flow


def parsed(document):
    now = datetime(2030, 1, 1, tzinfo=UTC)
    return parse_job(document, now=now, ledger_floor=datetime(2000, 1, 1, tzinfo=UTC))


# --- Documents ------------------------------------------------------------------------------------


def test_the_document_is_the_one_that_a_person_writes():
    assert sales().document() == WRITTEN
    assert orjson.loads(orjson.dumps(sales().document())) == WRITTEN


def test_the_document_is_accepted_like_the_written_one():
    assert parsed(sales().document()) == parsed(WRITTEN)
    assert checked(sales().document())[0] == WRITTEN


def test_a_document_has_only_what_was_given():
    flow = Workflow()
    flow.task("only", python="a.b")
    assert flow.document() == {"type": "workflow", "tasks": {"only": {"type": "python", "handler": "a.b"}}}


def test_changing_a_document_or_what_was_passed_does_not_change_the_workflow():
    payload = {"day": 1}
    flow = Workflow(labels={"team": "a"})
    flow.task("only", python="a.b", payload=payload)
    payload["day"] = 2
    flow.document()["tasks"]["only"]["payload"]["day"] = 3
    assert flow.document()["tasks"]["only"]["payload"] == {"day": 1}


@pytest.mark.parametrize("kind", ["http", "grpc", "script", "kafka"])
def test_the_payload_of_other_types_is_the_argument_itself(kind):
    flow = Workflow()
    flow.task("only", **{kind: {"x": 1}})
    assert flow.document()["tasks"]["only"] == {"type": kind, "payload": {"x": 1}}


@pytest.mark.parametrize("rule", list(Rule))
def test_every_rule_can_be_written(rule):
    flow = Workflow()
    first = flow.task("first", python="a.b")
    flow.task("second", python="a.b", depends_on=[first], rule=rule.value)
    assert flow.document()["tasks"]["second"]["rule"] == rule.value


def test_finally_tasks_can_depend_on_all_others():
    flow = Workflow()
    first = flow.task("first", python="a.b")
    last = flow.finally_task("last", python="a.b", when=first.verdict("failed", "skipped"))
    flow.finally_task("very_last", python="a.b", depends_on=[last, first.when(exists=True)])
    assert parsed(flow.document()).workflow is not None
    assert flow.document()["finally"]["very_last"]["depends_on"] == [
        "last",
        {"task": "first", "if": {"exists": True}},
    ]


def test_a_dependency_takes_any_condition():
    flow = Workflow()
    first = flow.task("first", python="a.b")
    either = {"any": [{"at": "/a", "eq": None}, {"not": {"at": "/b", "ne": 1}}]}
    flow.task("second", python="a.b", depends_on=[first.when(either)])
    assert flow.document()["tasks"]["second"]["depends_on"] == [{"task": "first", "if": either}]
    assert parsed(flow.document()).workflow is not None


# --- Where it goes --------------------------------------------------------------------------------


def test_clients_send_it_like_the_document_of_any_job():
    sent = []

    def server(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        return httpx.Response(202, json=MADE)

    async def create() -> None:
        async with AsyncClient("https://noonmark.test", KEY, transport=httpx.MockTransport(server)) as client:
            await client.jobs.create(sales().document())

    with Client("https://noonmark.test", KEY, transport=httpx.MockTransport(server)) as client:
        client.jobs.create(sales().document())
    asyncio.run(create())
    assert sent == [WRITTEN, WRITTEN]


# --- Mistakes -------------------------------------------------------------------------------------


def test_a_key_is_used_once_in_tasks_and_finally_together():
    flow = Workflow()
    flow.task("a", python="a.b")
    with pytest.raises(ValueError, match="the workflow has a task 'a' already"):
        flow.task("a", python="a.b")
    with pytest.raises(ValueError, match="the workflow has a task 'a' already"):
        flow.finally_task("a", python="a.b")


@pytest.mark.parametrize("key", ["", "A", "1a", "a b", "a\n", "a" * 64, None])
def test_keys_have_the_form_that_documents_require(key):
    with pytest.raises(ValueError, match="is not the key of a task: use 1 to 63"):
        Workflow().task(key, python="a.b")


def test_tasks_of_another_workflow_are_refused():
    one, other = Workflow("one"), Workflow("other")
    foreign = one.task("a", python="a.b")
    own = other.task("own", python="a.b")
    message = r"'a' is a task of another workflow \(one\)"
    with pytest.raises(ValueError, match=f"task 'b': depends_on: {message}"):
        other.task("b", python="a.b", depends_on=[foreign])
    with pytest.raises(ValueError, match=f"task 'b': depends_on: {message}"):
        other.task("b", python="a.b", depends_on=[foreign.when(exists=True)])
    with pytest.raises(ValueError, match=f"task 'b': handles: {message}"):
        other.task("b", python="a.b", depends_on=[own], handles=[foreign])
    with pytest.raises(ValueError, match=f"result: {message}"):
        other.result(foreign)
    with pytest.raises(ValueError, match="task 'b': when names 'a', which the workflow does not have"):
        other.task("b", python="a.b", depends_on=[own], when=foreign.verdict("failed"))
    # What was refused is not in the workflow.
    assert list(other.document()["tasks"]) == ["own"]


def test_keys_instead_of_tasks_are_refused():
    flow = Workflow()
    flow.task("a", python="a.b")
    with pytest.raises(
        TypeError, match="depends_on: 'a' is not a task; pass what task or finally_task returned"
    ):
        flow.task("b", python="a.b", depends_on=["a"])
    with pytest.raises(TypeError, match="depends_on is not a list of tasks"):
        flow.task("b", python="a.b", depends_on="a")


def test_tasks_are_depended_on_once_and_not_after_finally():
    flow = Workflow()
    first, last = flow.task("first", python="a.b"), flow.finally_task("last", python="a.b")
    with pytest.raises(ValueError, match="depends_on has 'first' twice"):
        flow.task("b", python="a.b", depends_on=[first, first.when(exists=True)])
    with pytest.raises(ValueError, match="depends_on has 'last', a finally task, which runs after all tasks"):
        flow.task("b", python="a.b", depends_on=[last])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "needs one of python, http, grpc, script, kafka; it has none"),
        ({"python": "a.b", "http": {}}, "it has python and http"),
        ({"http": {}, "payload": {}}, "http is its payload; leave out payload"),
        ({"python": "a.b", "handler": "a.b"}, "no such field: handler"),
        ({"python": "a.b", "map": {}, "trigger_rule": ""}, "no such field: map, trigger_rule"),
    ],
)
def test_a_task_has_one_type_and_only_known_fields(fields, message):
    with pytest.raises(TypeError, match=message):
        Workflow().task("a", **fields)


def test_conditions_are_checked_where_they_are_written():
    flow = Workflow()
    first = flow.task("first", python="a.b")
    with pytest.raises(ValueError, match="dependency on 'first': has no test; expected one of eq, ne"):
        first.when(at="/rows")
    with pytest.raises(ValueError, match="has eq and gt"):
        first.when(eq=1, gt=0)
    with pytest.raises(ValueError, match="/at is not a JSON pointer"):
        first.result(at="rows", eq=1)
    with pytest.raises(ValueError, match="pass a condition or a comparison, not both"):
        first.when({"at": "/a", "eq": 1}, gt=0)
    with pytest.raises(ValueError, match="condition on 'first': /in is not a list of verdicts"):
        first.verdict()
    with pytest.raises(
        ValueError, match="dependency on 'first' names 'frist', which the workflow does not have"
    ):
        first.when({"result": "frist", "eq": 1})
    with pytest.raises(ValueError, match="task 'b': when: /result is missing"):
        flow.task("b", python="a.b", when={"at": "/x", "eq": 1})


def test_the_result_is_set_once_and_is_a_pointer():
    flow = Workflow()
    first = flow.task("first", python="a.b")
    with pytest.raises(ValueError, match="result: 'rows' is not a JSON pointer"):
        flow.result(first, at="rows")
    flow.result(first)
    assert flow.document()["result"] == {"result": "first"}
    with pytest.raises(ValueError, match="the result is set already: it is that of 'first'"):
        flow.result(first, at="/rows")


def test_a_workflow_without_tasks_has_no_document():
    with pytest.raises(ValueError, match="the workflow has no tasks"):
        Workflow("empty").document()


@pytest.mark.parametrize("name", ["type", "tasks", "finally", "result"])
def test_fields_that_the_builder_makes_are_refused(name):
    with pytest.raises(ValueError, match=f"the builder makes {name}: use task, finally_task and result"):
        Workflow("a", **{name: {}})
