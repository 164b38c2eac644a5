"""`noonmark signing-key`: shown on demand, rotated beside the old one, retired but never the last."""

import json

import pytest
from tests.support.cli import call

from noonmark.core.access.webhook_signature import read_secret

pytestmark = pytest.mark.usefixtures("command_line")


def as_json(*arguments):
    return json.loads(call("signing-key", *arguments, "--json").stdout)


def test_the_first_key_is_made_when_it_is_asked_for_and_is_then_the_same():
    assert as_json("list", "billing")["items"] == []

    shown = call("signing-key", "show", "billing").stdout.strip()

    assert len(read_secret(shown)) == 32
    assert as_json("show", "billing")["secret"] == shown
    assert as_json("show", "other")["secret"] != shown


def test_a_namespace_that_may_be_misspelt_is_told_beside_the_key():
    first = call("signing-key", "show", "bilings")

    assert first.stdout.startswith("whsec_")
    assert "namespace 'bilings' has no recurring job yet" in first.stderr
    assert call("signing-key", "show", "bilings").stderr == ""


def test_lists_and_rotations_tell_no_secret():
    secret = as_json("show", "billing")["secret"]
    told = call("signing-key", "rotate", "billing").stdout
    told += call("signing-key", "rotate", "billing", "--json").stdout
    told += (
        call("signing-key", "list", "billing").stdout
        + call("signing-key", "list", "billing", "--json").stdout
    )

    assert "whsec_" not in told.replace("prints it", "")
    assert secret not in told
    assert [item["key_id"] for item in as_json("list", "billing")["items"]] == ["3", "2", "1"]


def test_keys_change_over_and_the_newest_stays():
    old = as_json("show", "billing")
    assert as_json("rotate", "billing")["key_id"] == "2"

    assert as_json("show", "billing", "1")["secret"] == old["secret"]
    assert as_json("retire", "billing") == {"namespace": "billing", "retired": ["1"], "valid": ["2"]}
    assert as_json("retire", "billing") == {"namespace": "billing", "retired": [], "valid": ["2"]}
    assert "rotate first" in call("signing-key", "retire", "billing", "2", code=1).stderr
    assert (
        "does not exist, or is already retired"
        in call("signing-key", "retire", "billing", "1", code=1).stderr
    )
    assert [item["state"] for item in as_json("list", "billing")["items"]] == ["valid", "retired"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("show", "Not A Name"), 2, "is not a namespace"),
        (("rotate", ""), 2, "is not a namespace"),
        (("show", "billing", "9"), 1, "has no key '9'"),
    ],
)
def test_what_cannot_be_done_is_told(arguments, code, words):
    assert words in call("signing-key", *arguments, code=code).stderr


@pytest.mark.parametrize(
    ("arguments", "stdin", "words"),
    [
        (("--token-file", "missing"), "", "cannot read the token from missing"),
        (("--token-file", "-"), " \n", "contains no token"),
        (("--token-file", "-"), "short", "/token"),
        (("--token-file", "-", "--result", "{"), "t" * 43, "--result is not JSON"),
        (("--token-file", "-", "--outcome", "failed", "--result", "1"), "t" * 43, "result of a success"),
        (("--token-file", "-", "--error", "x"), "t" * 43, "error of a failure"),
    ],
)
def test_a_report_that_intake_would_refuse_is_not_published(arguments, stdin, words):
    run_id = "01981f2a-7c00-7000-8000-00000000000a"

    told = call("run", "complete", run_id, *arguments, code=2, stdin=stdin).stderr

    assert words in told
    assert "t" * 43 not in told
