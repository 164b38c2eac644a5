"""Reading job documents from files."""

import pytest

from noonmark.cli.problems import CliError
from noonmark.cli.submit import read_documents


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"name": "a"}', ["a"]),
        ('[{"name": "a"}, {"name": "b"}]', ["a", "b"]),
        ('{"name": "a"}\n\n{"name": "b"}\n', ["a", "b"]),
        ("[]", []),
    ],
    ids=["one object", "a list", "one per line", "an empty list"],
)
def test_a_file_holds_one_document_a_list_or_one_per_line(tmp_path, text, names):
    file = tmp_path / "jobs.json"
    file.write_text(text)
    assert [document["name"] for document in read_documents(str(file))] == names


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[1]", "document 1 is not a JSON object"),
        ('{"name": "a"}\n{"name": ', "line 2 is not JSON"),
        ('{"name": "a"}\n[]', "line 2 is not a JSON object"),
        ('"name"', "document 1 is not a JSON object"),
    ],
)
def test_what_is_no_document_is_named_by_its_place(tmp_path, text, where):
    file = tmp_path / "jobs.json"
    file.write_text(text)
    with pytest.raises(CliError, match=where):
        list(read_documents(str(file)))


def test_a_missing_file_is_a_sentence(tmp_path):
    with pytest.raises(CliError, match="cannot be read"):
        list(read_documents(str(tmp_path / "none.json")))
