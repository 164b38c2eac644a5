"""The code blocks of docs/sdk.md that need no server do what the page says; the others are Python at least."""

from tests.support.doc_blocks import blocks_of, run_python
from tests.unit.docs.pages import DOCS, anchors

PAGE = DOCS / "sdk.md"


def test_the_blocks_about_testing_hold():
    text = PAGE.read_text(encoding="utf-8")
    begin = text.count("\n", 0, text.index("## Testing")) + 1
    blocks = [block for block in blocks_of(PAGE, "python") if block.line > begin]
    assert [block.is_run for block in blocks] == [True, True, False]
    run_python(blocks)
    assert "testing" in anchors(PAGE)


def test_every_block_is_marked_as_it_is():
    assert [block.is_run for block in blocks_of(PAGE, "python")].count(False) == 3
    for block in blocks_of(PAGE, "python"):
        compile(block.code, str(PAGE), "exec")
