"""Parts of pages that a program writes: what is between two marks."""

from __future__ import annotations

from pathlib import Path


def marks(part: str) -> tuple[str, str]:
    """The lines before and after a part."""
    return f"<!-- begin: {part} -->", f"<!-- end: {part} -->"


def read_part(page: Path, part: str) -> str:
    """What a page has between the marks, without the blank lines at its ends."""
    begin, end = marks(part)
    return page.read_text(encoding="utf-8").split(begin)[1].split(end)[0].strip("\n")


def write_part(page: Path, part: str, text: str) -> None:
    """Replace what a page has between the marks."""
    begin, end = marks(part)
    before, rest = page.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
