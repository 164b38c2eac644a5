"""Every credential of an installation, used rightly and wrongly everywhere: none is found in any place it may not be."""

from __future__ import annotations

import base64
import json
import re
import secrets
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, quote_plus

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.support.cluster import SERVICES, Cluster
from tests.support.keys import make_token

from noonmark.api.app import build_api
from noonmark.api.http.route_list import routes_of
from noonmark.client import Publisher

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.slow]

MUST_BE_KEPT = {
    # Signatures are checked with the key itself: an HMAC has no other way. Only the owner of the tables may
    # read the column (tests/integration/auth).
    ("table api_keys", "signing key"),
}
"""(place, credential): everywhere else there must be nothing."""


class Target(ThreadingHTTPServer):
    """A service that takes its time: it answers 202 and keeps the token of each call; below /500 it fails."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.calls: list[dict[str, str]] = []


class _Answer(BaseHTTPRequestHandler):
    server: Target

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = str(self.headers).encode() + body
        self.server.calls.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(500 if self.path == "/500" else 202)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def target() -> Iterator[Target]:
    made = Target()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def traces(secret: str | bytes) -> set[str]:
    """The forms in which a secret could stand somewhere, without the ends that padding changes."""
    data = secret if isinstance(secret, bytes) else secret.encode()
    coded = base64.b64encode(data).decode().rstrip("=")[:-1]
    inside = base64.b64encode(b"user:" + data).decode()[8:-4]
    found = {data.hex(), coded, inside, coded.replace("+", "-").replace("/", "_")}
    if isinstance(secret, str):
        found |= {secret, secret[:20], quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]}
    return {trace for trace in found if len(trace) >= 12}


def test_no_credential_is_found_where_it_need_not_be(noonmark: Cluster, target: Target, capsys):
    vault = noonmark.folder / "secrets" / HOME
    vault.mkdir(parents=True)
    used = {"secret reference": f"c4nary-reference-{secrets.token_hex(12)}"}
    (vault / "canary").write_text(used["secret reference"])
    quiet = {"log_level": "debug", "secrets_dir": str(vault.parent)}
    noonmark.start(*SERVICES, **quiet)
    (node,) = noonmark.start("api", api_port="0", api_rate_per_minute="0", **quiet)
    if password := conninfo_to_dict(noonmark.dsn).get("password"):
        used["database password"] = str(password)
    with psycopg.connect(noonmark.dsn, autocommit=True) as connection:
        admin = make_token(connection)
    used["API key"] = admin.rpartition("_")[2]
    with httpx.Client(base_url=node.api_url, headers={"Authorization": f"Bearer {admin}"}, timeout=30) as api:
        used |= use_keys(noonmark, api)
        used |= use_callback(noonmark, api, target)
        fail_at_work(noonmark, api, target)
        places = everything(noonmark, api)
    found = {
        (place, name)
        for place, text in places.items()
        for name, secret in used.items()
        if any(trace in text for trace in traces(secret))
        or (name == "signing key" and any(trace in text for trace in traces(bytes.fromhex(secret))))
    }
    assert found == MUST_BE_KEPT
    with capsys.disabled():
        size = sum(map(len, places.values()))
        print(
            f"\ncredentials: {len(used)} searched for in {len(places)} places, {size:,} characters:"
            f" {len(found - MUST_BE_KEPT)} hits, and {len(MUST_BE_KEPT)} where it must be kept"
        )


HOME = "vault"
FORGED = f"nmk_forgedforged_{'F0rgedC4nary'}{secrets.token_hex(16)}"[:60]


def use_keys(noonmark: Cluster, api: httpx.Client) -> dict[str, str]:
    """Make keys; use them, wrong ones and ended ones in every place where somebody could put one."""
    made = api.post("/v1/keys", json={"name": "shop", "grants": {HOME: "editor"}, "signs": True})
    assert made.status_code == 201, made.text
    token, signing_key = made.json()["token"], made.json()["signing_key"]
    job = {"name": "signed", "type": "python", "handler": "tests.noop", "namespace": HOME}
    kafka = noonmark.bootstrap
    with Publisher(kafka, signing_key, namespace=HOME, topic=noonmark.topics.submissions) as publisher:
        publisher.publish(job).result(20)
        publisher.publish({**job, "schedul": "* * * * *"}).result(20)
        publisher.publish({**job, "namespace": "elsewhere"}).result(20)
    wrong = signing_key[:-8] + "00000000"
    with Publisher(kafka, wrong, namespace=HOME, topic=noonmark.topics.submissions) as publisher:
        publisher.publish(job).result(20)
    noonmark.wait(
        lambda: noonmark.value("select count(*) from rejections") >= 3, "intake to refuse three events"
    )
    forged = {"Authorization": f"Bearer {FORGED}"}
    shop = {"Authorization": f"Bearer {token}"}
    for headers, status in ((forged, 401), ({"Authorization": f"Basic {token}"}, 401), (shop, 200)):
        assert api.get("/v1/jobs", params={"namespace": HOME}, headers=headers).status_code == status
    assert api.get("/v1/jobs", params={"api_key": token}, headers={"Authorization": ""}).status_code == 401
    assert api.get(f"/v1/jobs/{token}").status_code == 404
    assert api.post("/v1/jobs", json={"type": "http"}, headers=shop).status_code in {404, 422}
    assert api.post("/v1/namespaces/elsewhere/pause", headers=shop).status_code == 403
    assert api.delete("/v1/keys/" + made.json()["key_id"]).status_code == 204
    secret = signing_key.rpartition("_")[2]
    return {
        "revoked key": token.rpartition("_")[2],
        "forged key": FORGED.rpartition("_")[2],
        "signing key": secret,
    }


def use_callback(noonmark: Cluster, api: httpx.Client, target: Target) -> dict[str, str]:
    """Let a target report, first with a wrong token."""
    url = f"http://127.0.0.1:{target.server_port}/202"
    payload = {"url": url, "body": {"token": "secret://canary"}, "callback": {"timeout_seconds": 600}}
    made = api.post("/v1/jobs", json={"name": "film", "type": "http", "namespace": HOME, "payload": payload})
    assert made.status_code == 202, made.text
    noonmark.wait(lambda: target.calls, "the call")
    run_id, token = target.calls[0]["webhook-id"], target.calls[0]["noonmark-callback-token"]
    waits = "select count(*) from runs where id = %s and state = 'running' and owner = 0"
    noonmark.wait(lambda: noonmark.value(waits, run_id), "the run to wait for its report")
    wrong = token[:-6] + ("AAAAAA" if token[-6:] != "AAAAAA" else "BBBBBB")
    report = {"outcome": "succeeded", "result": {"seconds": 3}}
    for said, status in ((wrong, {409}), (token, {200}), (token, {200, 409})):
        answer = httpx.post(f"{api.base_url}/v1/runs/{run_id}/complete", json={**report, "token": said})
        assert answer.status_code in status, answer.text
    return {"callback token": token}


def fail_at_work(noonmark: Cluster, api: httpx.Client, target: Target) -> None:
    """A job whose target fails and says back all that it was told."""
    payload = {
        "url": f"http://127.0.0.1:{target.server_port}/500",
        "headers": {"X-Token": "Bearer ${secret://canary}"},
        "body": {"token": "secret://canary"},
        "keep_body": True,
    }
    job = {"name": "fails", "type": "http", "namespace": HOME, "payload": payload, "max_retries": 0}
    assert api.post("/v1/jobs", json=job).status_code == 202
    noonmark.wait(lambda: noonmark.value("select count(*) from dead_letters"), "the dead letter")


def everything(noonmark: Cluster, api: httpx.Client) -> dict[str, str]:
    """All that can be read afterwards, by place."""
    return {**answers(noonmark, api), **records(noonmark), **logs(noonmark), **tables(noonmark)}


def logs(noonmark: Cluster) -> dict[str, str]:
    return {f"log of {node.name}": node.log_file.read_text(encoding="utf-8") for node in noonmark.nodes}


def tables(noonmark: Cluster) -> dict[str, str]:
    """Every row of every table, as Postgres writes it out; bytes in hex, and as the text they may be."""
    names = noonmark.rows(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
    )
    found = {}
    for (name,) in names:
        text = "\n".join(row[0] for row in noonmark.rows(f'select t::text from "{name}" as t'))
        as_text = [
            bytes.fromhex(code).decode("utf-8", "replace")
            for code in re.findall(r"\\x((?:[0-9a-f]{2})+)", text)
        ]
        found[f"table {name}"] = "\n".join([text, *as_text])
    assert {"table audit_log", "table api_keys", "table rejections", "table runs"} <= {
        name if not name.startswith("table runs_") else "table runs" for name in found
    }
    return found


def records(noonmark: Cluster) -> dict[str, str]:
    found: dict[str, str] = {}
    for message in noonmark.kafka.read(noonmark.kafka.topics()):
        parts = [message.key(), message.value(), *(value for _, value in message.headers() or [])]
        text = "\n".join((part or b"").decode("utf-8", "backslashreplace") for part in parts)
        place = f"topic {message.topic()}"
        found[place] = f"{found.get(place, '')}\n{text}"
    return found


def answers(noonmark: Cluster, api: httpx.Client) -> dict[str, str]:
    """What every route that reads answers a platform admin about everything there is."""
    ids = {
        "job_id": [str(row[0]) for row in noonmark.rows("select id from jobs")],
        "run_id": [str(row[0]) for row in noonmark.rows("select id from runs")],
        "rejection_id": [str(row[0]) for row in noonmark.rows("select id from rejections")],
        "key_id": [row[0] for row in noonmark.rows("select key_id from api_keys")],
        "version": ["1"],
        "backfill_id": ["0197a2b4-1111-7000-8000-000000000001"],
    }
    found = {}
    for method, path in dict(routes_of(build_api())):
        if method != "GET" or path == "/v1/events":
            continue
        names = re.findall(r"\{(\w+)\}", path)
        values = ids.get(names[0] if names else "", ["job", HOME] if names else [""])
        for value in values:
            filled = path.replace("{version}", "1")
            filled = re.sub(r"\{\w+\}", value, filled)
            answer = api.get(filled, params={"namespace": HOME, "ended": "true", "from": 1, "to": 1})
            assert answer.status_code < 500, (filled, answer.text)
            found[f"GET {path}"] = found.get(f"GET {path}", "") + answer.text + str(answer.headers)
    return found
