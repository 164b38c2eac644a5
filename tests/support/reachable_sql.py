"""Which tables the code of a service reads and changes, found by reading the code and its SQL.

A service starts at all modules of its package. From a function or class it reaches the names that its body uses: those of
its module, and those that the module imports. Methods are reached with their class. Of SQL it reads the files that
`statement` names, texts that look like SQL, the functions of the schema that these call, and the triggers that they fire.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOTS = tuple(ROOT / name for name in ("services", "shared/internal", "shared/sdk", "schemas"))
VERSIONS = ROOT / "shared/internal/noonmark/store/migrations/versions"

Place = tuple[str, str]
"""A module and a name at its top level."""

_LISTS: tuple[Place, ...] = (
    ("noonmark.store.database.planned_once", "PLANNED_ONCE"),
    ("noonmark.store.database.planned_once", "PLANNED_TOGETHER"),
    ("noonmark.store.database.planned_once", "RARE_CONFLICTS"),
)
"""Name statements without using them."""


@dataclass(slots=True)
class Module:
    """What a module defines and imports."""

    name: str
    nodes: dict[str, list[ast.AST]] = field(default_factory=lambda: defaultdict(list))
    imported: dict[str, Place] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)


@cache
def module(name: str) -> Module | None:
    """Read a module of the product; None for any other."""
    path = _path(name)
    if path is None:
        return None
    read = Module(name)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("noonmark"):
            for one in node.names:
                target = f"{node.module}.{one.name}"
                if _path(target) is not None:
                    read.modules[one.asname or one.name] = target
                else:
                    read.imported[one.asname or one.name] = (node.module, one.name)
    for node in tree.body:
        for name_of in _names(node):
            read.nodes[name_of].append(node)
    return read


def _path(name: str) -> Path | None:
    relative = Path(*name.split("."))
    for root in ROOTS:
        for path in (root / relative.with_suffix(".py"), root / relative / "__init__.py"):
            if path.exists():
                return path
    return None


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def reached(package: str) -> set[Place]:
    """Return every name that the modules of a package reach."""
    folder = next(
        root / Path(*package.split(".")) for root in ROOTS if (root / Path(*package.split("."))).is_dir()
    )
    root = next(root for root in ROOTS if folder.is_relative_to(root))
    todo: list[Place] = []
    for path in folder.rglob("*.py"):
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        read = module(name)
        assert read is not None
        todo += [(name, one) for one in read.nodes]
    seen: set[Place] = set()
    while todo:
        place = todo.pop()
        if place in seen:
            continue
        seen.add(place)
        todo += _used(place)
    return seen


def _used(place: Place) -> Iterator[Place]:
    read = module(place[0])
    if read is None:
        return
    for node in read.nodes.get(place[1], []):
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                if part.id in read.nodes and part.id != place[1]:
                    yield place[0], part.id
                elif part.id in read.imported:
                    yield read.imported[part.id]
            elif (
                isinstance(part, ast.Attribute)
                and isinstance(part.value, ast.Name)
                and part.value.id in read.modules
            ):
                yield read.modules[part.value.id], part.attr
    # A name that a package only passes on.
    if place[1] in read.imported:
        yield read.imported[place[1]]


def texts(places: Iterable[Place]) -> dict[str, set[Place]]:
    """Return the texts of SQL in these places: names of files as `<name>.sql`, or the texts themselves."""
    found: defaultdict[str, set[Place]] = defaultdict(set)
    files = {path.stem for path in ROOT.glob("shared/internal/noonmark/store/*/sql/*.sql")}
    for place in places:
        if place in _LISTS:
            continue
        read = module(place[0])
        for node in read.nodes.get(place[1], []) if read else []:
            documented = {id(d) for d in _docstrings(node)}
            for part in ast.walk(node):
                if (
                    isinstance(part, ast.Constant)
                    and isinstance(part.value, str)
                    and id(part) not in documented
                ):
                    if part.value in files:
                        found[f"{part.value}.sql"].add(place)
                    elif _SQL.search(part.value):
                        found[part.value].add(place)
    return found


def _docstrings(node: ast.AST) -> Iterator[ast.AST]:
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = part.body[0]
            if isinstance(first, ast.Expr):
                yield first.value


# -- SQL -----------------------------------------------------------------------------------------------

Privilege = tuple[str, str]
"""A table, and select, insert, update or delete."""

_SQL = re.compile(
    r"\b(select\s|insert\s+into\s|update\s+\w+\s+set\s|update\s+\w+\s|delete\s+from\s|from\s)", re.IGNORECASE
)
_COMMENT = re.compile(r"--.*")
_FUNCTION = re.compile(
    r"create (?:or replace )?function (\w+)\s*\(.*?\$\$(.*?)\$\$", re.IGNORECASE | re.DOTALL
)
_TRIGGER = re.compile(
    r"create trigger \w+ (?:after|before) ((?:insert|update|delete|truncate|or| of \w+|\s)+?) on (\w+)\b.*?"
    r"execute function (\w+)",
    re.IGNORECASE | re.DOTALL,
)
_DEFINER = re.compile(r"alter function (\w+)\([^)]*\)\s+security definer", re.IGNORECASE)
_CHANGE = re.compile(r"\b(insert\s+into|delete\s+from|update)\s+(?:only\s+)?(\w+)", re.IGNORECASE)
_LOCK = re.compile(
    r"\bfor\s+(?:no\s+key\s+update|key\s+share|update|share)\b(?:\s+of\s+(\w+(?:\s*,\s*\w+)*))?",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\w+|[(),;]")
_AFTER_TABLE = frozenset(
    [
        "on",
        "where",
        "join",
        "left",
        "right",
        "full",
        "cross",
        "inner",
        "natural",
        "for",
        "order",
        "group",
        "limit",
        "set",
        "using",
        "returning",
        "union",
        "values",
        "select",
        "having",
        "window",
        "fetch",
        "offset",
        "when",
        "loop",
        "is",
        "and",
        "or",
        "tablesample",
        "except",
        "intersect",
    ]
)
_CONFLICT = re.compile(r"\bon\s+conflict\b(\s*\()?[^;]*?\bdo\s+(nothing|update)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Schema:
    """What the migrations define.

    Attributes:
        tables: names of tables.
        functions: name to body, of those that run as their caller.
        definers: names of functions that run as their owner.
        triggers: (table, verb) to functions, each with the columns whose update fires it; none for any.
    """

    tables: frozenset[str]
    functions: Mapping[str, str]
    definers: frozenset[str]
    triggers: Mapping[Privilege, set[tuple[str, str]]]


@cache
def schema() -> Schema:
    """Read the migrations, the oldest first."""
    tables: set[str] = set()
    functions: dict[str, str] = {}
    definers: set[str] = set()
    triggers: defaultdict[Privilege, set[tuple[str, str]]] = defaultdict(set)
    # The rules about access follow the tables that they are about.
    for path in sorted(VERSIONS.glob("*.sql"), key=lambda path: path.stem):
        text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
        tables |= set(re.findall(r"create table (?:if not exists )?(\w+)", text, re.IGNORECASE))
        functions |= dict(_FUNCTION.findall(text))
        definers |= set(_DEFINER.findall(text))
        for events, table, function in _TRIGGER.findall(text):
            for verb, column in re.findall(r"(insert|update|delete)(?: of (\w+))?", events, re.IGNORECASE):
                triggers[table, verb.lower()].add((function, column))
    return Schema(
        frozenset(tables | {"alembic_version"}),
        {name: body for name, body in functions.items() if name not in definers},
        frozenset(definers),
        triggers,
    )


def privileges(text: str) -> tuple[set[Privilege], set[str]]:
    """Return what a text of SQL needs, and the functions that run as their owner that it calls.

    Functions that run as their caller, and triggers, are followed.
    """
    known = schema()
    needed: set[Privilege] = set()
    called: set[str] = set()
    todo, seen = [text], set[str]()
    while todo:
        body = _COMMENT.sub("", todo.pop())
        direct = _direct(body, known.tables)
        needed |= direct
        names = set(re.findall(r"\b(noonmark_\w+)\s*\(", body))
        names |= {
            function
            for one in direct
            for function, column in known.triggers.get(one, ())
            if not column or re.search(rf"\b{column}\s*=", body)
        }
        called |= set(re.findall(r"\b(noonmark_\w+)\s*\(", body)) & known.definers
        for name in names & set(known.functions) - seen:
            seen.add(name)
            todo.append(known.functions[name])
    return needed, called


def _direct(text: str, tables: frozenset[str]) -> set[Privilege]:
    text = re.sub(r"'[^']*'", "''", text) if "format(" not in text else text
    own = set(re.findall(r"\b(\w+)\s+as\s+(?:not\s+)?(?:materialized\s+)?\(", text, re.IGNORECASE))
    found = {(table, "select") for table in _aliases(text).values() if table in tables - own}
    for change in _CHANGE.finditer(text):
        verb, table = change[1].split()[0].lower(), change[2].lower()
        if table not in tables or re.search(
            r"\bfor\s+(no\s+key\s+)?$", text[: change.start()], re.IGNORECASE
        ):
            continue
        found.add((table, verb))
        rest = _same_level(text, change.end())
        if verb != "insert" or re.search(r"\breturning\b", rest, re.IGNORECASE):
            found.add((table, "select"))
        if verb == "insert" and (conflict := _CONFLICT.search(rest)):
            if conflict[1]:
                found.add((table, "select"))
            if conflict[2].lower() == "update":
                found |= {(table, "update"), (table, "select")}
    for lock in _LOCK.finditer(text):
        level = _level_before(text, lock.start())
        aliases = _aliases(level)
        wanted = re.split(r"\s*,\s*", lock[1]) if lock[1] else list(aliases)
        found |= {(aliases[one], "update") for one in wanted if aliases.get(one) in tables - own}
    return found


def _aliases(text: str) -> dict[str, str]:
    """Alias to table, of the lists after `from`, `join` and `using`."""
    tokens = _TOKEN.findall(text.lower())
    ends = _closings(tokens)
    found: dict[str, str] = {}
    for place, token in enumerate(tokens):
        at = place + 1
        listed = token in {"from", "join", "using"}
        while listed and at < len(tokens):
            while at < len(tokens) and tokens[at] in {"only", "lateral"}:
                at += 1
            if at >= len(tokens):
                break
            table = tokens[at]
            at = ends.get(at, at) + 1
            if at < len(tokens) and tokens[at] == "(":
                # The arguments of a function, or the columns of an alias.
                table, at = "", ends.get(at, at) + 1
            if at < len(tokens) and tokens[at] == "as":
                at += 1
            alias = table
            if at < len(tokens) and tokens[at][0].isalpha() and tokens[at] not in _AFTER_TABLE:
                alias, at = tokens[at], at + 1
            if at < len(tokens) and tokens[at] == "(":
                at = ends.get(at, at) + 1
            if table and table[0].isalpha():
                found[alias] = table
            listed = at < len(tokens) and tokens[at] == ","
            at += 1
    return found


def _closings(tokens: Sequence[str]) -> dict[int, int]:
    """The place of each opening parenthesis to that of the closing one."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token == "(":
            opened.append(place)
        elif token == ")" and opened:
            found[opened.pop()] = place
    return found


def _same_level(text: str, start: int) -> str:
    """What follows, up to the end of the parenthesis or of the statement."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth < 0 or (depth == 0 and text[place] == ";"):
            return text[start:place]
    return text[start:]


def _level_before(text: str, end: int) -> str:
    """What precedes, from the parenthesis that is open there on, without what closed parentheses contain."""
    depth, kept = 0, []
    for place in range(end - 1, -1, -1):
        if text[place] == ")":
            depth += 1
        elif text[place] == "(":
            depth -= 1
            if depth < 0:
                break
        elif text[place] == ";" and depth == 0:
            break
        if depth == 0:
            kept.append(text[place])
    return "".join(reversed(kept))


def needed_by(package: str) -> tuple[dict[str, set[str]], set[str]]:
    """Return table to verbs, and functions that run as their owner, of all SQL that a package reaches."""
    tables: defaultdict[str, set[str]] = defaultdict(set)
    functions: set[str] = set()
    files = {path.name: path for path in ROOT.glob("shared/internal/noonmark/store/*/sql/*.sql")}
    for text in texts(reached(package)):
        needed, called = privileges(files[text].read_text(encoding="utf-8") if text in files else text)
        functions |= called
        for table, verb in needed:
            tables[table].add(verb)
    return dict(tables), functions
