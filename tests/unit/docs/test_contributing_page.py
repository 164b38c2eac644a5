"""CONTRIBUTING.md describes the folders and layers that are there."""

import re
import tomllib
from pathlib import Path

from tests.unit.docs.pages import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = TEXT.partition("## Where things are")[2].partition("\n## ")[0]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def table(head: str) -> list[list[str]]:
    """Return the rows of the table whose first header is this."""
    body = SECTION.partition(f"\n| {head} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in body.splitlines()[2:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`([\w./]+)`", cell)


def test_every_root_is_listed_with_its_packages():
    listed = {names(row[0])[0]: set(names(row[-1])) for row in table("root")}
    wheel = [Path(path) for path in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]
    found = {
        str(path.parent): {below.parent.name for below in (ROOT / path).glob("*/__init__.py")}
        for path in wheel
    }

    assert listed == found


def test_layers_are_those_of_the_import_contract():
    contract = PROJECT["tool"]["importlinter"]["contracts"][0]
    layers = [layer.replace("noonmark.", "").split(" | ") for layer in contract["layers"]]

    assert [names(row[1]) for row in table("layer")] == layers


def test_every_question_is_answered_with_paths_from_the_root():
    answers = {row[0]: [path for path in names(row[1]) if "/" in path] for row in table("question")}

    assert len(answers) == 5
    assert [question for question, paths in answers.items() if not paths] == []
    assert [path for paths in answers.values() for path in paths if not (ROOT / path).is_file()] == []
