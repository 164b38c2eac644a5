"""From when on a topic has every event of a namespace."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from noonmark.cli.verify.coverage import MARGIN, Coverage
from noonmark.kafka.consumers.ranges import PartitionRange

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
WHOLE = PartitionRange(low=0, start=5, end=9)
"""A partition that has records from before the window."""
CUT = PartitionRange(low=5, start=5, end=9)
"""One whose oldest record is in the window: earlier ones may have been removed."""
UNUSED = PartitionRange(low=0, start=0, end=0)
EXPIRED = PartitionRange(low=9, start=9, end=9)


def after(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def covered(*partitions: PartitionRange, keyed: bool = True) -> Coverage:
    coverage = Coverage(NOON, keyed=keyed)
    coverage.open({("t", n): one for n, one in enumerate(partitions)})
    return coverage


def note(coverage: Coverage, offset: int, minutes: float, key: str = "shop", partition: int = 0) -> None:
    coverage.note(("t", partition), offset, round(after(minutes).timestamp() * 1000), key)


def test_a_partition_with_older_records_has_all_since_the_begin_of_the_window():
    coverage = covered(WHOLE)
    note(coverage, 5, 30)

    assert coverage.since("shop") == NOON + MARGIN
    # Also of a namespace of which nothing was read.
    assert coverage.since("bank") == NOON + MARGIN


def test_a_namespace_in_two_partitions_could_not_be_compared():
    """So the key of a lifecycle event stays its namespace: docs/decisions/0031."""
    divided = covered(CUT, EXPIRED)
    note(divided, 5, 10)
    # An event of minute 30 was in the other partition, and retention has removed it: it would be reported as missing.
    assert divided.since("shop") == after(10) + MARGIN < after(30)

    # Without the assumption that a key has one partition, nothing of it is comparable.
    careful = covered(CUT, EXPIRED, keyed=False)
    note(careful, 5, 10)
    assert careful.since("shop") is None


def test_a_partition_without_older_records_has_all_since_the_oldest_record_of_the_namespace():
    coverage = covered(CUT, UNUSED)
    note(coverage, 5, 10, key="bank")
    note(coverage, 6, 30)
    note(coverage, 7, 50)

    assert coverage.since("shop") == after(30) + MARGIN
    assert coverage.since("bank") == after(10) + MARGIN
    assert coverage.since("none") is None


def test_a_namespace_that_moved_to_another_partition_counts_from_the_later_one():
    """Partitions were added to the topic."""
    coverage = covered(CUT, CUT)
    note(coverage, 5, 10)
    note(coverage, 5, 40, partition=1)

    assert coverage.since("shop") == after(40) + MARGIN


def test_records_that_are_removed_while_they_are_read_begin_it_again():
    coverage = covered(WHOLE)
    note(coverage, 5, 10)
    note(coverage, 8, 50)

    assert coverage.since("shop") == after(50) + MARGIN


def test_an_expired_partition_hides_nothing_of_namespaces_in_others():
    coverage = covered(CUT, EXPIRED)
    note(coverage, 5, 10)

    assert coverage.since("shop") == after(10) + MARGIN


@pytest.mark.parametrize(("other", "complete"), [(UNUSED, True), (EXPIRED, False), (WHOLE, True)])
def test_without_a_key_every_partition_counts(other, complete):
    coverage = covered(CUT, other, keyed=False)
    note(coverage, 5, 10, key="")

    assert coverage.since("") == (after(10) + MARGIN if complete else None)


@pytest.mark.parametrize("partition", [UNUSED, EXPIRED])
def test_a_topic_without_records_shows_nothing(partition):
    assert covered(partition).since("shop") is None
    assert covered(partition, keyed=False).since("") is None
