"""What users rely on stays: names, signatures, settings, metrics, routes, commands, values, tables."""

from __future__ import annotations

import pytest
from tests.support.public_surface import COMMAND, DATABASE, SECTIONS, Section, differences, recorded
from tests.support.public_surface.database import database

ADVICE = (
    "Additions are made on purpose, by running the command below; removals and changes break users, so put back"
    f" what is gone.\n\n    {COMMAND}\n"
)


def compare(name: str, found: Section) -> None:
    lines = list(differences(recorded()[name], found))
    if lines:
        shown = "\n  ".join(lines)
        pytest.fail(f"the public surface differs in {name!r}:\n\n  {shown}\n\n{ADVICE}", pytrace=False)


def test_every_section_is_compared():
    assert recorded().keys() == {*SECTIONS, DATABASE}


@pytest.mark.parametrize("name", SECTIONS)
def test_what_users_rely_on_is_what_the_file_says(name: str):
    compare(name, SECTIONS[name]())


@pytest.mark.postgres
def test_a_migrated_database_is_what_the_file_says(database_url: str):
    compare(DATABASE, database(database_url))


def test_a_difference_names_what_is_gone_what_changed_and_what_is_new():
    before = {"job apply --prune": {"type": "flag"}, "job list": {"hidden": False}}
    after = {"job list": {"hidden": True}, "job show": {"hidden": False}}

    assert list(differences(before, after)) == [
        'gone     job apply --prune: {"type": "flag"}',
        'changed  job list\n             was {"hidden": false}\n             is  {"hidden": true}',
        'new      job show: {"hidden": false}',
    ]
    assert list(differences(after, dict(after))) == []
