"""Names in code use the words of the field: none uses a word of `forbidden_words.txt`, and the glossary has the others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORDS_FILE = Path(__file__).with_name("forbidden_words.txt")
FOLDERS = [ROOT / name for name in ("services", "shared", "schemas")]
GLOSSARY = ROOT / "docs" / "glossary.md"

KINDS = {"class", "function", "attribute", "parameter", "module", "sql"}

WORDS_OF_THE_DESIGN = "job, schedule, run, attempt, fence, lane, pool, lease, heartbeat, outbox, relay, misfire, lost, dead letter, verdict"
WORDS_OF_THE_FIELD = (
    "attempt, backoff, batch, checkpoint, claim, commit, consumer, dead letter, deadline, dispatch, drain, enqueue, fence,"
    " flush, heartbeat, in flight, lag, lease, offset, outbox, owner, partition, poll, promote, queue, rebalance, redrive,"
    " registry, relay, requeue, retry, shard, slot, snapshot, sweep, throttle, token, watermark"
)
ENTRY_OF_WORD = {"promote": "promotion"}
"""Entries that have another form than the word."""


@dataclass(frozen=True)
class Name:
    """A name that the product defines."""

    kind: str
    text: str
    path: Path
    line: int

    @property
    def place(self) -> str:
        """The path below `noonmark/`."""
        return str(self.path).rpartition("/noonmark/")[2]


@dataclass(frozen=True)
class Word:
    """A row of the list."""

    text: str
    preferred: str
    kinds: frozenset[str]

    def is_in(self, name: Name, exempt: Iterable[str] = ()) -> bool:
        """Whether a name of a checked kind contains the word, apart from phrases that are exempt."""
        if name.kind not in self.kinds:
            return False
        if self.text.startswith("="):
            return name.text.lstrip("_") == self.text[1:] and self.text[1:] not in exempt
        left = joined(name.text)
        for phrase in exempt:
            left = left.replace(joined(phrase), "_/_")
        return joined(self.text) in left


@cache
def joined(name: str) -> str:
    """Return the parts of a name in lower case, each between underscores."""
    return f"_{'_'.join(parts(name))}_"


def parts(name: str) -> list[str]:
    """Split a snake_case or CamelCase name into its lower-case words."""
    return [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def rows(text: str, section: str) -> Iterator[list[str]]:
    """Yield the columns of each row in a section of the list."""
    body = text.partition(f"\n[{section}]\n")[2].partition("\n[")[0]
    for line in body.splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")


def forbidden_words() -> list[Word]:
    """Return the words of the list."""
    found = []
    for word, preferred, kinds in rows(WORDS_FILE.read_text(encoding="utf-8"), "words"):
        found.append(Word(word, preferred, frozenset(KINDS if kinds == "all" else kinds.split())))
    return found


@dataclass(frozen=True)
class Exemption:
    """A phrase that may stay, everywhere or in the files whose path begins so."""

    phrase: str
    path: str
    reason: str

    def covers(self, name: Name) -> bool:
        return name.place.startswith(self.path)


def exemptions() -> list[Exemption]:
    """Return the phrases that keep a forbidden word, with their reasons."""
    found = []
    for row, reason in rows(WORDS_FILE.read_text(encoding="utf-8"), "exemptions"):
        path, _, phrase = row.rpartition(":")
        found.append(Exemption(phrase, path, reason))
    return found


@cache
def names_of_the_product() -> list[Name]:
    """Return every name that a file of the product defines."""
    found = []
    for folder in FOLDERS:
        for path in sorted(folder.rglob("noonmark/**/*.py")):
            module = path.parent.name if path.name == "__init__.py" else path.stem
            found.append(Name("module", module, path, 1))
            found += names_in(ast.parse(path.read_text(encoding="utf-8")), path)
        found += [Name("sql", path.stem, path, 1) for path in sorted(folder.rglob("noonmark/**/*.sql"))]
    return found


@cache
def flagged() -> list[tuple[Name, Word]]:
    """Return the names that contain a word of the list, exempt or not."""
    words = forbidden_words()
    hits: dict[tuple[str, str], list[Word]] = {}
    found = []
    for name in names_of_the_product():
        key = (name.kind, name.text)
        if key not in hits:
            hits[key] = [word for word in words if word.is_in(name)]
        found += [(name, word) for word in hits[key]]
    return found


def names_in(module: ast.Module, path: Path) -> Iterator[Name]:
    """Yield the names that a module defines; names of modules and classes count as attributes, local ones not at all."""
    for scope in ast.walk(module):
        if isinstance(scope, ast.ClassDef):
            yield Name("class", scope.name, path, scope.lineno)
        elif isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Name("function", scope.name, path, scope.lineno)
            given = scope.args
            for parameter in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]:
                if parameter is not None:
                    yield Name("parameter", parameter.arg, path, parameter.lineno)
        elif isinstance(scope, ast.Attribute) and isinstance(scope.ctx, ast.Store):
            yield Name("attribute", scope.attr, path, scope.lineno)
        if isinstance(scope, ast.Module | ast.ClassDef):
            for target in targets(scope.body):
                yield Name("attribute", target.id, path, target.lineno)


def targets(body: list[ast.stmt]) -> Iterator[ast.Name]:
    """Yield the names that statements of a module or a class assign, also below `if` and `try`."""
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            left = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (node for target in left for node in ast.walk(target) if isinstance(node, ast.Name))
        elif isinstance(statement, ast.If | ast.Try):
            yield from targets(statement.body)
            yield from targets(statement.orelse)


def test_no_name_uses_a_word_that_is_not_of_the_field():
    exempt = exemptions()
    wrong = [
        f"{name.path.relative_to(ROOT)}:{name.line}: {name.kind} {name.text}: instead of {word.text.lstrip('=')!r}"
        f" use {word.preferred}"
        for name, word in flagged()
        if word.is_in(name, [one.phrase for one in exempt if one.covers(name)])
    ]

    if wrong:
        shown = "\n  ".join(sorted(wrong))
        pytest.fail(
            f"{len(wrong)} names use words of {WORDS_FILE.relative_to(ROOT)}:\n\n  {shown}", pytrace=False
        )


def test_every_exemption_is_needed_and_has_a_reason():
    unused = [
        one
        for one in exemptions()
        if not any(one.covers(name) and not word.is_in(name, [one.phrase]) for name, word in flagged())
    ]

    assert unused == []
    assert [one for one in exemptions() if not one.reason.strip()] == []


def test_the_list_is_well_formed():
    words = forbidden_words()
    by_name = [(word.text, kind) for word in words for kind in word.kinds]

    assert len(words) > 50
    assert {kind for word in words for kind in word.kinds} <= KINDS
    assert len(by_name) == len(set(by_name))
    assert [word.text for word in words if not word.preferred.strip()] == []


@pytest.mark.parametrize(
    ("word", "name", "found"),
    [
        ("told", "events_told", True),
        ("told", "ToldEvents", True),
        ("told", "untold", False),
        ("let_go", "_let_go_all", True),
        ("let_go", "let_us_go", False),
        ("=Books", "_Books", True),
        ("=Books", "BooksOfRuns", False),
    ],
)
def test_a_word_is_found_as_whole_parts_of_a_name(word, name, found):
    assert Word(word, "", frozenset({"class"})).is_in(Name("class", name, ROOT, 1)) is found


def test_an_exempt_phrase_may_stay_and_nothing_around_it():
    word = Word("look", "check", frozenset({"attribute"}))

    assert not word.is_in(Name("attribute", "MIN_LOOK_BACK", ROOT, 1), ["look_back"])
    assert word.is_in(Name("attribute", "FIRST_LOOK", ROOT, 1), ["look_back"])
    assert word.is_in(Name("attribute", "LOOK_BACK_LOOK", ROOT, 1), ["look_back"])


def test_names_are_collected_with_their_kinds():
    text = (
        "LIMIT = 1\nif LIMIT:\n    SIZE: int = 2\n"
        "class Thing:\n    size: int\n    def fill(self, *items, deep=False):\n        local = 1\n        self.full = local\n"
    )
    found = {(name.kind, name.text) for name in names_in(ast.parse(text), ROOT)}

    assert found == {
        ("attribute", "LIMIT"),
        ("attribute", "SIZE"),
        ("class", "Thing"),
        ("attribute", "size"),
        ("function", "fill"),
        ("parameter", "self"),
        ("parameter", "items"),
        ("parameter", "deep"),
        ("attribute", "full"),
    }


def test_statements_modules_and_schemas_are_all_read():
    found = names_of_the_product()

    assert {name.kind for name in found} == KINDS
    assert {name.path.relative_to(ROOT).parts[0] for name in found} == {"services", "shared", "schemas"}
    assert len([name for name in found if name.kind == "sql"]) > 200


def test_every_word_of_the_design_and_of_the_field_that_names_use_is_in_the_glossary():
    heads = re.findall(r"^\*\*(.+?)\*\*", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    entries = {part.strip().rstrip(".").lower() for head in heads for part in head.split(",")}
    used = {"_".join(parts(name.text)) for name in names_of_the_product()}
    text = f"_{'_'.join(sorted(used))}_"
    words = sorted({*WORDS_OF_THE_DESIGN.split(", "), *WORDS_OF_THE_FIELD.split(", ")})
    in_use = [word for word in words if re.search(rf"_{word.replace(' ', '_')}(s|es)?_", text)]

    assert len(in_use) > 35
    assert [word for word in in_use if ENTRY_OF_WORD.get(word, word) not in entries] == []
