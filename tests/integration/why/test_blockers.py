"""Reasons why a run does not run are planted one by one; each must be the first that is named.

Everything is planted by the product's own code, and every expected value is written beside the plant.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.why import plants_of_jobs, plants_of_runs
from tests.integration.why.planting import PLANTS, Plant
from tests.integration.why.scene import Scene

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
