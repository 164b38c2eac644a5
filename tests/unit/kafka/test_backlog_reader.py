"""The runs of a backlog: exact for what was read, and as many per message beyond it."""

from __future__ import annotations

from noonmark.kafka.lag.backlog_reader import Backlog


def filled(next_: int, runs: list[int]) -> Backlog:
    backlog = Backlog(next_, next_)
    for n, count in enumerate(runs):
        backlog.add(next_ + n, 1000 + n, count)
    return backlog


def test_what_was_read_is_counted_exactly():
    backlog = filled(10, [64, 64, 3])
    assert (backlog.total(13), backlog.stamp) == (131, 1000)


def test_what_was_not_read_has_as_many_per_message():
    assert filled(10, [60, 40]).total(20) == 100 + 8 * 50
    assert Backlog(10, 10).total(14) == 4


def test_a_backlog_that_moves_keeps_what_it_knows():
    backlog = filled(10, [5, 6, 7])
    backlog.move(11)
    assert (backlog.total(13), backlog.stamp, backlog.upto) == (13, 1001, 13)


def test_a_backlog_that_moves_past_what_was_read_starts_again():
    backlog = filled(10, [5, 6])
    backlog.move(12)
    assert (backlog.total(13), backlog.stamp, backlog.upto) == (1, None, 12)
    backlog.add(12, 7, 9)
    assert (backlog.total(13), backlog.stamp) == (9, 7)


def test_a_backlog_whose_topic_begins_again_starts_again():
    backlog = filled(10, [5, 6])
    backlog.move(0)
    assert (backlog.total(3), backlog.stamp, backlog.upto) == (3, None, 0)


def test_a_message_that_is_read_again_counts_once():
    backlog = filled(10, [5, 6])
    backlog.add(10, 1000, 5)
    assert backlog.total(12) == 11
