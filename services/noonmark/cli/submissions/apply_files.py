"""Files of declared jobs: their documents, each with the file and line that it stands at."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from noonmark.cli.terminal.problems import CliError, ExitCode

SUFFIXES: Final = (".yaml", ".yml", ".json", ".jsonl")
"""Of files that are read where a folder is named."""

_KINDS: Final = {stat.S_IFIFO: "FIFO", stat.S_IFSOCK: "socket"}
_MOST_FILES: Final = 10_000
_MOST_VALUES: Final = 500_000
"""Of a YAML document, aliases written out: nine lines of aliases stand for a thousand million values."""


class Problem(NamedTuple):
    """Something wrong in a file.

    Attributes:
        pointer: the field (RFC 6901); empty for the document as a whole.
    """

    file: str
    line: int
    pointer: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        return f"{place}: {self.pointer}: {self.message}" if self.pointer else f"{place}: {self.message}"


@dataclass(frozen=True, slots=True)
class Source:
    """A document and where it stands.

    Attributes:
        lines: the line of each field that has one, by its pointer.
    """

    file: str
    line: int
    document: Mapping[str, Any]
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)

    def problem(self, pointer: str, message: str) -> Problem:
        """Say what is wrong with a field, at the line of the nearest one that stands in the file."""
        place = pointer
        while place and place not in self.lines:
            place = place.rpartition("/")[0]
        return Problem(self.file, self.lines.get(place, self.line), pointer, message)


def read_sources(given: Sequence[str]) -> tuple[list[Source], list[Problem]]:
    """Read the documents of files and folders, and all that is wrong with them.

    Args:
        given: files, folders (read with all below them), or `-` for standard input.

    Raises:
        CliError: one of them cannot be read, or there are none in them.
    """
    sources: list[Source] = []
    problems: list[Problem] = []
    for path in _files(given):
        file = "standard input" if path == "-" else path
        for found in _documents(_text(path), file):
            if isinstance(found, Problem):
                problems.append(found)
            elif not isinstance(found.document, dict):
                problems.append(found.problem("", "is no job document: an object is needed"))
            else:
                sources.append(found)
    if not sources and not problems:
        raise CliError(f"{', '.join(given)}: no job documents are there", ExitCode.USAGE)
    return sources, problems


def _files(given: Sequence[str]) -> Iterator[str]:
    seen: set[str] = set()
    for place in given:
        if place != "-" and Path(place).is_dir():
            found = sorted(_below(place))
            if not found:
                kinds = ", ".join(SUFFIXES)
                raise CliError(f"{place} holds no file with one of {kinds}", ExitCode.USAGE)
        else:
            found = [place]
        for path in found:
            key = path if path == "-" else os.path.realpath(path)
            if key not in seen:
                seen.add(key)
                yield path


def _below(folder: str) -> list[str]:
    found: list[str] = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            _regular(os.path.join(place, name))  # noqa: PTH118 - as it was given, for messages
            for name in files
            if name.endswith(SUFFIXES) and not name.startswith(".")
        ]
        if len(found) > _MOST_FILES:
            raise CliError(f"{folder} holds more than {_MOST_FILES} files", ExitCode.USAGE)
    return found


def _regular(path: str) -> str:
    """Return a path in a folder that can be read to its end.

    Raises:
        CliError: it is a FIFO, a socket or a device: who reads it may wait for ever.
    """
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise CliError(f"{path} cannot be read: {error.strerror}", ExitCode.USAGE) from error
    if not stat.S_ISREG(mode):
        raise CliError(
            f"{path} is no regular file but a {_KINDS.get(stat.S_IFMT(mode), 'device')}: it is not read in a"
            " folder; take it out, or give it by its own name with -f",
            ExitCode.USAGE,
        )
    return path


def _text(path: str) -> str:
    from noonmark.cli.schedules.files import MAX_FILE_BYTES  # noqa: PLC0415 - not needed to show help

    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"{path} cannot be read: {error}", ExitCode.USAGE) from error
    if len(data) > MAX_FILE_BYTES:
        raise CliError(f"{path} has more than {MAX_FILE_BYTES} bytes", ExitCode.USAGE)
    return text


def _documents(text: str, file: str) -> Iterator[Source | Problem]:
    lines = _json_lines(text)
    if lines is None:
        whole = _json(text, file)
        yield from _yaml(text, file) if whole is None else whole
        return
    for number, line in lines:
        try:
            yield _checked(Source(file, number, json.loads(line, object_pairs_hook=_once_each)))
        except (ValueError, RecursionError) as error:
            yield Problem(file, number, "", f"is no JSON: {error}")


def _json_lines(text: str) -> list[tuple[int, str]] | None:
    """Return the lines of a file that has a JSON object on each, else None."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    objects = all(line.lstrip().startswith("{") and line.rstrip().endswith("}") for _, line in lines)
    return lines if len(lines) > 1 and objects else None


def _json(text: str, file: str) -> list[Source | Problem] | None:
    """Return the documents of a JSON file, those of a list one by one; None where it is no JSON.

    JSON is YAML but for how it writes what is beyond the BMP, so only the lines are asked of YAML.
    """
    import yaml  # noqa: PLC0415 - takes a while to load

    from noonmark.cli.terminal.yaml_text import loader  # noqa: PLC0415

    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    try:
        node = yaml.compose(text, loader())
    except (yaml.YAMLError, RecursionError, ValueError):
        node = None
    if not isinstance(data, list):
        return [_source(file, node, data)]
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [None] * len(data)
    return [_source(file, one, item) for one, item in zip(nodes, data, strict=True)]


def _source(file: str, node: Any, data: Any) -> Source | Problem:
    """Make a source of a document and of the YAML node that tells its lines; None: they are not known."""
    if node is None:
        return _checked(Source(file, 1, data))
    lines: dict[str, int] = {}
    for pointer, line in _lines(node, ""):
        if pointer in lines:
            return Problem(
                file, line, pointer, f"is given a second time; the first is in line {lines[pointer]}"
            )
        lines[pointer] = line
    return _checked(Source(file, node.start_mark.line + 1, data, lines))


def _checked(source: Source) -> Source | Problem:
    """Return a source whose document can be sent."""
    try:
        json.dumps(source.document, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError):
        told = "holds what JSON has not: NaN, an infinite number, bytes, a date, or half of a character"
        return source.problem("", told)
    return source


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of a line of JSON.

    Raises:
        ValueError: a field is given twice.
    """
    made = dict(pairs)
    if len(made) < len(pairs):
        double = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"{double!r} is given a second time")
    return made


def _yaml(text: str, file: str) -> Iterator[Source | Problem]:
    """Yield the documents of a YAML stream; those of lists one by one."""
    import yaml  # noqa: PLC0415

    from noonmark.cli.terminal.yaml_text import loader  # noqa: PLC0415

    reader = loader()(text)
    try:
        while reader.check_node():
            node = reader.get_node()
            nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
            _check_size(node)
            for one in nodes:
                data = reader.construct_document(one)
                if data is not None:
                    yield _source(file, one, data)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        told = " ".join(filter(None, (error.context, error.problem)))
        hint = "; an expression that starts with * stands in quotes" if "alias" in told else ""
        yield Problem(file, mark.line + 1 if mark else 1, "", f"is neither YAML nor JSON: {told}{hint}")
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        told = " ".join(str(error).split()) or "nested too deeply"
        yield Problem(file, 1, "", f"is neither YAML nor JSON: {told}")
    finally:
        reader.dispose()


def _check_size(node: Any) -> None:
    """Make sure that a document is small enough to be walked through.

    Raises:
        ValueError: it is not.
    """
    if _size(node, {}) > _MOST_VALUES:
        raise ValueError(f"with its aliases written out, it has more than {_MOST_VALUES} values")


def _size(node: Any, known: dict[int, int]) -> int:
    """Return how many nodes there are with every alias written out; it looks at each one once."""
    import yaml  # noqa: PLC0415

    found = known.get(id(node))
    if found is None:
        below = node.value if isinstance(node, yaml.SequenceNode) else ()
        if isinstance(node, yaml.MappingNode):
            below = (part for pair in node.value for part in pair)
        found = known[id(node)] = 1 + sum(_size(part, known) for part in below)
    return found


def _lines(node: Any, pointer: str) -> Iterator[tuple[str, int]]:
    """Yield the pointer and line of each field below a node."""
    import yaml  # noqa: PLC0415

    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                name = key.value.replace("~", "~0").replace("/", "~1")
                yield f"{pointer}/{name}", key.start_mark.line + 1
                yield from _lines(value, f"{pointer}/{name}")
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            yield f"{pointer}/{place}", value.start_mark.line + 1
            yield from _lines(value, f"{pointer}/{place}")
