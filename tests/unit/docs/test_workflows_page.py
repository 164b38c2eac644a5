"""docs/workflows.md: its document is valid, and `noonmark job check` prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import call
from tests.unit.docs.pages import DOCS, blocks

PAGE = DOCS / "workflows.md"


def test_the_document_is_checked_as_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (document,) = blocks(PAGE, "yaml")
    Path("nightly-sales.yaml").write_text(document, encoding="utf-8")
    shown = next(block for block in blocks(PAGE, "") if "job check" in block)

    found = call("job", "check", "nightly-sales.yaml").stdout

    assert found.splitlines()[:-1] == shown.splitlines()[1:]
