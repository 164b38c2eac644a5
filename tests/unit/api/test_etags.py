"""Entity tags, and what If-Match makes of them."""

import pytest

from noonmark.api.http.etags import check_if_match, etag_of
from noonmark.api.http.problems import ProblemError
from noonmark.schemas.problems.types import MALFORMED, PRECONDITION_FAILED

TAG = etag_of(3, "2026-06-01T09:00:00Z")


def test_a_tag_is_strong_and_changes_with_each_part_alone():
    assert TAG[0] == TAG[-1] == '"'
    assert etag_of(3, "2026-06-01T09:00:00Z") == TAG
    assert len({TAG, etag_of(4, "2026-06-01T09:00:00Z"), etag_of(3, "2026-06-01T09:00:01Z")}) == 3
    # Where one part ends and the next begins counts, too.
    assert etag_of("ab", "c") != etag_of("a", "bc")


@pytest.mark.parametrize("header", [None, "*", " * ", TAG, f'"older", {TAG}', f"{TAG} ,"])
def test_a_change_goes_through_that_means_this_version(header):
    check_if_match(header, TAG)


@pytest.mark.parametrize("header", ['"older"', f"W/{TAG}", f'"older", W/{TAG}'])
def test_a_change_of_another_version_is_refused_and_told_which_there_is(header):
    with pytest.raises(ProblemError) as told:
        check_if_match(header, TAG)
    assert told.value.kind is PRECONDITION_FAILED
    assert TAG in told.value.detail


@pytest.mark.parametrize("header", ["", TAG.strip('"'), f'"{TAG}"', f"{TAG}, {TAG[:-1]}", "*, *", ","])
def test_what_is_no_tag_is_told_from_another_version(header):
    with pytest.raises(ProblemError) as told:
        check_if_match(header, TAG)
    assert told.value.kind is MALFORMED
    assert "double quotes" in told.value.detail
