"""Reasons why a run does not run are planted one by one; each must be the first that is named.

Everything is planted by the product's own code, and every expected value is written beside the plant.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.why import plants_of_damage, plants_of_jobs, plants_of_runs
from tests.integration.why.planting import PLANTS, Plant
from tests.integration.why.scene import Scene

from noonmark.core.why.answers import Blocker
from noonmark.store.views.stranded import find_stranded

assert plants_of_damage
assert plants_of_jobs
assert plants_of_runs


@pytest.mark.parametrize("planting", PLANTS, ids=lambda planting: planting.__name__)
def test_what_is_planted_is_named_first(
    scene: Scene, given: Callable[[str, str], None], planting: Plant
) -> None:
    target, code, facts, sentence = planting(scene)

    first = scene.why(target)[0]

    given(first.code.value, first.sentence)
    assert first.code is code
    assert first.sentence == sentence
    assert {name: first.facts.get(name) for name in facts} == facts
    assert first.remedy


@pytest.mark.parametrize("planting", PLANTS, ids=lambda planting: planting.__name__)
def test_the_check_of_the_database_finds_what_nothing_continues_and_nothing_else(
    scene: Scene, planting: Plant
) -> None:
    target, code, _, sentence = planting(scene)

    search = find_stranded(scene.db)

    assert search.unsearched == []
    if code in {Blocker.TIMER_MISSING, Blocker.TIMER_WRONG, Blocker.RUN_STRANDED}:
        (found,) = search.found
        assert (found.code, found.run_id or found.job_id) == (code.value, target)
        assert found.sentence in sentence
        assert found.remedy
    else:
        assert search.found == []
