"""One output stream of an attempt: what is not cleaned of secrets yet, and the end of what is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from noonmark.core.bounded_tail import TAIL_BYTES

_LONG_LINE_BYTES: Final = 16 * 1024
"""A line of this length is stored before it ends."""


class Cleaner(Protocol):
    """Removes the secrets that an attempt has received; see `Redactor`."""

    def clean_part(self, text: str, *, cut_start: bool, cut_end: bool) -> str:
        """Return a part of a stream without the secrets.

        Args:
            text: the part; no secret continues past either end, unless it was cut there.
            cut_start: whether the stream was cut directly before it.
            cut_end: whether the stream was cut directly after it.
        """

    def settled_length(self, text: str, *, cut_start: bool) -> int:
        """Return how many characters can be cleaned before the text that follows is known.

        Args:
            text: a part of a stream.
            cut_start: whether the stream was cut directly before it.
        """


@dataclass(frozen=True, slots=True)
class StoredStream:
    """The stored stream at one moment.

    Attributes:
        end: the number of its bytes, including those that are not kept.
        kept: its last bytes.
    """

    end: int
    kept: bytes

    @property
    def dropped(self) -> int:
        """The number of bytes that are not kept."""
        # The label of a secret that was removed later can be longer than the secret.
        return max(0, self.end - len(self.kept))

    @property
    def text(self) -> str:
        """The kept bytes, from the first whole character on."""
        return _whole_characters(self.kept).decode("utf-8", "replace")


class OutputStream:
    """Collects one stream of an attempt; thread-safe.

    Bytes are first kept as they came. `move` cleans whole lines and adds them to the stored stream, of which
    the last bytes are kept. If more bytes come than are kept between two moves, the oldest are dropped. Then
    the stored stream continues after the gap, and nothing from before the gap is kept.

    The stored stream never shows the beginning of a secret whose end may still come.
    """

    __slots__ = (
        "_added",
        "_cleaner",
        "_closed",
        "_cut",
        "_end",
        "_has_gap",
        "_limit",
        "_lock",
        "_lost",
        "_moved",
        "_moving",
        "_raw",
        "_tail",
    )

    def __init__(self, limit: int = TAIL_BYTES) -> None:
        """Start empty.

        Args:
            limit: the most bytes that are kept, of the stored stream and of what is not cleaned yet.
        """
        self._limit = limit
        self._lock = threading.Lock()
        self._moving = threading.Lock()
        self._raw = bytearray()
        self._lost = 0
        self._added = self._moved = 0
        self._tail = b""
        self._end = 0
        self._cut = self._has_gap = self._closed = False
        self._cleaner: Cleaner | None = None

    @property
    def end(self) -> int:
        """The number of bytes of the stored stream, including those that are not kept."""
        return self._end

    @property
    def dropped(self) -> int:
        """The number of bytes of the stored stream that are not kept."""
        return self.stored().dropped

    @property
    def has_unmoved(self) -> bool:
        """Whether bytes were added since the last move."""
        return self._added != self._moved

    def add(self, data: bytes) -> None:
        """Append; the oldest bytes beyond the limit are dropped, and all bytes once the stream is closed."""
        with self._lock:
            if not self._closed:
                self._added += len(data)
                self._raw += data
                self._trim()

    def move(self, cleaner_of: Callable[[], Cleaner | None], *, final: bool = False) -> None:
        """Clean whole lines and add them to the stored stream.

        Args:
            cleaner_of: returns what removes the secrets that the attempt has received; None if there are
                none. It is called after the lines were taken, because the attempt may just have received a
                secret and printed it.
            final: move everything, and close the stream: it accepts nothing more.
        """
        with self._moving:
            with self._lock:
                if self._closed:
                    return
                self._closed = final
                raw, lost = bytes(self._raw), self._lost
                self._raw.clear()
                self._lost = 0
                self._moved = self._added
            cleaner = cleaner_of()
            if lost:
                self._cut = self._has_gap = True
                whole = _whole_characters(raw)
                lost, raw = lost + len(raw) - len(whole), whole
            length = len(raw) if final else self._settled(raw, cleaner)
            stored = self._cleaned(raw[:length], cleaner, cut_end=final and self._has_gap)
            kept = self._recleaned(cleaner) if not lost else b""  # only moves change it
            with self._lock:
                self._tail = (kept + stored)[-self._limit :]
                self._end += lost + len(stored)
                self._cut = self._cut and not length
                if rest := raw[length:]:
                    self._raw[:0] = rest
                    self._trim()

    def stored(self) -> StoredStream:
        """Return the stored stream at one moment, while others can move more to it."""
        with self._lock:
            return StoredStream(self._end, self._tail)

    def stored_text(self) -> str:
        """Return the kept end of the stored stream, from the first whole character on."""
        return self.stored().text

    def text(self) -> str:
        """Return the end of everything that was added, cleaned or not."""
        with self._moving, self._lock:
            data = (self._tail if not self._lost else b"") + self._raw
        return data[-self._limit :].decode("utf-8", "replace")

    def _trim(self) -> None:
        over = len(self._raw) - self._limit
        if over > 0:
            del self._raw[:over]
            self._lost += over

    def _settled(self, raw: bytes, cleaner: Cleaner | None) -> int:
        """Return the length of the beginning of `raw` that can be moved now."""
        length = _last_line_end(raw) or _long_line(raw)
        if cleaner is None or not length:
            return length
        text = raw[:length].decode("utf-8", "surrogateescape")
        settled = cleaner.settled_length(text, cut_start=self._cut)
        return len(text[:settled].encode("utf-8", "surrogateescape"))

    def _cleaned(self, data: bytes, cleaner: Cleaner | None, *, cut_end: bool) -> bytes:
        if cleaner is not None and data:
            text = data.decode("utf-8", "surrogateescape")
            text = cleaner.clean_part(text, cut_start=self._cut, cut_end=cut_end)
            data = text.encode("utf-8", "surrogateescape")
        return storable(data.decode("utf-8", "replace")).encode()

    def _recleaned(self, cleaner: Cleaner | None) -> bytes:
        """Return the kept bytes; if the attempt received a secret after they were stored, without it."""
        known, self._cleaner = self._cleaner, cleaner
        if cleaner is None or cleaner is known or not self._tail:
            return self._tail
        text = self.stored_text()
        return cleaner.clean_part(text, cut_start=self.dropped > 0, cut_end=False).encode()


def no_cleaner() -> None:
    """Return no cleaner, for an attempt that cannot have received secrets."""


def storable(text: str) -> str:
    """Return text that Postgres can store: NUL and lone surrogates become escapes."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()


def _last_line_end(raw: bytes) -> int:
    return max(raw.rfind(b"\n"), raw.rfind(b"\r")) + 1


def _long_line(raw: bytes) -> int:
    """Return the length of whole characters of a line that is too long to wait for its end; else 0."""
    if len(raw) < _LONG_LINE_BYTES:
        return 0
    length = len(raw) - 1
    while length and raw[length] & 0xC0 == 0x80:
        length -= 1
    return length


def _whole_characters(data: bytes) -> bytes:
    """Return data without the rest of a character at its beginning."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
