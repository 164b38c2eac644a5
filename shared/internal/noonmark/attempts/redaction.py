"""Removes secrets from everything that an attempt stores."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, quote_plus

import orjson

from noonmark.handlers.results import MAX_RESULT_BYTES
from noonmark.store.runs.finish import Outcome

_LEAST: Final = 4
"""Shortest form that is searched, and shortest piece of one that is removed where a text was cut."""

_EXCERPT_CHARS: Final = 1024
"""Texts in a result of at least this length can be cut: excerpts have 4 KB, characters up to 4 bytes."""

_LEAST_LINE: Final = 12
"""Lines of a longer secret, such as a PEM key, are searched one by one if they have this length."""


class Redactor:
    """Replaces secrets in texts with `[secret:name]`, in every form in which they can appear.

    The forms: unchanged, each long line of it, in JSON, in Python's notation, in URLs, in hex, and in base64
    of both alphabets, padded or not, alone or as part of something longer.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        """Create a redactor; the forms are computed at the first use.

        Args:
            values: the secrets by name, each of at least 4 characters.
        """
        self._values = dict(values)
        self._labels: dict[str, str] = {}

    def joined(self, other: Redactor) -> Redactor:
        """Return a redactor with the secrets of both."""
        if all(self._values.get(name) == value for name, value in other._values.items()):
            return self
        # A secret that was rotated between two uses has two values.
        mine = {
            (f"{name} before" if other._values.get(name, value) != value else name): value
            for name, value in self._values.items()
        }
        return Redactor({**mine, **other._values})

    def clean(self, text: str, *, cut: bool = False) -> str:
        """Return a text without the secrets.

        Args:
            text: any text.
            cut: whether it can be cut at either end, so that pieces of secrets are searched there, too.
        """
        return self.clean_part(text, cut_start=cut, cut_end=cut)

    def clean_part(self, text: str, *, cut_start: bool, cut_end: bool) -> str:
        """Return a text without the secrets, and without pieces of them where it was cut."""
        labels = self._spelt()
        # One search per form is fast; a single pattern of all forms would try each at every character.
        if present := [form for form in labels if form in text]:
            # The longest first: a form can contain another. In one pass: a label can look like a form.
            pattern = "|".join(map(re.escape, sorted(present, key=len, reverse=True)))
            text = re.sub(pattern, lambda match: labels[match[0]], text)
        for form, label in labels.items():
            if cut_end and (head := _head_at_end(form, text)):
                text = text[:-head] + label
            if cut_start and (tail := _tail_at_start(form, text)):
                text = label + text[tail:]
        return text

    def settled_length(self, text: str, *, cut_start: bool) -> int:
        """Return how many characters of a stream can be cleaned before the text that follows is known.

        They end with a line, or where a secret can begin in a line without an end. No secret begins in them
        and ends after them, whatever follows.

        Args:
            text: a part of a stream: whole lines, or one that has not ended.
            cut_start: whether the stream was cut directly before it.
        """
        length = len(text)
        while length:
            # A line end is part of few secrets, and then of few of their forms.
            forms = [form for form in self._spelt() if text[length - 1] in form]
            held = max((_longest_head(form, text, length) for form in forms), default=0)
            if not held:
                return 0 if cut_start and any(text[:length] in form for form in forms) else length
            length -= held
            length = max(text.rfind("\n", 0, length), text.rfind("\r", 0, length)) + 1 or length
        return 0

    def clean_json(self, document: str) -> str:
        """Return JSON with cleaned strings, keys and numbers; the result is within the size limit."""
        cleaned = orjson.dumps(self._walked(orjson.loads(document)))
        if len(cleaned) > MAX_RESULT_BYTES:
            return '"[not stored: too long without its secrets]"'
        return cleaned.decode()

    def _walked(self, value: Any) -> Any:
        if isinstance(value, str):
            # A long text can be the beginning of a longer one, such as the body of a response.
            return self.clean(value, cut=len(value) >= _EXCERPT_CHARS)
        if isinstance(value, dict):
            return {self.clean(key): self._walked(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._walked(inner) for inner in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            shown = str(value)
            cleaned = self.clean(shown)
            return value if cleaned == shown else cleaned
        return value

    def _spelt(self) -> Mapping[str, str]:
        """Return the label for each form."""
        if not self._labels and self._values:
            labels: dict[str, str] = {}
            for name, value in self._values.items():
                for form in _forms(value):
                    labels.setdefault(form, f"[secret:{name}]")
            self._labels = labels
        return self._labels


def cleaned(outcome: Outcome, redactor: Redactor) -> Outcome:
    """Remove the secrets from the error and the result of an outcome; `AttemptLog.move` cleans output."""
    if outcome.error is not None:
        outcome.error = redactor.clean(outcome.error, cut=True)
    if outcome.result is not None:
        outcome.result = redactor.clean_json(outcome.result)
    return outcome


def _head_at_end(form: str, text: str) -> int:
    """Return the length of the piece of the form's beginning that the text ends with; 0 if there is none."""
    start = max(0, len(text) - len(form) + 1)
    while (start := text.find(form[:_LEAST], start)) >= 0:
        if form.startswith(text[start:]):
            return len(text) - start
        start += 1
    return 0


def _longest_head(form: str, text: str, length: int) -> int:
    """Return the length of the longest piece of the form's beginning that `text[:length]` ends with."""
    size = len(form)
    while (size := form.rfind(text[length - 1], 0, min(size - 1, length)) + 1) > 0:
        if text.endswith(form[:size], 0, length):
            return size
    return 0


def _tail_at_start(form: str, text: str) -> int:
    """Return the length of the piece of the form's end that the text begins with; 0 if there is none."""
    end = min(len(form) - 1, len(text))
    while (start := text.rfind(form[-_LEAST:], 0, end)) >= 0:
        if form.endswith(text[: start + _LEAST]):
            return start + _LEAST
        end = start + _LEAST - 1
    return 0


@lru_cache(maxsize=256)
def _forms(value: str) -> frozenset[str]:
    """Return all forms in which a text can show a secret."""
    lines = [line.strip() for line in value.split("\n")]
    forms = {*_spellings(value), *_spellings(value.strip())}
    if len(lines) > 1:
        long = (line for line in lines if len(line) >= _LEAST_LINE)
        forms.update(form for line in long for form in (line, _in_json(line)))
    return frozenset(form for form in forms if len(form) >= _LEAST)


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _spellings(text: str) -> Iterator[str]:
    data = text.encode("utf-8", "surrogateescape")
    yield text
    yield json.dumps(text)[1:-1]
    yield _in_json(text)
    yield repr(text)[1:-1]
    yield repr(data)[2:-1]
    yield quote(data, safe="")
    yield quote(data)
    yield quote_plus(data)
    yield data.hex()
    yield data.hex().upper()
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(data).decode()
        yield from _inside_base64(data, encode)


def _inside_base64(data: bytes, encode: Callable[[bytes], bytes]) -> Iterator[str]:
    """Yield the base64 characters that depend only on the data, for each position where it can begin."""
    for before in range(3):
        coded = encode(bytes(before) + data).decode()
        first = -(-before * 8 // 6)
        last = (before + len(data)) * 8 // 6
        core = coded[first:last]
        # A short core is too likely to be part of something else.
        if len(core) >= 2 * _LEAST or (before == 0 and len(core) >= _LEAST):
            yield core
