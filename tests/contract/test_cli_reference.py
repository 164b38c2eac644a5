"""docs/cli.md is what the commands say of themselves."""

from pathlib import Path

from noonmark.cli import reference

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_of_the_command_line_is_what_the_module_prints():
    assert PAGE.read_text(encoding="utf-8") == reference.page(), (
        "run: python -m noonmark.cli.reference > docs/cli.md"
    )


def test_every_command_and_exit_code_stands_on_the_page():
    page = reference.page()
    for told in (
        "## noonmark\n",
        "### noonmark job\n",
        "#### noonmark job apply\n",
        "`--prune`",
        "| 130 |",
        "noonmark why",
    ):
        assert told in page
    assert "noonmark dlq" not in page
