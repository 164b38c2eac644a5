"""Files of declared jobs: their documents with file and line number."""

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

from noonmark.cli.submissions.shown_jobs import documents_in
from noonmark.cli.terminal.json_values import is_json_file, json_place
from noonmark.cli.terminal.problems import CliError, ExitCode, cannot_read

SUFFIXES: Final = (".yaml", ".yml", ".json", ".jsonl")
"""Suffixes of the files to read in a folder."""

_KINDS: Final = {stat.S_IFIFO: "FIFO", stat.S_IFSOCK: "socket"}
_MOST_FILES: Final = 10_000
_MOST_VALUES: Final = 500_000
"""Maximum number of values in a document with aliases expanded: nine lines can expand to a billion."""


class Problem(NamedTuple):
    """A problem in a file.

    Attributes:
        pointer: the field (RFC 6901); empty for the whole document.
    """

    file: str
    line: int
    pointer: str
    message: str

    def __str__(self) -> str:
        position = f"{self.file}:{self.line}"
        return (
            f"{position}: {self.pointer}: {self.message}" if self.pointer else f"{position}: {self.message}"
        )


@dataclass(frozen=True, slots=True)
class Source:
    """A document with its file and line.

    Attributes:
        lines: line number of each field, by pointer.
        shown: it was part of a job that a command printed; the job's other fields are ignored.
    """

    file: str
    line: int
    document: Mapping[str, Any]
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)
    shown: bool = False

    def problem(self, pointer: str, message: str) -> Problem:
        """Return a problem of a field, at the line of the nearest field in the file."""
        nearest = pointer
        while nearest and nearest not in self.lines:
            nearest = nearest.rpartition("/")[0]
        return Problem(self.file, self.lines.get(nearest, self.line), pointer, message)


def read_sources(given: Sequence[str]) -> tuple[list[Source], list[Problem]]:
    """Read the documents of files and folders, and their problems.

    Args:
        given: files, folders (recursive), or `-` for standard input.

    Raises:
        CliError: one of them cannot be read, or there are no documents.
    """
    sources: list[Source] = []
    problems: list[Problem] = []
    for path in _files(given):
        file = "standard input" if path == "-" else path
        for found in _documents(_text(path), file):
            for one in (found,) if isinstance(found, Problem) else _unwrapped(found):
                if isinstance(one, Problem):
                    problems.append(one)
                elif not isinstance(one.document, dict):
                    problems.append(one.problem("", "is not a job document: must be an object"))
                else:
                    sources.append(one)
    if not sources and not problems:
        raise CliError(f"no job documents found in {', '.join(given)}", ExitCode.USAGE)
    return sources, problems


def _unwrapped(source: Source) -> Iterator[Source | Problem]:
    """Yield the documents of a job or a list that a command printed; others are unchanged."""
    for found in documents_in(source.document):
        if not found.pointer:
            yield source
            continue
        begin = source.problem(found.pointer, found.problem or "is not a job document: must be an object")
        if found.problem or not isinstance(found.document, dict):
            yield begin
            continue
        lines = {
            pointer.removeprefix(found.pointer): line
            for pointer, line in source.lines.items()
            if pointer.startswith(f"{found.pointer}/")
        }
        yield Source(source.file, begin.line, found.document, lines, shown=found.shown)


def _files(given: Sequence[str]) -> Iterator[str]:
    seen: set[str] = set()
    for argument in given:
        if argument != "-" and Path(argument).is_dir():
            found = sorted(_below(argument))
            if not found:
                kinds = ", ".join(SUFFIXES)
                raise CliError(f"no files with suffix {kinds} found in {argument}", ExitCode.USAGE)
        else:
            found = [argument]
        for path in found:
            key = path if path == "-" else os.path.realpath(path)
            if key not in seen:
                seen.add(key)
                yield path


def _below(folder: str) -> list[str]:
    found: list[str] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            _regular(os.path.join(parent, name))  # noqa: PTH118 - as it was given, for messages
            for name in files
            if name.endswith(SUFFIXES) and not name.startswith(".")
        ]
        if len(found) > _MOST_FILES:
            raise CliError(f"{folder} contains more than {_MOST_FILES} files", ExitCode.USAGE)
    return found


def _regular(path: str) -> str:
    """Return the path of a regular file in a folder.

    Raises:
        CliError: it is a FIFO, a socket or a device: reading it can block forever.
    """
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise cannot_read(path, error) from error
    if not stat.S_ISREG(mode):
        raise CliError(
            f"{path} is not a regular file but a {_KINDS.get(stat.S_IFMT(mode), 'device')}; remove it"
            " from the folder, or name it with -f",
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
        raise cannot_read("standard input" if path == "-" else path, error) from error
    if len(data) > MAX_FILE_BYTES:
        raise CliError(f"{path} has more than {MAX_FILE_BYTES} bytes", ExitCode.USAGE)
    return text


def _documents(text: str, file: str) -> Iterator[Source | Problem]:
    lines = _json_lines(text)
    if lines is None:
        whole = _json(text, file)
        yield from whole if isinstance(whole, list) else _not_json(text, file, whole)
        return
    for number, line in lines:
        try:
            yield _checked(Source(file, number, json.loads(line, object_pairs_hook=_once_each)))
        except (ValueError, RecursionError) as error:
            yield Problem(file, number, "", f"is not JSON: {error}")


def _json_lines(text: str) -> list[tuple[int, str]] | None:
    """Return the lines of a JSON lines file; None for other files."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    objects = all(line.lstrip().startswith("{") and line.rstrip().endswith("}") for _, line in lines)
    return lines if len(lines) > 1 and objects else None


def _not_json(text: str, file: str, error: ValueError | RecursionError) -> Iterator[Source | Problem]:
    """Yield what a text is that is not JSON: YAML, or a problem if its name says JSON."""
    if not is_json_file(file) or not text.strip():
        yield from _yaml(text, file)
        return
    line, column, reason = json_place(error)
    yield Problem(file, line, "", f"is not JSON: column {column}: {reason}")


def _json(text: str, file: str) -> list[Source | Problem] | ValueError | RecursionError:
    """Return the documents of a JSON file, those of a list one by one; the error if it is not JSON.

    YAML does not read JSON's escapes beyond the BMP, so YAML is used only for the line numbers.
    """
    import yaml  # noqa: PLC0415 - takes a while to load

    from noonmark.cli.terminal.yaml_text import loader  # noqa: PLC0415

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        return error
    try:
        node = yaml.compose(text, loader())
    except (yaml.YAMLError, RecursionError, ValueError):
        node = None
    if not isinstance(data, list):
        return [_source(file, node, data)]
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [None] * len(data)
    return [_source(file, one, item) for one, item in zip(nodes, data, strict=True)]


def _source(file: str, node: Any, data: Any) -> Source | Problem:
    """Return the source of a document, with the line numbers of its YAML node, if known."""
    if node is None:
        return _checked(Source(file, 1, data))
    lines: dict[str, int] = {}
    for pointer, line in _lines(node, ""):
        if pointer in lines:
            return Problem(file, line, pointer, f"is a duplicate of line {lines[pointer]}")
        lines[pointer] = line
    return _checked(Source(file, node.start_mark.line + 1, data, lines))


def _checked(source: Source) -> Source | Problem:
    """Return a source whose document has a JSON form."""
    try:
        json.dumps(source.document, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError):
        reason = "contains a value without a JSON form: NaN, infinity, bytes, a date, or a lone surrogate"
        return source.problem("", reason)
    return source


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of a JSON line.

    Raises:
        ValueError: a field occurs twice.
    """
    made = dict(pairs)
    if len(made) < len(pairs):
        double = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"duplicate field {double!r}")
    return made


def _yaml(text: str, file: str) -> Iterator[Source | Problem]:
    """Yield the documents of a YAML stream, those of lists one by one."""
    import yaml  # noqa: PLC0415

    from noonmark.cli.terminal.yaml_text import loader, yaml_problem  # noqa: PLC0415

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
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        found = yaml_problem(error)
        column = f"column {found.column}: " if found.column is not None else ""
        yield Problem(file, found.line or 1, "", f"is neither YAML nor JSON: {column}{found.reason}")
    finally:
        reader.dispose()


def _check_size(node: Any) -> None:
    """Check that a document is small enough to process.

    Raises:
        ValueError: it has too many values.
    """
    if _size(node, {}) > _MOST_VALUES:
        raise ValueError(f"has more than {_MOST_VALUES} values with its aliases expanded")


def _size(node: Any, known: dict[int, int]) -> int:
    """Return the number of nodes with every alias expanded, visiting each node once."""
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
        for index, value in enumerate(node.value):
            yield f"{pointer}/{index}", value.start_mark.line + 1
            yield from _lines(value, f"{pointer}/{index}")
