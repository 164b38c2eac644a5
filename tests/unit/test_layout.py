"""One namespace in three roots, and in the wheel whatever the program reads at run time."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

import noonmark

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / name for name in ("services", "shared", "schemas")]
HOUSES = [ROOT / "shared" / name for name in ("internal", "sdk", "tools")]
ROOTS = [FOLDERS[0], *HOUSES, FOLDERS[2]]
MOST_MODULES = 20
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
        if (lines := len(path.read_text().splitlines())) > 400
    }

    assert long == {}
