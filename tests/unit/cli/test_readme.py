"""What the README and its companions say is there is there."""

import re
from pathlib import Path

import pytest
from tests.support.cli import command_of

from noonmark.cli.main import app
from noonmark.schemas.jobs.documents import JobDocument

ROOT = Path(__file__).parents[3]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/commands.md",
    "docs/publishing.md",
    "examples/README.md",
)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page):
    text = (ROOT / page).read_text()
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert [target for target in targets if not ((ROOT / page).parent / target).exists()] == []


def test_the_page_of_the_job_document_lists_every_field_and_no_other():
    text = (ROOT / "docs/job-document.md").read_text()
    table = text.split("## Fields")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert listed == {field.alias or name for name, field in JobDocument.model_fields.items()}


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_is_shown_exists(page):
    root = command_of(app)
    text = (ROOT / page).read_text()
    for line in re.findall(
        r"noonmark ([a-z]+(?: [a-z]+)?)(?=[ `\n])",
        " ".join(re.findall(r"`[^`]*`|^\$ .*$", text, re.MULTILINE)),
    ):
        command = root
        for word in line.split():
            children = getattr(command, "commands", None)
            if children is None:
                break
            assert word in children, f"{page} shows `noonmark {line}`"
            command = children[word]


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_that_is_shown_exists(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", (ROOT / page).read_text()))
    assert shown <= targets


def test_the_readme_stays_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
