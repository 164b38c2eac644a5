"""Fingerprints of failures: a short hash of an error, without the parts that differ from run to run."""

from __future__ import annotations

import hashlib
import re
from typing import Final

MAX_CHARACTERS: Final = 4000
"""The rest of an error is ignored: no more of it is ever stored."""

# Each pattern is tried once per place and cannot give back more than a bounded piece, so that an error of any
# shape costs time in proportion to its length.
_CLASS: Final = re.compile(r"\s{0,9}([A-Za-z_][A-Za-z0-9_.]{0,199}):")
_STATUS: Final = re.compile(
    r"\b(?:answered|status|status code|HTTP|HTTP/[0-9.]{1,3})[ :=]{1,3}([1-5])[0-9]{2}\b", re.IGNORECASE
)
_UUID: Final = re.compile(r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")
_MAIL: Final = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w.-]{1,255}")
_WORD: Final = re.compile(r"[0-9A-Za-z_]+")
_LEADING_LETTERS: Final = re.compile(r"[A-Za-z_]*")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_HEX_WORD: Final = 8
"""Letters alone count as a hexadecimal id from this length on: no word of this length has only a to f."""

_NUMBERS: Final = re.compile(r"(?<![\w#])[-+]?#(?:[-.,:+/_]{1,2}#)*")
_SPACE: Final = re.compile(r"\s+")


def fingerprint(kind: str | None, error: str | None, reason: str = "") -> str:
    """Return 16 hexadecimal digits that are equal for failures of one cause.

    Two errors have one fingerprint where they differ only in numbers, ids (UUIDs, hexadecimal numbers, words
    with digits in them), dates, addresses (IPv4, memory, mail) and white space. The kind of the job, the
    class of the exception and the class of an HTTP status (`5xx`) count as they are.

    Args:
        kind: of the job; None if the job was deleted.
        error: as it was recorded; of a longer one the first `MAX_CHARACTERS`.
        reason: of the death, used if there is no error.
    """
    text = (error or "")[:MAX_CHARACTERS]
    named = _CLASS.match(text)
    status = _STATUS.search(text)
    parts = (
        kind or "",
        named[1] if named else "",
        f"{status[1]}xx" if status else "",
        normal_form(text) if text else reason,
    )
    # NUL separates the parts because none of them has one: it is escaped before an error is recorded.
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


def normal_form(text: str) -> str:
    """Return a text with `#` for the parts that differ from run to run, and single spaces."""
    text = _UUID.sub("#", text)
    text = _MAIL.sub("#", text)
    text = _WORD.sub(_without_digits, text)
    return _SPACE.sub(" ", _NUMBERS.sub("#", text)).strip()


def _without_digits(word: re.Match[str]) -> str:
    found = word[0]
    is_hex = _HEX.issuperset(found.removeprefix("0x"))
    if not any(char.isdigit() for char in found):
        return "#" if is_hex and len(found) >= _HEX_WORD else found
    if is_hex:
        return "#"
    letters = _LEADING_LETTERS.match(found)
    # Of `order_8f3a` the name counts, not which one.
    return (letters[0] if letters else "") + "#"
