"""An upgrade of an installation by docker-compose.yml, from the previous release to this one and back, with work in flight."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.compose import Installation, copy_checkout
from tests.support.doc_blocks import blocks_of, section_commands
from tests.support.engine import Engine
from tests.support.kube import eventually
from tests.support.releases import extract, previous_commit
from tests.support.stand_ins import stand_in_python, stand_ins

pytestmark = pytest.mark.timeout(2400)

PAGE = Path(__file__).parents[2] / "docs" / "docker.md"
HANDLERS = '''
import time

from noonmark.handlers import Context, handler


@handler("mails.send")
def send(ctx: Context) -> None:
    """Send nothing."""


@handler("mails.send_many")
def send_many(ctx: Context) -> None:
    """Take as long as a mailing does."""
    time.sleep(ctx.payload["seconds"])
'''
# Every instant runs, also one that comes due while no trigger is there or the run before it is in flight.
ALL = {"type": "python", "misfire": "fire_all", "overlap": "allow"}
RECURRING = [
    *({"name": f"recurring-{n}", "handler": "mails.send", "schedule": {"every": 1}, **ALL} for n in range(5)),
    {
        "name": "mailing",
        "handler": "mails.send_many",
        "schedule": {"every": 5},
        "payload": {"seconds": 12},
        **ALL,
    },
]
# Until its input ends, jobs that are due on arrival; a broker that is away meanwhile is waited for.
PUBLISH = """
import select, sys
from noonmark.client import Publisher
sent = []
with Publisher("127.0.0.1:29092", sys.argv[1]) as publisher:
    while not select.select([sys.stdin], [], [], 0.2)[0]:
        document = {"name": f"load-{len(sent)}", "type": "python", "handler": "mails.send"}
        sent.append(publisher.publish(document))
    for one in sent:
        one.result()
print(len(sent))
"""
SUBMITTED = "select count(*) from runs join jobs on jobs.id = runs.job_id where jobs.name like 'load-%' and runs.state = 'succeeded'"
SERVICES = ("api", "intake", "trigger", "dispatcher", "worker", "observer", "watchdog")
PER_STEP = 20
"""Runs after which an installation counts as working."""


@dataclass(frozen=True)
class Rehearsal:
    """An installation, and the checkouts of two releases for it.

    Attributes:
        installation: is started from `old`.
        old: checkout of the previous release.
        new: checkout of this one.
    """

    installation: Installation
    old: Path
    new: Path

    def check_out(self, checkout: Path) -> None:
        """Leave the files of a release and those of the operator, as `git checkout` does."""
        for path in self.installation.folder.iterdir():
            if path.is_dir() and path.name != "handlers":
                shutil.rmtree(path)
        shutil.copytree(checkout, self.installation.folder, dirs_exist_ok=True)

    def psql(self, query: str) -> str:
        """Return the only value of a query."""
        command = ("exec", "-T", "postgres", "psql", "-U", "noonmark", "-At", "-c", query)
        return self.installation.compose(*command)

    def count(self, condition: str) -> int:
        """Return the number of runs that meet a condition."""
        return int(self.psql(f"select count(*) from runs where {condition}"))

    def state(self) -> tuple[str, str]:
        """Return the release that the services are of, and the revision of the schema."""
        return self.installation.noonmark("--version"), self.psql("select version_num from alembic_version")

    def works(self) -> None:
        """Wait until runs succeed that were due after the call."""
        now = self.psql("select noonmark_now()")
        succeeded = f"state = 'succeeded' and scheduled_for > '{now}'"
        eventually("runs succeed", lambda: self.count(succeeded) > PER_STEP, seconds=90)

    @contextmanager
    def publishing(self, key: str) -> Iterator[subprocess.Popen[str]]:
        """Publish jobs from this host while the block runs, or until the input of the process has a line."""
        process = subprocess.Popen(
            self.installation.engine.inside(sys.executable, "-c", PUBLISH, key),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait(10)


@pytest.fixture
def rehearsal(engine: Engine, tmp_path: Path) -> Iterator[Rehearsal]:
    """An installation of the previous release that runs, with handlers as the page has them."""
    found = previous_commit()
    if found is None:
        pytest.skip("the history of this checkout does not reach back to the previous release")
    old, new = tmp_path / "old", tmp_path / "new"
    extract(found[1], old)
    copy_checkout(new)
    for checkout in (old, new):
        stand_ins(engine, checkout)
    stand_in_python(engine, (old, new))
    installation = Installation(engine, engine.folder / "installation")
    made = Rehearsal(installation, old, new)
    handlers = installation.folder / "handlers" / "mails"
    handlers.mkdir(parents=True)
    (handlers / "__init__.py").touch()
    (handlers / "jobs.py").write_text(HANDLERS)
    made.check_out(old)
    installation.set_up()
    block = blocks_of(PAGE, "yaml")[0].code
    installation.override(block.removeprefix("services:\n"))
    installation.compose("up", "--detach", "--wait", "--build")
    yield made
    installation.compose("down", "--volumes")


def test_an_upgrade_and_the_way_back_lose_nothing(rehearsal):
    installation = rehearsal.installation
    create_recurring(installation)
    key = re.search(
        r"nmp_\w+",
        installation.noonmark("admin", "key", "create", "load", "--grant", "default=editor", "--signs"),
    )
    assert key is not None
    before = rehearsal.state()

    with rehearsal.publishing(key[0]) as publisher:
        rehearsal.works()
        eventually("a mailing is in flight", lambda: rehearsal.count("state = 'running'"), seconds=60)
        rehearsal.check_out(rehearsal.new)
        for command in section_commands(PAGE, "Upgrade"):
            # The checkout has been done above.
            if not command.startswith("git "):
                installation.compose(*command.split()[2:])
        after = rehearsal.state()
        rehearsal.works()
        rehearsal.check_out(rehearsal.old)
        installation.compose("build")
        installation.compose("up", "--detach", "--no-deps", "--wait", *SERVICES)
        assert rehearsal.state() == (before[0], after[1])
        rehearsal.works()
        rehearsal.check_out(rehearsal.new)
        installation.compose("up", "--detach", "--wait", "--build")
        rehearsal.works()
        sent = int(publisher.communicate("\n", timeout=120)[0])

    installation.noonmark("job", "pause", "--name", "*", "--yes")
    eventually("every run has ended", lambda: rehearsal.count("finished_at is null") == 0, seconds=120)
    assert before[0] != after[0] == rehearsal.state()[0]
    assert int(rehearsal.psql(SUBMITTED)) == sent
    assert rehearsal.count("state <> 'succeeded'") == 0
    assert rehearsal.psql("select sum(losses) from runs") == "0"
    assert "all promises kept" in installation.noonmark("verify", "--instants", "--rate", "1")


def create_recurring(installation: Installation) -> None:
    """Create the recurring jobs from this host, through the API."""
    done = subprocess.run(
        installation.engine.inside(
            sys.executable, "-m", "noonmark.cli.main", "job", "apply", "--yes", "--file=-"
        ),
        check=False,
        input=json.dumps({"jobs": RECURRING}),
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "NOONMARK_API_URL": "http://127.0.0.1:8080",
            "NOONMARK_API_KEY": installation.noonmark("admin", "bootstrap"),
        },
    )
    assert done.returncode == 0, done.stderr
