"""Every reachable state of every model keeps the invariants, and every mutant is caught; the page shows both."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.model.catalogue import SUBJECTS, caught_table, story, table

# Seconds of computing: how long that takes is a matter of what else the machine does.
pytestmark = pytest.mark.timeout(1800)

PAGE = (Path(__file__).parents[2] / "docs" / "verification.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_state_keeps_the_invariants_and_leads_to_the_end_of_all_work(name):
    for found in SUBJECTS[name].explored:
        assert found.trace is None, found.trace.story()


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_mutant_is_caught(name):
    for mutant in SUBJECTS[name].mutants:
        _, trace = SUBJECTS[name].caught(mutant)

        assert trace.steps


def test_the_page_shows_what_is_explored_what_is_caught_and_one_trace():
    assert table() in PAGE
    assert caught_table() in PAGE
    assert story() in PAGE
