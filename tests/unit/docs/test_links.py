"""What the pages point to is there: files, headings, statements, tests, metrics, settings, commands."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import CliRunner, command_of
from tests.unit.docs.pages import DOCS, PAGES, ROOT, anchors, blocks, name, prose

from noonmark.cli.main import app
from noonmark.settings import PREFIX, Settings
from noonmark.store.database.statements import names as statement_names
from noonmark.telemetry.metrics import TABLE

SQL_FUNCTIONS = {
    *("noonmark_refuse_held_slot", "noonmark_keep_slot", "noonmark_rowless_holder", "noonmark_delete_tasks"),
    *("noonmark_now", "noonmark_uuid7", "noonmark_make_day", "noonmark_facts_changed", "noonmark_drop_day"),
}
NO_SETTINGS = {
    "NOONMARK_TEST_DATABASE_URL",
    "NOONMARK_TEST_KAFKA_BOOTSTRAP",
    "NOONMARK_TEST_RECORD",
    "NOONMARK_PG_BIN",
    "NOONMARK_SECRET_",
} | {
    f"NOONMARK_{name}"
    for name in ("RUN_ID", "JOB_ID", "NAMESPACE", "ATTEMPT", "FENCE", "SCHEDULED_FOR", "IDEMPOTENCY_KEY")
}
"""Variables that tests, the development stack and scripts read, and what the names of secrets begin with."""

MODULE_ROOTS = [
    ROOT / root / "noonmark"
    for root in ("services", "shared/internal", "shared/sdk", "shared/tools", "schemas")
]

OTHER_NAMES = {
    *("noonmark_outbox", "noonmark_stack", "noonmark_handlers", "noonmark_api", "noonmark_roles"),
    *(f"noonmark_{name}_service" for name in ("intake", "trigger", "dispatcher", "worker", "observer")),
}
"""A table in applications' databases, names of the pytest plugin, roles of Postgres, a claim: no metrics."""

by_page = pytest.mark.parametrize("page", PAGES, ids=name)


def links(page: Path) -> Iterator[tuple[str, str]]:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not target.startswith(("http://", "https://")):
            file, _, anchor = target.partition("#")
            yield file, anchor


@cache
def python_files() -> set[str]:
    """Each file by its path, and by every later part of its path that begins at a folder or is the file's name."""
    folders = ("services", "shared", "schemas", "tests", "benchmarks", "examples", "helm")
    found = [path.relative_to(ROOT).parts for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return {"/".join(parts[start:]) for parts in found for start in range(len(parts))}


@by_page
def test_every_link_leads_to_a_file_and_a_heading(page):
    for file, anchor in links(page):
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{name(page)} links to {file}, which is not there"
        if anchor:
            assert anchor in anchors(target), f"{name(page)} links to {file}#{anchor}"


@by_page
def test_every_statement_that_is_named_exists(page):
    named = set(re.findall(r"`(\w+)\.sql`", page.read_text(encoding="utf-8")))
    assert named <= set(statement_names())


@by_page
def test_every_file_of_the_project_that_is_named_exists(page):
    for path in re.findall(r"`((?:tests|shared|services|schemas|benchmarks|examples)/[\w./]+)`", prose(page)):
        assert (ROOT / path).exists(), path


FILES_OF_USERS = {"mails/jobs.py", "shop/mails.py"}
"""Examples of what readers write."""


@by_page
def test_every_module_that_is_named_by_a_part_of_its_path_exists(page):
    named = set(re.findall(r"`([\w./-]+\.py)`", page.read_text(encoding="utf-8")))
    assert named - FILES_OF_USERS - python_files() == set()


def exists_in_the_product(dotted: str) -> bool:
    """Whether a package, a module or a name in one is there; True for names that begin with no package of noonmark.

    Topics, types of events and attributes of spans begin with `noonmark.`, too.
    """
    package, *rest = dotted.split(".")[1:]
    folder = next((root / package for root in MODULE_ROOTS if (root / package).is_dir()), None)
    if folder is None:
        return True
    while rest and (folder / rest[0]).is_dir():
        folder /= rest.pop(0)
    if rest and (folder / f"{rest[0]}.py").exists():
        file = folder / f"{rest.pop(0)}.py"
    else:
        file = folder / "__init__.py"
    return not rest or re.search(rf"\b{rest[0]}\b", file.read_text(encoding="utf-8")) is not None


@by_page
def test_every_package_and_module_that_is_named_by_its_import_path_exists(page):
    named = re.findall(r"`(noonmark(?:\.\w+)+)`", prose(page))
    assert [dotted for dotted in named if not exists_in_the_product(dotted)] == []


@pytest.mark.parametrize(
    ("dotted", "exists"),
    [
        ("noonmark.core", True),
        ("noonmark.core.planning.plan", True),
        ("noonmark.core.planning.plan.MisfirePolicy", True),
        ("noonmark.handlers.Context", True),
        ("noonmark.lifecycle", True),
        ("noonmark.core.planning.plans", False),
        ("noonmark.core.planning.plan.Nothing", False),
    ],
)
def test_import_paths_are_looked_up_in_the_tree(dotted, exists):
    assert exists_in_the_product(dotted) is exists


@by_page
def test_every_test_that_is_named_exists(page):
    for test in re.findall(r"`(test_\w+)`", prose(page)):
        found = any(
            f"def {test}(" in file.read_text(encoding="utf-8") for file in ROOT.glob("tests/**/test_*.py")
        )
        assert found, test


@by_page
def test_every_metric_that_is_named_exists(page):
    # Recorded series have a colon before the metric; tests/chart/test_rules.py knows them.
    named = set(re.findall(r"(?<![:\w])noonmark_[a-z_]+\b", page.read_text(encoding="utf-8")))
    series = {
        row.name + end for row in TABLE if row.kind == "histogram" for end in ("_bucket", "_count", "_sum")
    }
    assert named <= {row.name for row in TABLE} | series | SQL_FUNCTIONS | OTHER_NAMES | {"noonmark_fences"}


@by_page
def test_every_variable_that_is_named_is_a_setting(page):
    named = set(re.findall(rf"\b{PREFIX}[A-Z_]+\b", page.read_text(encoding="utf-8")))
    tests = {name for name in named if name.startswith(f"{PREFIX}TEST_")}
    assert named - tests <= {PREFIX + field.upper() for field in Settings.model_fields} | NO_SETTINGS


def test_every_page_is_in_the_index():
    index = {(DOCS / file).resolve() for file, _ in links(DOCS / "README.md")}
    assert {page for page in DOCS.glob("*.md") if page.name != "README.md"} <= index


def test_every_decision_is_in_its_index_and_numbered_without_gaps():
    pages = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    assert [page.name[:4] for page in pages] == [f"{n:04}" for n in range(1, len(pages) + 1)]
    assert [file for file, _ in links(DOCS / "decisions" / "README.md")] == [page.name for page in pages]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {page.name[:4]} "), page
        parts = re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE)
        assert parts == ["Context", "Choice", "Weighed", "Consequences", "Evidence"], page


def commands() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for block in blocks(page, "sh", "console"):
            for line in block.splitlines():
                command = line.removeprefix("$ ").partition(" #")[0].strip()
                start = re.search(r"(?:^|\| *)(?:\.venv/bin/)?noonmark (.*)", command)
                if start:
                    yield name(page), start[1]


def previews() -> Iterator[tuple[str, str]]:
    """Previews of schedules that a page shows with what they print; `schedules.md` has a test of its own."""
    for page in PAGES:
        if page.name != "schedules.md":
            for block in blocks(page, "console"):
                for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                    command, _, output = part.partition("\n")
                    if "noonmark schedule " in command and output.strip():
                        yield command.partition("noonmark ")[2], output


@pytest.mark.parametrize(("command", "output"), list(previews()))
def test_every_preview_prints_what_is_shown(command, output):
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.stdout.rstrip() == output.rstrip()


@pytest.mark.parametrize(("page", "line"), list(commands()))
def test_every_command_that_is_shown_exists_with_its_options(page, line):
    command: Any = command_of(app)
    words = shlex.split(line)
    while words and (below := getattr(command, "commands", None)):
        word = words.pop(0)
        assert word in below, f"{page}: noonmark {line}"
        command = below[word]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known, f"{page}: noonmark {line}"
