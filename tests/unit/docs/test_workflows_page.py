"""docs/workflows.md: its document is valid, and `noonmark job check` prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.support.cli import call
from tests.support.doc_blocks import blocks_of, run_python
from tests.unit.docs.pages import DOCS, blocks

PAGE = DOCS / "workflows.md"


def test_the_document_is_checked_as_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (document,) = blocks(PAGE, "yaml")
    Path("nightly-sales.yaml").write_text(document, encoding="utf-8")
    shown = next(block for block in blocks(PAGE, "") if "job check" in block)

    found = call("job", "check", "nightly-sales.yaml").stdout

    assert found.splitlines()[:-1] == shown.splitlines()[1:]


def test_the_builder_makes_the_document_of_the_page() -> None:
    (written,) = blocks(PAGE, "yaml")
    built, dag = blocks_of(PAGE, "python")
    assert (built.is_run, dag.is_run) == (True, False)
    names = run_python([built])
    assert names["document"] == yaml.safe_load(written)
    compile(dag.code, str(PAGE), "exec")
