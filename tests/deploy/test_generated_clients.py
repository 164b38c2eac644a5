"""Code generators read the OpenAPI document completely, and what they make calls the API; AsyncAPI's own parser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest
from tests.support.cluster import Cluster, cluster
from tests.support.deploy_tools import HERE, tool
from tests.support.keys import make_token
from tests.support.stack import Kafka

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.timeout(600)]

DOCUMENTS = Path(__file__).parents[2] / "schemas" / "json"
OPENAPI = DOCUMENTS / "openapi.json"
OPERATIONS = [
    operation["operationId"]
    for item in json.loads(OPENAPI.read_bytes())["paths"].values()
    for operation in item.values()
]
NOTICES = (
    # About every document of version 3.1.
    "OpenAPI 3.1 support is still in beta",
    # About every object that is closed: the generator takes `additionalProperties: false` for a nameless schema.
    "Failed to get the schema name: null",
    # Problem documents are application/problem+json.
    "No application/json content media type found in response",
    # Query parameters that are words of the language; what is generated has another name for them.
    "(reserved word) cannot be used as",
    "(model name matches existing language type) cannot be used as a model name",
    "Ignoring complex example on request body",
)
"""What openapi-generator says about itself and not about the document."""

PYTHON_CALLS = """
import sys
from generated import AuthenticatedClient
from generated.api.jobs import jobs_create, jobs_list, jobs_read, jobs_replace
from generated.models import Job, JobDocument, JobMade, JobPage, Problem, RetryDocument, ScheduleDocument
from generated.models.job_document_labels import JobDocumentLabels

api = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])


def document(name: str, schedule: ScheduleDocument | str) -> JobDocument:
    labels = JobDocumentLabels()
    labels["team"] = "billing"
    return JobDocument(
        type_="http",
        name=name,
        schedule=schedule,
        retry=RetryDocument(max_retries=5, delay_seconds=10),
        labels=labels,
        payload={"url": "https://internal.example.com/send"},
    )


weekly = ScheduleDocument(cron="0 9 * * 1", timezone="Europe/Berlin")
made = jobs_create.sync(client=api, body=document("from-python", weekly))
assert isinstance(made, JobMade), made
assert made.created

answer = jobs_read.sync_detailed(made.id, client=api)
assert isinstance(answer.parsed, Job), answer
assert answer.parsed.document["labels"] == {"team": "billing"}
tag = answer.headers["ETag"]

assert isinstance(jobs_create.sync(client=api, body=document("from-python-2", weekly)), JobMade)
names: list[str | None] = []
page = jobs_list.sync(client=api, limit=1)
while True:
    assert isinstance(page, JobPage), page
    names += [job.name for job in page.items]
    if not isinstance(page.next_cursor, str):
        break
    page = jobs_list.sync(client=api, limit=1, cursor=page.next_cursor)
assert sorted(str(name) for name in names) == ["from-python", "from-python-2"], names

changed = document("from-python", weekly)
changed.owner = "billing"
replaced = jobs_replace.sync(made.id, client=api, body=changed, if_match=tag)
assert isinstance(replaced, Job) and replaced.version == 2, replaced
stale = jobs_replace.sync(made.id, client=api, body=changed, if_match=tag)
assert isinstance(stale, Problem) and stale.status == 412, stale
again = JobDocument.from_dict(replaced.document.to_dict())
kept = jobs_replace.sync(made.id, client=api, body=again)
assert isinstance(kept, Job) and kept.version == 2, kept

bad = jobs_create.sync(client=api, body=document("bad", "61 * * * *"))
assert isinstance(bad, Problem) and bad.status == 422, bad
assert bad.errors and bad.errors[0].pointer.startswith("/schedule"), bad
print("ok")
"""


def output(command: Sequence[str | Path], folder: Path, **more: str) -> str:
    """Run a command that must succeed; return what it printed, in both streams."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8_000:]
    return done.stdout


@pytest.fixture
def api(
    database_url: str, kafka_server: Kafka, topic_prefix: str, tmp_path: Path
) -> Iterator[tuple[str, str]]:
    """Address of a running API, and a platform admin's key."""
    made: Cluster
    with cluster(database_url, kafka_server.bootstrap, topic_prefix, tmp_path) as made:
        (node,) = made.start("api", api_port="0", api_rate_per_minute="0")
        with psycopg.connect(made.dsn, autocommit=True) as connection:
            yield node.api_url, make_token(connection)


@pytest.fixture
def node_folder(tmp_path: Path) -> Path:
    """A folder in which Node finds the packages of the tests."""
    packages = tool("node-packages")
    tool("node")
    folder = tmp_path / "node"
    folder.mkdir()
    shutil.copy(packages / "package.json", folder)
    (folder / "node_modules").symlink_to(packages / "node_modules")
    return folder


def test_the_python_generator_makes_every_operation_and_its_client_calls_the_api(api, tmp_path):
    packages = {"PYTHONPATH": str(tool("openapi-python-client"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    generate = ["-m", "openapi_python_client", "generate", "--path", OPENAPI, "--output-path"]
    said = output([sys.executable, *generate, "generated", "--meta", "none"], tmp_path, **packages, PATH=path)

    assert said.split() == ["Generating", "generated"], said
    modules = [
        file.stem for file in (tmp_path / "generated" / "api").glob("*/*.py") if file.stem != "__init__"
    ]
    assert sorted(modules) == sorted(re.sub(r"[^a-z_]", "_", name) for name in OPERATIONS)

    (tmp_path / "calls.py").write_text(PYTHON_CALLS)
    # The generator's own module for connections is written for another release of the checker.
    settings = tmp_path / "mypy.ini"
    settings.write_text(
        "[mypy]\nstrict = True\nwarn_redundant_casts = False\n[mypy-generated.client]\nignore_errors = True\n"
    )
    output([sys.executable, "-m", "mypy", "--config-file", settings, "calls.py"], tmp_path, **packages)
    assert output([sys.executable, "calls.py", *api], tmp_path, **packages).split() == ["ok"]


def test_the_types_for_typescript_fit_what_the_api_answers(api, node_folder):
    modules = node_folder / "node_modules"
    said = output(["node", modules / "openapi-typescript/bin/cli.js", OPENAPI, "-o", "api.ts"], node_folder)
    assert not re.search(r"warn|error|skip", said, re.IGNORECASE), said

    shutil.copy(HERE / "node" / "calls.ts", node_folder)
    options = ["--strict", "--noUncheckedIndexedAccess", "--module", "nodenext", "--target", "es2022"]
    output(["node", modules / "typescript/bin/tsc", *options, "--outDir", "out", "calls.ts"], node_folder)
    assert output(["node", "out/calls.js", *api], node_folder).split() == ["ok"]


@pytest.mark.parametrize("language", ["java", "go", "typescript-fetch"])
def test_the_generator_of_many_languages_has_nothing_to_say_about_the_document(language, tmp_path):
    archive = tool("openapi-generator.jar")
    said = output(
        ["java", "-jar", archive, "generate", "-g", language, "-i", OPENAPI, "-o", tmp_path / "made"],
        tmp_path,
    )

    told = [line for line in said.splitlines() if re.search(r"\b(WARN|ERROR)\b", line)]
    assert [line for line in told if not any(notice in line for notice in NOTICES)] == []
    text = "".join(
        file.read_text()
        for file in (tmp_path / "made").rglob("*.*")
        if file.suffix in {".java", ".go", ".ts"}
    )
    for name in OPERATIONS:
        wanted = re.sub(r"[^a-z]", "", name)
        assert re.search(rf"\b{wanted}\(", text, re.IGNORECASE), name


def test_the_asyncapi_document_passes_its_parser_alone(node_folder):
    shutil.copy(HERE / "node" / "parse_asyncapi.mjs", node_folder)
    alone = node_folder / "asyncapi.json"
    shutil.copy(DOCUMENTS / "asyncapi.json", alone)
    said = json.loads(output(["node", "parse_asyncapi.mjs", alone], node_folder))

    assert [found for found in said["diagnostics"] if found["code"] != "asyncapi-latest-version"] == []
    assert set(said["messages"]) == json.loads(alone.read_bytes())["components"]["messages"].keys()
    # Each payload is the event, with its attributes and its data.
    assert min(said["fields"]) >= 8
