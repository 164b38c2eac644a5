"""Reading job documents from files."""

import pytest

from noonmark.cli.submissions.events import as_json_text, event_of, key_of
from noonmark.cli.submissions.submit import read_documents
from noonmark.cli.terminal.problems import CliError, ExitCode


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"name": "a"}', ["a"]),
        ('[{"name": "a"}, {"name": "b"}]', ["a", "b"]),
        ('{"name": "a"}\n\n{"name": "b"}\n', ["a", "b"]),
        ("name: a\nschedule: '* * * * *'\n", ["a"]),
        ("name: a\n---\nname: b\n", ["a", "b"]),
        ("- name: a\n- {name: b}\n", ["a", "b"]),
    ],
    ids=["one object", "a list", "one per line", "YAML", "YAML documents", "a YAML list"],
)
def test_a_file_holds_documents_as_json_or_yaml(tmp_path, text, names):
    file = tmp_path / "jobs.txt"
    file.write_text(text)
    assert [document["name"] for document in read_documents(str(file))] == names


def test_plain_words_of_yaml_are_read_as_json_would(tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(
        "name: on\nrun_at: 2026-06-01T09:00:00Z\npayload: {a: 1, b: 2.5, c: true, d: null, e: 2:30}\n"
    )
    assert read_documents(str(file)) == [
        {
            "name": "on",
            "run_at": "2026-06-01T09:00:00Z",
            "payload": {"a": 1, "b": 2.5, "c": True, "d": None, "e": "2:30"},
        }
    ]


@pytest.mark.parametrize("value", ["!!binary aGk=", "!!set {a}", "&a [*a]"])
def test_what_json_has_no_form_for_is_a_sentence(tmp_path, value):
    file = tmp_path / "job.yaml"
    file.write_text(f"payload: {value}\n")
    (document,) = read_documents(str(file))
    with pytest.raises(CliError, match="document 7 has no JSON form: ") as caught:
        as_json_text(document, 7)
    assert caught.value.code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[1]", "document 1 is not an object"),
        ('{"name": "a"}\n{"name": ', "line 2 is not JSON"),
        ('{"name": "a"}\n[]', "document 2 is not an object"),
        ('"name"', "document 1 is not an object"),
        ("name: a\n---\nb: [", "is neither JSON nor YAML"),
    ],
)
def test_what_is_no_document_is_named_by_its_place(tmp_path, text, where):
    file = tmp_path / "jobs.txt"
    file.write_text(text)
    with pytest.raises(CliError, match=where):
        list(read_documents(str(file)))


@pytest.mark.parametrize("text", ["", "\n  \n", "[]"])
def test_input_without_a_document_is_wrong_usage(tmp_path, text):
    file = tmp_path / "jobs.txt"
    file.write_text(text)
    with pytest.raises(CliError, match="contains no document") as caught:
        read_documents(str(file))
    assert caught.value.code is ExitCode.USAGE


def test_a_document_becomes_the_event_that_makes_a_job():
    event = event_of({"name": "a", "type": "http"}, 1, "me")
    assert event["data"] == {"name": "a", "type": "http"}
    assert (event["source"], event["type"]) == ("me", "noonmark.job.create.v1")


PAUSE = {
    "specversion": "1.0",
    "id": "1",
    "source": "/ops",
    "type": "noonmark.job.pause.v1",
    "data": {"name": "a"},
}


def test_an_event_is_published_as_it_stands():
    assert event_of(PAUSE, 1, "me") is PAUSE


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"id": None}, "/id: is missing"),
        ({"type": "noonmark.job.pasue.v1"}, "not a submission; expected one of noonmark.job.create.v1"),
        ({"data": [1]}, "/data: is "),
        ({"specversion": "0.3"}, "/specversion"),
    ],
    ids=str,
)
def test_what_is_no_event_is_refused_with_its_number(change, told):
    with pytest.raises(CliError, match=f"event 3 .*{told}") as caught:
        event_of({**PAUSE, **change}, 3, "me")
    assert caught.value.code is ExitCode.USAGE


def test_events_of_one_job_have_one_key_whatever_they_ask_for():
    created = event_of({"name": "a", "type": "http"}, 1, "me")
    assert key_of(created) == key_of(PAUSE) == b"default/a"
    assert key_of({**PAUSE, "data": {"job_id": "7"}}) == b"7"


def test_a_missing_file_is_a_sentence(tmp_path):
    with pytest.raises(CliError, match="cannot read"):
        list(read_documents(str(tmp_path / "none.json")))
