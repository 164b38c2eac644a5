"""Files of declared jobs, read with the lines that things stand at."""

import json
import os
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from noonmark.cli.submissions.apply_files import Problem, Source, read_sources
from noonmark.cli.terminal.problems import CliError


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text, name="jobs.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return name

    return write


def places(sources):
    return [(one.file, one.line, one.document["name"]) for one in sources]


def test_a_yaml_stream_has_documents_and_lists_of_them(file):
    name = file("# jobs\n---\nname: a\nschedule: 0 9 * * 1\n---\n- name: b\n- name: c\n---\n")
    sources, problems = read_sources([name])
    assert problems == []
    assert places(sources) == [(name, 3, "a"), (name, 6, "b"), (name, 7, "c")]
    assert sources[0].document["schedule"] == "0 9 * * 1"


def test_a_list_below_the_one_key_jobs_is_taken_as_by_the_api(file):
    name = file("# jobs\njobs:\n  - name: a\n  - name: b\n    schedule: 0 9 * * 1\n")
    sources, problems = read_sources([name])
    assert problems == []
    assert places(sources) == [(name, 3, "a"), (name, 4, "b")]


@pytest.mark.parametrize("text", ["jobs:\n  a: {type: http}\n", "jobs: a\n"])
def test_jobs_that_are_no_list_are_told_what_is_expected(file, text):
    name = file(text)
    _, (problem,) = read_sources([name])
    assert str(problem) == f"{name}:1: /jobs: must be a list of job documents, each with its `name`"


def test_json_is_one_document_a_list_or_one_per_line(file):
    one = file(json.dumps({"name": "a \U0001f600"}, indent=2), "a.json")
    several = file('[\n  {"name": "b"},\n  {"name": "c"}\n]', "b.json")
    lines = file('{"name": "d"}\n\n{"name": "e"}\n', "c.jsonl")
    sources, problems = read_sources([one, several, lines])
    assert problems == []
    assert places(sources) == [
        (one, 1, "a \U0001f600"),
        (several, 2, "b"),
        (several, 3, "c"),
        (lines, 1, "d"),
        (lines, 3, "e"),
    ]


def test_of_a_folder_all_below_it_is_read_in_order(file):
    for name in (
        "jobs/b.yml",
        "jobs/a/z.yaml",
        "jobs/c.json",
        "jobs/notes.txt",
        "jobs/.hidden.yaml",
        "jobs/.git/x.yaml",
    ):
        file('{"name": "x"}', name)
    sources, _ = read_sources(["jobs", "jobs/b.yml"])
    assert [one.file for one in sources] == ["jobs/a/z.yaml", "jobs/b.yml", "jobs/c.json"]


def test_what_is_no_regular_file_in_a_folder_is_refused_and_not_waited_for(file):
    file('{"name": "x"}', "jobs/a.yaml")
    os.mkfifo("jobs/b.yaml")
    with pytest.raises(CliError, match=r"jobs/b\.yaml is not a regular file but a FIFO"):
        read_sources(["jobs"])
    Path("jobs/b.yaml").unlink()
    Path("jobs/b.yaml").symlink_to("/dev/zero")
    with pytest.raises(CliError, match=r"jobs/b\.yaml is not a regular file but a device"):
        read_sources(["jobs"])


def test_standard_input_is_a_file(file, monkeypatch):
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"name: a\n")))
    sources, _ = read_sources(["-"])
    assert places(sources) == [("standard input", 1, "a")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: a\nschedule: * * * * *\n", "jobs.yaml:2: is neither YAML nor JSON"),
        ("name: a\n  b: c\n", "jobs.yaml:2: is neither YAML nor JSON"),
        ("- name: a\n- 7\n", "jobs.yaml:2: is not a job document: must be an object"),
        ("name: a\nname: b\n", "jobs.yaml:2: /name: is a duplicate of line 1"),
        (
            "payload:\n  x: 1\n  x: 2\n",
            "jobs.yaml:3: /payload/x: is a duplicate of line 2",
        ),
        ('{"name": "a"}\n{"name": }\n', "jobs.yaml:2: is not JSON"),
        (
            '{"name": "a"}\n{"name": "b", "name": "c"}\n',
            "jobs.yaml:2: is not JSON: duplicate field 'name'",
        ),
        ('{"name": "a", "payload": NaN}', "jobs.yaml:1: contains a value without a JSON form"),
        ("a: 1e999\n", "jobs.yaml:1: contains a value without a JSON form"),
        ("a: !!binary aGVsbG8=\n", "jobs.yaml:1: contains a value without a JSON form"),
        ("a: !!timestamp 2026-01-01\n", "jobs.yaml:1: contains a value without a JSON form"),
        ('a: "\\ud800"\n', "jobs.yaml:1: contains a value without a JSON form"),
    ],
)
def test_what_cannot_be_read_is_told_with_file_and_line(file, text, problem):
    _, problems = read_sources([file(text)])
    assert [str(one)[: len(problem)] for one in problems] == [problem]


def test_documents_before_a_broken_one_are_kept_and_so_are_other_files(file):
    broken = file("name: a\n---\nname: [\n")
    whole = file("name: b\n", "whole.yaml")
    sources, problems = read_sources([broken, whole])
    assert places(sources) == [(broken, 1, "a"), (whole, 1, "b")]
    assert len(problems) == 1


def test_nothing_to_read_is_told(file, tmp_path):
    (tmp_path / "empty").mkdir()
    for given, told in (
        ("empty", "no files with suffix"),
        (file("# nothing\n"), "no job documents"),
        ("nowhere", "cannot read"),
    ):
        with pytest.raises(CliError, match=told):
            read_sources([given])


def test_a_problem_stands_at_the_line_of_its_field_or_of_the_nearest_above_it(file):
    (source,), _ = read_sources(
        [file("name: a\nschedule:\n  cron: x\nlabels: {a: b}\nlimits:\n- stripe\n- {name: y}\n")]
    )
    lines = {
        pointer: source.problem(pointer, "x").line
        for pointer in ("/schedule/cron", "/schedule/timezone", "/limits/1/name", "/type", "")
    }
    assert lines == {"/schedule/cron": 3, "/schedule/timezone": 2, "/limits/1/name": 7, "/type": 1, "": 1}


def test_slashes_in_names_are_written_as_pointers_do(file):
    (source,), _ = read_sources([file("labels:\n  noonmark.dev/x: 1\n")])
    assert source.problem("/labels/noonmark.dev~1x", "x") == Problem(
        "jobs.yaml", 2, "/labels/noonmark.dev~1x", "x"
    )


def test_aliases_of_aliases_are_refused_before_they_are_written_out(file):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    _, (problem,) = read_sources([file("\n".join(lines))])
    assert "values with its aliases expanded" in problem.message
    (source,), problems = read_sources([file("name: &n a\nhandler: *n\n")])
    assert (source.document, problems) == ({"name": "a", "handler": "a"}, [])


def test_yaml_that_holds_itself_is_refused(file):
    _, problems = read_sources([file("a: &a\n  b: *a\n")])
    assert problems[0].message.startswith("is neither YAML nor JSON")


def test_a_source_is_a_value():
    assert Source("f", 1, {"name": "a"}) == Source("f", 1, {"name": "a"})


def test_a_file_named_json_is_not_read_as_yaml(file):
    text = '{\n  "name": "a"\n  "schedule": "@daily"\n}\n'
    _, problems = read_sources([file(text, "jobs.json")])
    (problem,) = problems
    assert str(problem).endswith("jobs.json:3: is not JSON: column 3: Expecting ',' delimiter")
