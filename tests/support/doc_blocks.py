"""Code blocks of Markdown pages, run as a reader would: one after the other, in one namespace.

A block stands alone, or below a line `<!-- not run -->` where it needs what no test has. Errors point to the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

NOT_RUN: Final = "<!-- not run -->"

_FENCE: Final = re.compile(
    r"^(?P<note><!-- not run -->\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its code, the line of the page that the code begins on, and whether it is run."""

    page: Path
    language: str
    code: str
    line: int
    is_run: bool


def blocks_of(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in these languages, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            found["language"],
            found["code"],
            text.count("\n", 0, found.start("code")) + 1,
            found["note"] is None,
        )
        for found in _FENCE.finditer(text)
        if found["language"] in languages
    ]


def section_commands(page: Path, heading: str) -> list[str]:
    """The commands that a section of a page has the reader type, in order, without the remarks after them."""
    text = page.read_text(encoding="utf-8")
    begin = text.index(f"\n## {heading}\n")
    first, last = (text.count("\n", 0, at) for at in (begin + 1, text.index("\n## ", begin + 1)))
    lines = [
        line
        for block in blocks_of(page, "console")
        if first < block.line <= last
        for line in block.code.splitlines()
        if line.startswith("$ ")
    ]
    return [re.sub(r"\s+# .*$", "", line.removeprefix("$ ")) for line in lines]


def run_python(blocks: Iterable[Block], given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Run Python blocks that are to be run; return the names they leave behind.

    Args:
        blocks: of one page, or some of them.
        given: names that the page takes for granted.
    """
    names: dict[str, Any] = {"__name__": "page", **(given or {})}
    for block in blocks:
        # Compiled in any case: what is not run is still Python. Blank lines put errors on the page's own lines.
        code = compile("\n" * (block.line - 1) + block.code, str(block.page), "exec", dont_inherit=True)
        if block.is_run:
            exec(code, names)
    return names
