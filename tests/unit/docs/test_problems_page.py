"""docs/problems.md is what the list of problem types says."""

from tests.unit.docs.pages import DOCS

from noonmark.schemas.problems.types import PROBLEM_TYPES, URN, page


def test_the_page_is_what_the_module_prints():
    text = (DOCS / "problems.md").read_text(encoding="utf-8")
    assert text == page(), "run: python -m noonmark.schemas.problems.types > docs/problems.md"


def test_every_type_has_a_slug_of_its_own_a_cause_and_a_remedy():
    assert len({kind.slug for kind in PROBLEM_TYPES}) == len(PROBLEM_TYPES)
    for kind in PROBLEM_TYPES:
        assert kind.uri == f"{URN}{kind.slug}"
        assert 400 <= kind.status < 600
        assert not kind.title.endswith("."), kind.slug
        assert kind.cause.endswith("."), kind.slug
        assert kind.remedy.endswith("."), kind.slug
        assert "|" not in kind.cause + kind.remedy
