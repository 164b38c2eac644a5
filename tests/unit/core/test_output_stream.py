"""A stream of output: bounded, in order, and never ahead of what its secrets need."""

import random

import pytest

from noonmark.attempts.redaction import Redactor
from noonmark.core.output_stream import OutputStream, no_cleaner

KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"
SECRETS = {
    "token": "hunter2-hunter2",
    "key": KEY,
    "short": "ab\ncd\nab\ne",
    "returns": "first\r\nsecond\rthird",
    "odd": "ümläut ✓ wert",
}
REDACTOR = Redactor(SECRETS)
OUTPUT = (
    f"begin hunter2-hunter2 end\nab\nab\ncd\nab\nab\ncd\nab\ne\n{KEY}between\n{KEY[:30]}\n"
    "progress 1\rprogress 2\rfirst\r\nfirst\r\nsecond\rthird\rümläut ✓ wert\n"
    "hunter2-\nhunter2 aHVudGVyMi1odW50ZXIy and no end: first\r\nsec"
)


def stream_of(*parts: bytes, cleaner: Redactor | None = None, limit: int = 65536) -> OutputStream:
    stream = OutputStream(limit)
    for part in parts:
        stream.add(part)
        stream.move(lambda: cleaner)
    return stream


def at_once(data: bytes, cleaner: Redactor | None = REDACTOR) -> str:
    stream = OutputStream()
    stream.add(data)
    stream.move(lambda: cleaner, final=True)
    return stream.stored_text()


def test_whole_lines_are_stored_and_the_rest_waits():
    stream = stream_of(b"one\ntwo\nthr")
    assert (stream.stored_text(), stream.end, stream.text()) == ("one\ntwo\n", 8, "one\ntwo\nthr")
    stream.add(b"ee")
    stream.move(no_cleaner, final=True)
    assert (stream.stored_text(), stream.end, stream.dropped) == ("one\ntwo\nthree", 13, 0)


def test_a_carriage_return_ends_a_line():
    assert stream_of(b"10 %\r20 %\r30").stored_text() == "10 %\r20 %\r"


def test_a_line_that_does_not_end_is_stored_in_whole_characters():
    data = "é✓".encode() * 8000
    stream = stream_of(data[:-1])
    assert stream.stored_text() == "é✓" * 7999 + "é"
    stream.add(data[-1:] + b"\n")
    stream.move(no_cleaner)
    assert stream.stored_text() == data.decode() + "\n"


def test_bytes_that_are_no_text_are_replaced_wherever_they_are_moved():
    data = b"a\xff\xe2\x82\nb\0\xf0\n\xe2\x82"
    assert at_once(data, None) == "a\ufffd\ufffd\nb\\x00\ufffd\n\ufffd"
    stream = stream_of(*(data[n : n + 1] for n in range(len(data))))
    stream.move(no_cleaner, final=True)
    assert stream.stored_text() == at_once(data, None)
    assert stream.end == len(stream.stored_text().encode())


def test_a_closed_stream_accepts_nothing():
    stream = stream_of(b"end")
    stream.move(no_cleaner, final=True)
    stream.add(b"late\n")
    stream.move(no_cleaner, final=True)
    assert stream.stored_text() == "end"


def test_the_stored_end_is_bounded_and_its_bytes_are_counted():
    stream = stream_of(*(f"{n:09d}\n".encode() for n in range(100)), limit=100)
    assert (stream.end, stream.dropped, len(stream.stored().kept)) == (1000, 900, 100)
    assert stream.stored_text().splitlines() == [f"{n:09d}" for n in range(90, 100)]


def test_after_a_flood_nothing_from_before_the_gap_is_kept():
    stream = OutputStream(100)
    stream.add(b"before\n")
    stream.move(no_cleaner)
    stream.add(b"".join(f"{n:09d}\n".encode() for n in range(100)))
    stream.move(no_cleaner)
    assert stream.stored_text().splitlines() == [f"{n:09d}" for n in range(90, 100)]
    assert (stream.end, stream.dropped) == (1007, 907)


@pytest.mark.parametrize("at", range(len(OUTPUT.encode()) + 1))
def test_wherever_output_is_cut_in_two_the_same_is_stored_and_nothing_is_shown_too_early(at):
    data = OUTPUT.encode()
    stream = stream_of(data[:at], cleaner=REDACTOR)
    shown = stream.stored_text()
    stream.add(data[at:])
    stream.move(lambda: REDACTOR)
    later = stream.stored_text()
    stream.move(lambda: REDACTOR, final=True)
    assert stream.stored_text() == at_once(data)
    assert later.startswith(shown)
    assert stream.stored_text().startswith(later)
    assert stream.end == len(stream.stored_text().encode())


@pytest.mark.parametrize("seed", range(200))
def test_however_output_arrives_it_shows_what_its_end_shows(seed):
    chance = random.Random(seed)
    secrets = {
        f"s{n}": "".join(chance.choices("ab\n\r", k=chance.randint(4, 12)))
        for n in range(chance.randint(1, 4))
    }
    redactor = Redactor(secrets)
    pieces = [
        chance.choice(
            [*secrets.values(), "a", "b\n", "\r", "ab", chance.choice([*secrets.values()])[:3], "x"]
        )
        for _ in range(40)
    ]
    data = "".join(pieces).encode()
    stream, left, shown = OutputStream(), data, ""
    while left:
        size = chance.randint(1, 8)
        stream.add(left[:size])
        left = left[size:]
        stream.move(lambda: redactor)
        assert stream.stored_text().startswith(shown)
        shown = stream.stored_text()
    stream.move(lambda: redactor, final=True)
    assert stream.stored_text().startswith(shown)
    assert stream.stored_text() == at_once(data, redactor)


@pytest.mark.parametrize("at", range(1, len(KEY)))
def test_the_rest_of_a_secret_after_a_gap_is_not_shown_wherever_it_is_cut_again(at):
    text = f"{KEY}between\nab\n{KEY}last line\n"[at:]
    for middle in range(1, len(text)):
        length = REDACTOR.settled_length(text[:middle], cut_start=True)
        shown = REDACTOR.clean_part(text[:length], cut_start=True, cut_end=False)
        rest = REDACTOR.clean_part(text[length:], cut_start=not length, cut_end=False)
        assert shown + rest == REDACTOR.clean_part(text, cut_start=True, cut_end=False)


def test_what_a_flood_leaves_of_a_secret_is_not_shown():
    limit = len(KEY)
    stream = OutputStream(limit)
    stream.add(b"before\n" + KEY.encode() + b"a line\n")
    stream.move(lambda: REDACTOR)
    assert set(stream.stored_text().split()) == {"[secret:key]", "a", "line"}


def test_a_secret_that_is_received_later_is_removed_from_what_is_stored():
    stream = stream_of(b"guessed hunter2-hunter2\n", b"more\n")
    stream.add(b"known\n")
    stream.move(lambda: REDACTOR)
    assert stream.stored_text() == "guessed [secret:token]\nmore\nknown\n"
    # The end stays, so that readers can continue there; the label is shorter than the secret.
    assert (stream.end, stream.dropped) == (35, 1)


def test_a_long_line_holds_back_only_what_can_be_a_secret():
    stream = stream_of(b"y" * 20_000 + b"hunter2-", cleaner=REDACTOR)
    assert stream.stored_text() == "y" * 20_000
    stream.add(b"hunter2" + b"z" * 20_000)
    stream.move(lambda: REDACTOR, final=True)
    assert stream.stored_text() == "y" * 20_000 + "[secret:token]" + "z" * 20_000


def test_what_is_added_after_the_secrets_were_read_waits_for_the_next_move():
    stream = OutputStream()
    stream.add(b"before\n")

    def just_now():
        stream.add(b"hunter2-hunter2\n")

    stream.move(just_now)
    assert stream.stored_text() == "before\n"
    stream.move(lambda: REDACTOR)
    assert stream.stored_text() == "before\n[secret:token]\n"
