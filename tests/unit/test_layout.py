"""One namespace in three roots, in the wheel whatever the program reads at run time, and bounds of length."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

import noonmark

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / name for name in ("services", "shared", "schemas")]
HOUSES = [ROOT / "shared" / name for name in ("internal", "sdk", "tools")]
ROOTS = [FOLDERS[0], *HOUSES, FOLDERS[2]]
MOST_MODULES = 20
MOST_LINES = 400
MOST_LINES_OF_A_BODY = 40
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
PACKAGES = [ROOT / package for package in WHEEL["packages"]]


def subpackages(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.is_dir() and list(path.glob("*.py"))]


@pytest.mark.parametrize("root", [*ROOTS, FOLDERS[1]], ids=lambda root: root.name)
def test_neither_a_root_nor_its_part_of_the_namespace_is_a_package_of_its_own(root):
    assert not (root / "__init__.py").exists()
    assert not (root / "noonmark" / "__init__.py").exists()


def test_the_namespace_spans_all_roots():
    assert {Path(part) for part in noonmark.__path__} >= {root / "noonmark" for root in ROOTS}


def test_every_subpackage_is_a_package_and_says_that_it_is_typed():
    found = [package for root in ROOTS for package in subpackages(root / "noonmark")]

    assert len(found) > 10
    assert [str(p.relative_to(ROOT)) for p in found if not (p / "__init__.py").exists()] == []
    assert [str(p.relative_to(ROOT)) for p in found if not (p / "py.typed").exists()] == []


def test_no_subpackage_is_spread_over_two_roots():
    names = [package.name for root in ROOTS for package in subpackages(root / "noonmark")]

    assert len(names) == len(set(names))


def test_shared_holds_three_houses_and_nothing_else():
    found = {path for path in (ROOT / "shared").iterdir() if any(path.rglob("*.py"))}

    assert found == set(HOUSES)


def test_no_room_has_more_modules_than_people_overlook():
    rooms = {path.parent for package in PACKAGES for path in package.rglob("*.py")}
    modules = {room: [path for path in room.glob("*.py") if path.name != "__init__.py"] for room in rooms}

    assert {str(room.relative_to(ROOT)): len(m) for room, m in modules.items() if len(m) > MOST_MODULES} == {}


def test_every_room_says_what_it_is_for_what_it_may_import_and_where_to_start():
    inside = [path for root in (ROOTS[0], ROOTS[1]) for path in root.rglob("__init__.py")]
    rooms = [path for path in inside if len(list(path.parent.glob("*.py"))) > 3]
    said = {p: " ".join((ast.get_docstring(ast.parse(p.read_text())) or "").split()) for p in rooms}

    assert len(rooms) > 40
    assert [str(p.relative_to(ROOT)) for p, text in said.items() if "May import:" not in text] == []
    assert [str(p.relative_to(ROOT)) for p, text in said.items() if "tart with" not in text] == []


def test_the_wheel_takes_each_part_of_the_namespace_whole():
    assert [root / "noonmark" for root in ROOTS] == PACKAGES
    # Whatever lies in a package goes into the wheel, unless something here leaves it out.
    assert set(WHEEL) == {"packages"}
    assert set(PROJECT["tool"]["hatch"]["build"]) == {"dev-mode-dirs", "targets"}


def test_files_that_are_read_at_run_time_lie_inside_the_packages():
    data = [
        path
        for package in PACKAGES
        for path in package.rglob("*")
        if path.suffix in {".sql", ".xml", ".mako"}
    ]
    names = {path.name for path in data}

    assert len([path for path in data if path.suffix == ".sql"]) > 50
    assert {"pom.xml", "script.py.mako", "claim_once.sql", "0001_pre_baseline.sql"} <= names


def test_no_module_is_longer_than_people_read_at_once():
    long = {
        str(path.relative_to(ROOT)): lines
        for package in PACKAGES
        for path in package.rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > MOST_LINES
    }

    assert long == {}


def lines_of_the_body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count from the first statement to the last: neither the signature nor the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Look at statements only, for no expression holds a definition; `ast.walk` would take ten times as long."""
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, part, ())


def test_no_function_body_is_longer_than_people_read_at_once():
    long = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}: {lines} lines"
        for package in PACKAGES
        for path in sorted(package.rglob("*.py"))
        for function in functions_of(path)
        if (lines := lines_of_the_body(function)) > MOST_LINES_OF_A_BODY
    ]

    assert long == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            'def f(\n    a: int,\n    b: int,\n) -> None:\n    """First.\n\n    More.\n    """\n    g(a)\n\n    g(b)\n',
            3,
        ),
        ('def f() -> None:\n    """Only this."""\n', 0),
        ("async def f() -> None:\n    # why\n    g(\n        1,\n    )\n", 3),
    ],
    ids=["signature and docstring do not count", "no body", "no docstring"],
)
def test_lines_of_a_body_are_counted_from_its_first_statement_to_its_last(text, lines):
    function = ast.parse(text).body[0]

    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    assert lines_of_the_body(function) == lines


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the sets of modules that reach each other through imports (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_modules: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        open_modules.append(module)
        for other in sorted(graph[module]):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in open_modules:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            start = open_modules.index(module)
            members = open_modules[start:]
            del open_modules[start:]
            if len(members) > 1 or module in graph[module]:
                found.append(sorted(members))

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return found


def test_circles_are_found_whatever_their_length():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"d", "f"}, "f": {"e"}}

    assert circles(graph) == [["a", "b", "c"], ["e", "f"]]


def test_no_modules_import_each_other_in_a_circle():
    # Imports inside functions and under TYPE_CHECKING count, too.
    graph = grimp.build_graph("noonmark", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}

    assert len(imports) > 400
    assert circles(imports) == []
