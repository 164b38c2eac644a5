"""Submissions on Kafka are authorised: by a publisher's key, or by the topic they come by; else they are refused."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import orjson
import psycopg
import pytest
from tests.integration.intake.line import LATER, Line
from tests.support.cli import call

from noonmark.auth.key_issuing import issue_key
from noonmark.client import Published, Publisher
from noonmark.core.access.roles import Principal, Role
from noonmark.core.access.submission_signature import PublisherKey, SignedEvent, signature_header
from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.topics import PartitionCounts
from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, render_structured
from noonmark.schemas.events.submissions import CREATE
from noonmark.store.access.api_keys import NewKey

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

ROOT = Principal("local:tests", "tests", platform=True)


def key_for(url: str, namespace: str, role: Role = Role.EDITOR) -> PublisherKey:
    """Make a publisher's key as an administrator does."""
    with psycopg.connect(url) as connection:
        wanted = NewKey(f"publisher of {namespace}", {namespace: role}, signs=True)
        issued = issue_key(connection, ROOT, wanted)
    assert issued.signing_key is not None
    return issued.signing_key


class Parties:
    """Two tenants with a key each, a topic of the first, and nothing that is bound but that."""

    def __init__(self, line: Line, bootstrap: str) -> None:
        self.line = line
        self.bootstrap = bootstrap
        self.own_topic = f"{line.topics.prefix}.submissions.acme"
        specs = line.topics.submission_specs([self.own_topic], counts=PartitionCounts(submissions=1))
        ensure_topics(KafkaConfig(bootstrap), specs)
        self.keys = {name: key_for(line.url, name) for name in ("acme", "lab")}
        # A bound topic that nobody has made yet keeps nothing else from being read.
        self.env = {"NOONMARK_BOUND_TOPICS": f"{self.own_topic}=acme,{line.topics.prefix}.missing=lab"}

    def publisher(self, key: str | None, namespace: str, topic: str | None = None) -> Publisher:
        return Publisher(
            self.bootstrap,
            self.keys[key].text if key else None,
            namespace=namespace,
            topic=topic or self.line.topics.submissions,
            source="/tests",
        )

    def outcome(self, event_id: str) -> str:
        """Wait for what becomes of an event: `job`, or why it was refused."""
        found: list[str] = []

        def there() -> bool:
            refused = self.line.rows(f"select reason from rejections where event_id = '{event_id}'")
            taken = self.line.rows(f"select from inbox where event_id = '{event_id}'")
            found[:] = [row["reason"] for row in refused] or ["job"] * len(taken)
            return bool(found)

        self.line.wait(there, f"a verdict on {event_id}")
        return found[0]

    def problem(self, event_id: str) -> dict[str, Any]:
        (row,) = self.line.rows(f"select errors from rejections where event_id = '{event_id}'")
        (problem,) = row["errors"]
        return dict(problem)


@pytest.fixture
def parties(line: Line, kafka_server: Any) -> Parties:
    return Parties(line, kafka_server.bootstrap)


def job(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "python", "handler": "tests.noop", "name": name, "run_at": LATER, **data}


def test_each_tenant_acts_in_its_own_namespace_and_nobody_without_a_credential(
    parties: Parties, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    line = parties.line
    with (
        parties.publisher("acme", "acme") as acme,
        parties.publisher("lab", "lab") as lab,
        parties.publisher("lab", "acme") as forger,
        parties.publisher(None, "acme") as unsigned,
        parties.publisher(None, "acme", parties.own_topic) as own_topic,
        line.intake(**parties.env),
    ):
        placed = acme.publish(job("theirs"), event_id="theirs").result(30)
        assert isinstance(placed, Published)
        assert placed.topic == line.topics.submissions
        assert parties.outcome("theirs") == "job"
        (theirs,) = line.rows("select id, namespace, state from jobs where name = 'theirs'")
        assert theirs["namespace"] == "acme"

        lab.publish(job("mine"), event_id="mine")
        lab.publish(job("x", namespace="acme"), event_id="document of another")
        forger.publish(job("x"), event_id="signed for another")
        unsigned.publish(job("x"), event_id="unsigned")
        lab.pause(theirs["id"], event_id="by id")
        lab.pause(nobody := uuid4(), event_id="by random id")
        own_topic.publish(job("by topic"), event_id="by topic")
        own_topic.publish(job("x", namespace="lab"), event_id="topic of another")
        # Source and id are unique in a namespace: nobody uses up the names of somebody else's events.
        lab.publish(job("same id"), event_id="theirs")
        _replay(line, parties.keys["acme"])
        _expired(line, parties.keys["acme"])
        for publisher in (lab, forger, unsigned, own_topic):
            publisher.flush()
        line.flush()
        verdicts = {
            "mine": "job",
            "document of another": "unauthorised",
            "signed for another": "unauthorised",
            "unsigned": "unauthorised",
            "by id": "not_found",
            "by random id": "not_found",
            "by topic": "job",
            "topic of another": "unauthorised",
            "replayed": "job",
            "expired": "unauthorised",
        }
        assert {event_id: parties.outcome(event_id) for event_id in verdicts} == verdicts
        _submit_by_command(line, parties, monkeypatch, tmp_path)
        assert parties.outcome("by command") == "job"
        _run_the_pages_examples(parties, monkeypatch)
        # The client's, the order after it, which finds no such job, and that of a plain client.
        for event_id in ("order-42", "order-43"):
            assert parties.outcome(event_id) == "job"
        line.wait(lambda: line.committed() == 15, "the commit of every offset")

    _same_answer(parties, theirs["id"], nobody)
    names = {(row["namespace"], row["name"]) for row in line.rows("select namespace, name from jobs")}
    assert names == {
        *(("acme", name) for name in ("theirs", "by topic", "replayed", "by command", "welcome-mail")),
        *(("lab", name) for name in ("mine", "same id")),
    }
    assert line.rows("select from jobs where state = 'paused'") == []
    _audited(parties, theirs["id"])


def _signed(event_id: str, key: PublisherKey, age: timedelta) -> tuple[bytes, Any]:
    value = render_structured(id=event_id, source="/tests", type=CREATE, data=job(event_id))
    event = SignedEvent("/tests", event_id, CREATE, None, value)
    at = time.time() - age.total_seconds()
    return value, [*STRUCTURED_HEADERS, signature_header(key, event, namespace="acme", now=at)]


def _replay(line: Line, key: PublisherKey) -> None:
    value, headers = _signed("replayed", key, timedelta())
    line.publish(value, headers)
    line.publish(value, headers, key=b"other")


def _expired(line: Line, key: PublisherKey) -> None:
    value, headers = _signed("expired", key, timedelta(days=1))
    line.publish(value, headers)


def _submit_by_command(line: Line, parties: Parties, monkeypatch: pytest.MonkeyPatch, folder: Any) -> None:
    event = {"specversion": "1.0", "id": "by command", "source": "/tests", "type": CREATE}
    (folder / "job.json").write_bytes(orjson.dumps({**event, "data": job("by command")}))
    for name, value in line.env.items():
        if name.startswith("NOONMARK_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("NOONMARK_PUBLISHER_KEY", parties.keys["acme"].text)
    said = call("submit", str(folder / "job.json"), "--namespace", "acme")
    assert parties.keys["acme"].secret.hex() not in said.stdout + said.stderr
    monkeypatch.delenv("NOONMARK_PUBLISHER_KEY")


def _run_the_pages_examples(parties: Parties, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "events.md").read_text()
    section = page[page.index("## Who may publish") : page.index("## Submissions\n")]
    monkeypatch.setenv("NOONMARK_PUBLISHER_KEY", parties.keys["acme"].text)
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for block in blocks:
        code = block.replace("localhost:9092", parties.bootstrap)
        # The topics of a test have a prefix of their own; the client is told here, as an application would.
        code = code.replace(
            'namespace="acme")', f'namespace="acme", topic="{parties.line.topics.submissions}")'
        )
        exec(code.replace('"noonmark.submissions"', f'"{parties.line.topics.submissions}"'), {})


def _same_answer(parties: Parties, theirs: UUID, nobody: UUID) -> None:
    other, random = parties.problem("by id"), parties.problem("by random id")
    assert other["message"].replace(str(theirs), "ID") == random["message"].replace(str(nobody), "ID")
    assert {**other, "message": ""} == {**random, "message": ""}


def _audited(parties: Parties, theirs: UUID) -> None:
    rows = parties.line.rows("select * from audit_log order by id")
    told = [(row["actor"], row["action"], row["outcome"], row["request_id"], row["object"]) for row in rows]
    acme, lab = (f"key:{parties.keys[name].key_id}" for name in ("acme", "lab"))
    assert told[0] == (acme, "job.create", "done", "theirs", f"job:{theirs}")
    assert sorted(one[:4] for one in told) == sorted(
        [
            (acme, "job.create", "done", "theirs"),
            (acme, "job.create", "done", "replayed"),
            (acme, "job.create", "done", "by command"),
            (acme, "job.create", "done", "order-42"),
            (acme, "job.create", "done", "order-43"),
            (acme, "job.pause", "failed", told[-2][3]),
            (lab, "job.create", "done", "mine"),
            (lab, "job.create", "done", "theirs"),
            (lab, "job.create", "denied", "document of another"),
            (lab, "job.create", "denied", "signed for another"),
            (lab, "job.pause", "failed", "by id"),
            (lab, "job.pause", "failed", "by random id"),
        ]
    )
    assert {row["namespace"] for row in rows} == {"acme", "lab", None}
    assert all(row["address"].startswith(parties.line.topics.submissions) for row in rows)
