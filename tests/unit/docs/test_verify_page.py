"""docs/verify.md explains every rule that `noonmark verify` checks, under the title that the checker has for it."""

import re

import typer.main
from tests.unit.docs.pages import DOCS

from noonmark.cli.main import app
from noonmark.verify.invariants import INVARIANTS
from noonmark.verify.ledger import CHECKED, EVENT_RULES, INSTANT_RULES

RULES = {*CHECKED, *EVENT_RULES, *INSTANT_RULES}
PAGE = (DOCS / "verify.md").read_text(encoding="utf-8")


def test_every_rule_that_is_checked_has_a_section_and_no_other_has_one():
    assert re.findall(r"^### (\w+)$", PAGE, re.MULTILINE) == [one.id for one in INVARIANTS if one.id in RULES]


def test_every_section_begins_with_the_title_of_its_rule():
    titles = {one.id: one.title for one in INVARIANTS}
    said = dict(re.findall(r"^### (\w+)\n\n\*(.+?)\.\*", PAGE, re.MULTILINE))

    # The ledger has no messages, events or calls, so the page leaves those out of S12.
    assert {rule: said[rule].lower() for rule in RULES if rule != "S12"} == {
        rule: titles[rule].lower() for rule in RULES if rule != "S12"
    }
    assert said["S12"].lower().startswith("one namespace in run")


def test_the_table_of_options_has_every_option_of_the_command():
    command = typer.main.get_command(app).commands["verify"]
    given = {name for one in command.params for name in one.opts if name.startswith("--")} - {"--help"}
    (rows,) = re.findall(r"^\| option \|.*\n\|---.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)

    assert set(re.findall(r"`(--[\w-]+)`", "".join(row.split("|")[1] for row in rows.splitlines()))) == given
