"""Requests of an admin client that end the process: a bug of librdkafka, which we avoid."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
# A broker that answers "not coordinator" to it ends the process by SIGSEGV (noonmark.kafka.lag.group_offsets).
DEADLY = re.compile(r"\.list_consumer_group_offsets\(")


def test_no_admin_client_asks_for_the_offsets_of_a_group():
    folders = ("services", "shared", "schemas", "tests", "benchmarks", "examples")
    found = [
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if DEADLY.search(path.read_text(encoding="utf-8"))
    ]
    assert found == [], "use noonmark.kafka.lag.group_offsets.GroupOffsets, or tests.support.commits.Commits"
