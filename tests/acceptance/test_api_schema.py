"""schemathesis against a running `noonmark api`: whatever it makes of the OpenAPI document, the answers keep to it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.cluster import Cluster
from tests.support.keys import make_token

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

CONFIG = """
# Fields that are right each by itself may still not fit together (a schedule that never fires, a range that is
# empty, a tag of another version): no schema says that, so such documents may be refused in these ways.
[checks]
positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409, 412, 413, 422, 429, 503]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 429, 431, 503]
"""
LEFT_OUT = (
    # Requests without valid credentials are counted, and refused in another way after a few: the access matrix
    # sends them, to every route.
    "ignored_auth",
)
NOT_CALLED = {
    "events.follow": "its answer does not end",
    "keys.revoke": "it finds the id of the key in use, and revokes it",
}


def without_rules_across_fields(document: dict[str, Any]) -> dict[str, Any]:
    """The document, with a job's fields each by itself: of rules between them nothing can be generated.

    Nor are tasks of workflows, whose fields are those of jobs: every combination of them would be sent to each
    route that takes a job. Tests of the schemas have their own generator.
    """
    job = document["components"]["schemas"]["JobDocument"]
    assert job.pop("if")
    assert job.pop("else")
    for of_workflows in ("tasks", "finally", "defaults"):
        assert job["properties"].pop(of_workflows)
    return document


def run(cluster: Cluster, *options: str, within: float) -> tuple[str, dict[str, int]]:
    """Run schemathesis; return what it says, and the figures of its summary."""
    (node,) = cluster.start("api", api_port="0", api_rate_per_minute="0")
    with psycopg.connect(cluster.dsn, autocommit=True) as connection:
        token = make_token(connection)
    with urllib.request.urlopen(f"{node.api_url}/openapi.json", timeout=30) as answer:
        document = without_rules_across_fields(json.loads(answer.read()))
    file = cluster.folder / "openapi.json"
    file.write_text(json.dumps(document))
    config = cluster.folder / "schemathesis.toml"
    config.write_text(CONFIG)
    command = [
        *(
            str(Path(sys.executable).with_name("schemathesis")),
            "--config-file",
            str(config),
            "run",
            str(file),
        ),
        *("--url", node.api_url, "--header", f"Authorization: Bearer {token}", "--no-color"),
        *("--continue-on-failure", "--exclude-checks", ",".join(LEFT_OUT), "--warnings", "off"),
        *(part for name in NOT_CALLED for part in ("--exclude-operation-id", name)),
        *options,
    ]
    done = subprocess.run(
        command, cwd=cluster.folder, capture_output=True, text=True, timeout=within, check=False
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    assert node.alive
    assert not [line for line in node.lines() if line.get("event") == "request_failed"]
    tested = re.search(r"Tested: (\d+)", done.stdout)
    cases = re.search(r"(\d+) generated", done.stdout)
    assert tested, done.stdout
    assert cases, done.stdout
    return done.stdout, {"tested": int(tested[1]), "cases": int(cases[1])}


def test_the_examples_of_the_document_keep_to_it(noonmark: Cluster):
    """A short look: every operation once or twice, with what the document shows."""
    _, figures = run(noonmark, "--phases", "examples", "--generation-deterministic", within=150)
    assert figures["cases"] > 20


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_whatever_is_generated_from_the_document_is_answered_as_it_says(noonmark: Cluster, capsys):
    """Missing, wrong and odd values for every parameter, body and header; then random ones."""
    shown, figures = run(
        noonmark, "--phases", "examples,coverage,fuzzing", "--max-examples", "20", "--seed", "1", within=840
    )
    with capsys.disabled():
        print(f"\nschemathesis: {figures['tested']} operations, {figures['cases']} cases, no failure")
    assert figures["tested"] >= 60, shown
