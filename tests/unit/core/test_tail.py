"""The end of a stream, however it comes."""

import random

import pytest

from noonmark.core.bounded_tail import Tail


def test_what_fits_is_kept_whole():
    tail = Tail(10)
    tail.add(b"abc")
    tail.add(b"defg")
    assert (tail.text(), tail.dropped) == ("abcdefg", 0)


def test_the_oldest_bytes_go():
    tail = Tail(5)
    for part in (b"abc", b"def", b"gh"):
        tail.add(part)
    assert (tail.text(), tail.dropped) == ("defgh", 3)


def test_one_part_longer_than_all_that_is_kept():
    tail = Tail(4)
    tail.add(b"xy")
    tail.add(b"0123456789")
    assert (tail.text(), tail.dropped) == ("6789", 8)


@pytest.mark.parametrize("seed", range(20))
def test_any_parts_leave_the_end_of_their_sum(seed):
    rng = random.Random(seed)
    parts = [bytes(rng.randrange(97, 123) for _ in range(rng.randrange(0, 9))) for _ in range(30)]
    tail = Tail(17)
    for part in parts:
        tail.add(part)
    whole = b"".join(parts)
    assert tail.text() == whole[-17:].decode()
    assert tail.dropped == max(0, len(whole) - 17)


def test_a_character_that_was_cut_is_shown_as_such():
    tail = Tail(3)
    tail.add("aéé".encode())
    assert tail.text() == "\N{REPLACEMENT CHARACTER}é"
