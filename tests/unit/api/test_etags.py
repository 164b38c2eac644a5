"""Entity tags, and what If-Match and If-None-Match make of them."""

import pytest

from noonmark.api.http.etags import Preconditions, etag_of, is_listed
from noonmark.api.http.problems import ProblemError
from noonmark.schemas.problems.types import MALFORMED, PRECONDITION_FAILED

TAG = etag_of(3, "2026-06-01T09:00:00Z")


def test_a_tag_is_strong_and_changes_with_each_part_alone():
    assert TAG[0] == TAG[-1] == '"'
    assert etag_of(3, "2026-06-01T09:00:00Z") == TAG
    assert len({TAG, etag_of(4, "2026-06-01T09:00:00Z"), etag_of(3, "2026-06-01T09:00:01Z")}) == 3
    # Where one part ends and the next begins counts, too.
    assert etag_of("ab", "c") != etag_of("a", "bc")


@pytest.mark.parametrize(
    "header", [None, "*", " * ", TAG, f'"older", {TAG}', f"{TAG} ,", f'"a,b",{TAG}', f", ,{TAG}"]
)
def test_a_change_goes_through_that_means_this_version(header):
    Preconditions(header).check(TAG)


@pytest.mark.parametrize("header", ['"older"', f"W/{TAG}", f'"older", W/{TAG}'])
def test_a_change_of_another_version_is_refused_and_told_which_there_is(header):
    with pytest.raises(ProblemError) as told:
        Preconditions(header).check(TAG)
    assert told.value.kind is PRECONDITION_FAILED
    assert TAG in told.value.detail


@pytest.mark.parametrize("header", ["", TAG.strip('"'), f'"{TAG}"', f"{TAG}, {TAG[:-1]}", "*, *", ","])
def test_what_is_no_tag_is_told_from_another_version(header):
    with pytest.raises(ProblemError) as told:
        Preconditions(header).check(TAG)
    assert told.value.kind is MALFORMED
    assert "double quotes" in told.value.detail


def test_what_does_not_exist_matches_no_star():
    with pytest.raises(ProblemError) as told:
        Preconditions("*").check(TAG, exists=False)
    assert told.value.kind is PRECONDITION_FAILED
    assert "there is no such object" in told.value.detail
    Preconditions(TAG).check(TAG, exists=False)
    Preconditions(None, "*").check(TAG, exists=False)


@pytest.mark.parametrize("header", ["*", TAG, f"W/{TAG}", f'"older", W/{TAG}'])
def test_a_change_of_what_must_not_be_there_is_refused(header):
    with pytest.raises(ProblemError) as told:
        Preconditions(None, header).check(TAG)
    assert told.value.kind is PRECONDITION_FAILED
    assert is_listed(TAG, header)


@pytest.mark.parametrize("header", ['"older"', f'W/"{TAG[1:-2]}"', '"a,b", "c"'])
def test_a_change_of_another_than_the_listed_versions_goes_through(header):
    Preconditions(None, header).check(TAG)
    assert not is_listed(TAG, header)


def test_what_exists_already_is_said_to():
    with pytest.raises(ProblemError, match="the object exists already") as told:
        Preconditions(if_none_match="*").check(TAG)
    assert "changed" not in told.value.kind.title
    assert "If-None-Match" in PRECONDITION_FAILED.cause
