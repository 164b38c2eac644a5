"""docs/rights.md is what the lists of rights say, and the commands print the same."""

import re

from tests.unit.docs.pages import DOCS

from noonmark.cli.operations.rights import acl_commands
from noonmark.cli.operations.rights_page import page
from noonmark.kafka.rights import Client, kafka_rights
from noonmark.kafka.topics import Topics

PAGE = (DOCS / "rights.md").read_text(encoding="utf-8")


def test_the_page_is_generated_from_the_lists() -> None:
    assert page() == PAGE, "run: python -m noonmark.cli.operations.rights_page > docs/rights.md"


def test_a_command_is_printed_for_every_row() -> None:
    rights = kafka_rights(Topics("noonmark"))
    known = {client: f"User:{client}" for client in Client}
    lines = list(acl_commands(rights, known))

    rows = re.findall(r"^\| (\w+) \| (topic|group) \| `(.+?)` \| (.+?) \|", PAGE, re.MULTILINE)
    assert len(lines) == len(rows)
    for line, (client, resource, name, operations) in zip(lines, rows, strict=True):
        assert f"--allow-principal User:{client} " in line
        shown = name.removesuffix("*").replace(".POOL.", ".default.")
        assert f"--{resource} {shown}" in line
        assert line.endswith(" --resource-pattern-type prefixed") == name.endswith("*")
        granted = re.findall(r"--operation (\w+)", line)
        assert [operation.upper() for operation in granted] == operations.split(", ")


def test_rights_follow_the_names_of_the_installation() -> None:
    rights = kafka_rights(
        Topics("billing"), pools=["a", "b"], bound=["orders", "billing.submissions"], emitted=["shop.*", "x"]
    )

    names = {client: {(right.name, right.prefixed) for right in of} for client, of in rights.items()}
    assert ("orders", False) in names[Client.INTAKE] & names[Client.DISPATCHER] & names[Client.MIGRATION]
    assert {("shop.", True), ("x", False)} <= names[Client.DISPATCHER]
    assert {("billing.runs.a.", True), ("billing.worker.b.", True)} <= names[Client.WORKER]
    assert names[Client.TRIGGER] == set()
