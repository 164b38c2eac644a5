"""An installation with one of everything, and keys of every kind, for tests that go through all routes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import psycopg
from fastapi.routing import APIRoute
from tests.integration.store.world import TOPICS, World, outcome
from tests.support.asgi import Caller
from tests.support.keys import make_token

from noonmark.api.app import build_api
from noonmark.api.http.route_list import routes_of
from noonmark.core.access.roles import Permission
from noonmark.core.states import RunState
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.store.runs import finish

HOME = "tests"
ELSEWHERE = "elsewhere"
ROUTES: dict[tuple[str, str], APIRoute] = dict(routes_of(build_api()))

JOB = {
    "namespace": HOME,
    "type": "http",
    "schedule": "0 9 * * 1",
    "payload": {"url": "https://example.com/"},
}


@dataclass
class Scene:
    """The installation: `places` holds, by kind of path, values of parameters that lead to objects."""

    call: Caller
    world: World
    keys: dict[str, str] = field(default_factory=dict)
    places: dict[str, dict[str, Any]] = field(default_factory=dict)
    workflow: UUID | None = None

    def admin(self, method: str, target: str, body: Any = None) -> Any:
        """Call as an admin of the platform; return the JSON of the answer, which must be a success."""
        answer = self.call(method, target, key=self.keys["platform"], body=body)
        assert answer.status in {200, 201, 202, 204}, (method, target, answer.body)
        return answer.json() if answer.body else None

    def job(self, name: str) -> str:
        """Make a recurring job; return its id."""
        return str(self.admin("POST", "/v1/jobs", {**JOB, "name": name})["id"])

    def dead_run(self, job_id: str, request_id: str = "") -> UUID:
        """A run of a job whose attempts are used up."""
        worker = self.world.worker()
        run_id = self.world.put_run(job_id=UUID(job_id), request_id=request_id)
        (started,) = self.world.start(worker, [run_id])
        with self.world.db.transaction():
            failed = outcome(started, RunState.DEAD, reason="retries_exhausted", error="no")
            finish.record(self.world.db, worker, TOPICS, [failed], [], shards=4)
        return run_id

    def waiting_run(self, job_id: str, request_id: str = "w") -> UUID:
        """A run that waits; nobody asks Kafka why."""
        return self.world.put_run("waiting", job_id=UUID(job_id), request_id=request_id, reason="paused")

    def workflow_run(self) -> UUID:
        """A run of a workflow that no trigger has opened."""
        task = {"type": "python", "handler": "tests.noop"}
        document = {
            "namespace": HOME,
            "type": "workflow",
            "name": "flow",
            "schedule": "0 9 * * 1",
            "tasks": {"a": task},
        }
        job_id = self.admin("POST", "/v1/jobs", document)["id"]
        return self.world.put_run("waiting", job_id=UUID(job_id), reason="paused", pool=WORKFLOW_POOL)

    def open_workflow_run(self) -> UUID:
        """A run of a workflow whose task has not ended."""
        run_id = self.workflow or self.workflow_run()
        self.world.db.execute(
            "update runs set state = 'running', reason = null, owner = -1, started_at = now() where id = %s",
            [run_id],
        )
        self.world.db.execute(
            "insert into workflows select id, scheduled_for, job_id, job_version, shard, 1, '\\x00', '', now()"
            " from runs where id = %s on conflict do nothing",
            [run_id],
        )
        return run_id

    def places_of(self, path: str) -> dict[str, Any]:
        """Values of the parameters of a path that lead to objects."""
        if path.endswith(("/tasks", "/graph")):
            return {"run_id": self.workflow}
        kind = path.split("/")[2] if path.startswith("/v1/") else path.split("/")[1]
        return self.places.get(kind, {})

    def backfill(self, job_id: str) -> str:
        """Past instants of a job, asked for."""
        now = self.world.now()
        gap = {"from": (now - timedelta(days=8)).isoformat(), "until": now.isoformat()}
        return str(self.admin("POST", f"/v1/jobs/{job_id}/backfills", gap)["id"])

    def plant(self) -> None:
        """Make one object of every kind."""
        job_id = self.job("one")
        waiting = self.waiting_run(job_id)
        self.workflow = self.workflow_run()
        self.places = {
            "jobs": {"job_id": job_id, "version": 1},
            "runs": {"run_id": waiting},
            "executions": {"run_id": waiting},
            "dead-letters": {"run_id": self.dead_run(job_id)},
            "backfills": {"backfill_id": self.backfill(job_id)},
            "schemas": {"name": "job"},
            "namespaces": {"name": HOME},
            "keys": {"key_id": make_token(self.world.db, "viewer", HOME).split("_")[1]},
            "rejections": {"rejection_id": self.rejection()},
            "alerts": {"alert_id": self.alert()},
        }
        for what, body in (("calendars", {"dates": ["2026-12-25"]}), ("limits", {"max_running": 3})):
            if ("PUT", f"/v1/{what}/{{name}}") in ROUTES:
                self.admin("PUT", f"/v1/{what}/one?namespace={HOME}", body)
                self.places[what] = {"name": "one"}

    def alert(self) -> UUID:
        """Something that the observer found wrong."""
        found: UUID = self.world.value(
            "insert into alerts (fingerprint, kind, severity, namespace, summary, raised_at, seen_at)"
            " values ('late:x', 'late', 'warning', %s, 'has not started', now(), now()) returning id",
            HOME,
        )
        return found

    def rejection(self) -> int:
        """A submission that was not taken."""
        found: int = self.world.value(
            "insert into rejections (received_at, topic, partition, record_offset, reason, errors, truncated)"
            " values (now(), 't', 0, 0, 'invalid', '[]', false) returning id"
        )
        return found


def target_of(scene: Scene, method: str, path: str, **instead: Any) -> str:
    """The path with ids of objects that exist, or others; where it can, it names the namespace."""
    values = {**scene.places_of(path), **instead}
    target = re.sub(r"\{(\w+)\}", lambda found: str(values[found[1]]), path)
    route = ROUTES[method, path]
    names = {parameter.alias for parameter in route.dependant.query_params}
    query: dict[str, Any] = {"namespace": HOME} if "namespace" in names else {}
    if path.endswith("/diff"):
        query |= {"from": 1, "to": 1}
    return f"{target}?{urlencode(query)}" if query else target


def plant_keys(db: psycopg.Connection) -> dict[str, str]:
    """Keys of every role in the namespace, of others, and some that are none."""
    keys = {"garbage": "garbage", "no key": f"nmk_{'a' * 12}_{'A' * 43}"}
    keys |= {role: make_token(db, role, HOME) for role in ("viewer", "operator", "editor", "admin")}
    keys["platform"] = make_token(db)
    keys["stranger"] = make_token(db, "admin", ELSEWHERE)
    keys["scoped"] = make_token(db, "admin", HOME, scopes=frozenset({Permission.JOBS_READ}))
    keys["scoped platform"] = make_token(db, scopes=frozenset({Permission.RUNS_READ}))
    keys["expired"] = make_token(db, lives_seconds=60)
    db.execute("update api_keys set expires_at = now() - interval '1 s' where expires_at is not null")
    keys["revoked"] = make_token(db)
    db.execute("update api_keys set revoked_at = now() where key_id = %s", [keys["revoked"].split("_")[1]])
    return keys
