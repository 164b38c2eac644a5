"""Adding up lag."""

from noonmark.cli.operations.lag import summed


def row(partition, backlog, seconds, commit):
    return {
        "group": "g", "topic": "t", "partition": partition, "start_backlog": backlog, "start_backlog_seconds": seconds,
        "commit_lag": commit,
    }  # fmt: skip


def test_partitions_are_added_up_and_the_oldest_message_is_that_of_all():
    assert summed([row(0, 2, 1.5, 3), row(1, 5, 9.0, 5)]) == [
        {"group": "g", "topic": "t", "start_backlog": 7, "start_backlog_seconds": 9.0, "commit_lag": 8}
    ]


def test_an_age_that_could_not_be_read_stays_unknown():
    assert summed([row(0, 2, None, 2), row(1, 5, 9.0, 5)])[0]["start_backlog_seconds"] is None
