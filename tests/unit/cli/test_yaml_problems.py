"""Problems of a YAML file are reported in plain words, with line and column."""

import pytest
import yaml

from noonmark.cli.terminal.yaml_text import loader, yaml_problem


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: a\nschedule: */5 * * * *\n", "line 2, column 12: * begins an alias"),
        ("name: a: b\n", "line 1, column 8: a colon is not allowed here"),
        ("name: a\n\tb: c\n", "line 2, column 1: this character cannot begin a value; use spaces, not tabs"),
        ("name: [a, b\n", "line 2, column 1: a comma is missing, or a bracket is not closed"),
        ("name: 'a\n", "line 2, column 1: a quote or a bracket is not closed"),
        ("name: a\n- b\n", "line 2, column 1: the indentation does not match the lines above"),
        ('name: "\\q"\n', "line 1, column 9: this escape does not exist"),
        ("name: !x a\n", "line 1, column 7: a tag that starts with !"),
        ("name: \x01\n", "a control character is not allowed"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)
def test_the_parser_is_not_quoted(text, told):
    with pytest.raises((yaml.YAMLError, RecursionError)) as caught:
        list(yaml.load_all(text, loader()))
    found = str(yaml_problem(caught.value))
    assert found.startswith(told)
    assert "<" not in found
    assert "token" not in found
