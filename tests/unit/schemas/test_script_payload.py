"""The payload of script jobs: what is taken, spelt out, and refused in words."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from noonmark.schemas.jobs.script_payload import ScriptPayload
from noonmark.schemas.problems.pydantic_errors import field_errors


def refused(**payload) -> tuple[str, str, str]:
    with pytest.raises(ValidationError) as caught:
        ScriptPayload.model_validate({"argv": ["/bin/true"], **payload})
    (error,) = field_errors(caught.value, ScriptPayload)
    return error.pointer, error.message, error.expected


def test_the_shortest_payload_has_every_default_spelt_out():
    assert ScriptPayload.model_validate({"argv": ["true"]}).request() == {
        "argv": ["true"],
        "env": {},
        "limits": {},
        "success_exit_codes": [0],
        "result": "exit_code",
    }


def test_everything_is_taken_as_it_is_written():
    full = {
        "argv": ["/opt/jobs/close", "--month", "2026-05"],
        "env": {"MODE": "full", "_x1": ""},
        "stdin": {"rows": [1]},
        "cwd": "/srv",
        "limits": {
            "cpu_seconds": 5,
            "memory_bytes": 1 << 30,
            "open_files": 64,
            "processes": 3,
            "file_bytes": 0,
        },
        "success_exit_codes": [0, 2],
        "result": "json",
    }
    assert ScriptPayload.model_validate(full).request() == full


@pytest.mark.parametrize(
    ("payload", "pointer", "message"),
    [
        ({"argv": []}, "/argv", "has fewer entries than 1"),
        ({"argv": [" "]}, "/argv", "names no executable"),
        ({"argv": ["a\0b"]}, "/argv/0", "the value has a form that is not allowed"),
        ({"argv": ["x"] * 257}, "/argv", "has more entries than 256"),
        ({"argv": ["x" * 16_000] * 5}, "/argv", "is longer than 65536 bytes in total"),
        ({"argv": "true"}, "/argv", "the value is a string"),
        (
            {"argv": ["x", "secret://a"]},
            "/argv",
            "contains a reference to a secret that other users could read",
        ),
        (
            {"argv": ["x", "-p${secret://a}"]},
            "/argv",
            "contains a reference to a secret that other users could read",
        ),
        ({"env": {"NOONMARK_RUN_ID": "1"}}, "/env", "NOONMARK_RUN_ID cannot be set by a job"),
        ({"env": {"LD_PRELOAD": "/x.so"}}, "/env", "LD_PRELOAD cannot be set by a job"),
        ({"env": {"PYTHONPATH": "/x"}}, "/env", "PYTHONPATH cannot be set by a job"),
        ({"env": {"BASH_ENV": "/x"}}, "/env", "BASH_ENV cannot be set by a job"),
        ({"env": {"A": "\0"}}, "/env/A", "the value has a form that is not allowed"),
        ({"env": {"A": 1}}, "/env/A", "the value is an integer"),
        ({"cwd": "relative"}, "/cwd", "the value has a form that is not allowed"),
        ({"limits": {"cpu_seconds": 0}}, "/limits/cpu_seconds", "0 is below 1"),
        ({"limits": {"disk": 1}}, "/limits/disk", "unknown field"),
        ({"success_exit_codes": []}, "/success_exit_codes", "has fewer entries than 1"),
        ({"success_exit_codes": [256]}, "/success_exit_codes/0", "the value is above 255"),
        ({"result": "stdout"}, "/result", "the value is not allowed"),
        ({"shell": True}, "/shell", "unknown field"),
    ],
)
def test_what_cannot_be_run_is_refused_where_it_stands(payload, pointer, message):
    assert refused(**payload)[:2] == (pointer, message)


def test_a_name_that_is_no_variable_is_refused():
    pointer, message, _ = refused(env={"A-B": "1"})
    assert (pointer, "A-B" in message) == ("/env/A-B", True)
