"""References to secrets: where they stand, where their values come from, and what is refused."""

import pytest
from tests.unit.worker.hands import hand

from noonmark.attempts.outcomes import raised
from noonmark.attempts.secrets import SecretError, SecretResolver, refuse_references, variable_of
from noonmark.core.kinds.secret_references import has_references
from noonmark.core.states import RunState
from noonmark.settings import Settings

VALUE = "s3cr3t-v4lue/+="


@pytest.fixture
def secrets(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "api-key").write_text(VALUE + "\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "theirs").write_text("not for tests")
    (tmp_path / "top").write_text("outside of namespaces")
    return SecretResolver(tmp_path, {"NOONMARK_SECRET_TESTS__DB_PASSWORD": "from-the-environment"})


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("secret://api-key", VALUE),
        ("Bearer ${secret://api-key}", f"Bearer {VALUE}"),
        ("${secret://db-password}:${secret://api-key}", f"from-the-environment:{VALUE}"),
        ({"a": ["secret://api-key", 1, None]}, {"a": [VALUE, 1, None]}),
        ({"secret://api-key": "kept"}, {"secret://api-key": "kept"}),
        ("see secret://api-key", "see secret://api-key"),
        ("${HOME}", "${HOME}"),
        (7, 7),
        (None, None),
    ],
)
def test_references_are_resolved_where_they_stand(secrets, given, wanted):
    assert secrets.resolve("tests", given)[0] == wanted


def test_a_value_is_not_searched_for_references(tmp_path):
    secrets = SecretResolver(
        None, {"NOONMARK_SECRET_TESTS__A": "secret://b", "NOONMARK_SECRET_TESTS__B": "bbbb"}
    )
    assert secrets.resolve("tests", "secret://a")[0] == "secret://b"


def test_what_holds_no_reference_is_passed_on_as_it_is(secrets):
    of, payload = hand(), {"headers": {"A": "b"}, "body": [1, "see secret://x"]}
    assert secrets.fill(of, payload) is payload
    assert of.redactor is None


def test_the_hand_learns_what_its_attempt_was_given(secrets):
    of = hand()
    secrets.fill(of, {"x": "secret://api-key"})
    assert secrets.get(of, "db-password") == "from-the-environment"
    assert (
        of.redactor.clean(f"{VALUE} and from-the-environment") == "[secret:api-key] and [secret:db-password]"
    )


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../other/theirs",
        "../top",
        "/etc/passwd",
        ".hidden",
        "a/b",
        "a b",
        "a\0b",
        "a" * 129,
        "é",
        "a\n",
    ],
)
def test_a_name_cannot_leave_its_namespace(secrets, name):
    with pytest.raises(SecretError, match="not a reference to a secret") as caught:
        secrets.get(hand(), name)
    assert not caught.value.retryable


@pytest.mark.parametrize("namespace", ["other", "..", ".", "", "TESTS", "tests/../other"])
def test_another_namespace_reads_nothing_of_it(secrets, namespace):
    for name in ("api-key", "db-password"):
        with pytest.raises(SecretError):
            secrets.resolve(namespace, f"secret://{name}")


def test_a_missing_secret_is_named_with_the_places_to_put_it(secrets):
    with pytest.raises(SecretError) as caught:
        secrets.resolve("tests", "secret://new-key")
    assert caught.value.retryable
    assert str(caught.value) == (
        "secret://new-key is not known to this worker: set the file tests/new-key in its secrets directory or "
        "the environment variable NOONMARK_SECRET_TESTS__NEW_KEY"
    )


def test_a_file_goes_before_the_environment(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a").write_text("of the file")
    assert (
        SecretResolver(tmp_path, {"NOONMARK_SECRET_TESTS__A": "of the environment"}).get(hand(), "a")
        == "of the file"
    )


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"abcd\n", "abcd"),
        (b"abcd\r\n", "abcd"),
        (b"abcd\n\n", "abcd\n"),
        (b" abcd ", " abcd "),
        (b"a\nb\n", None),
    ],
)
def test_one_newline_at_the_end_of_a_file_is_not_part_of_the_secret(tmp_path, content, value):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a").write_bytes(content)
    if value is None:
        with pytest.raises(SecretError, match="shorter than 4"):
            SecretResolver(tmp_path, {}).get(hand(), "a")
    else:
        assert SecretResolver(tmp_path, {}).get(hand(), "a") == value


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"abc", "shorter"), (b"", "shorter"), (b"x" * 65_537, "longer"), (b"\xff" * 9, "UTF-8")],
)
def test_values_that_cannot_serve_are_refused_without_being_shown(tmp_path, content, told):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a").write_bytes(content)
    with pytest.raises(SecretError, match=told) as caught:
        SecretResolver(tmp_path, {}).get(hand(), "a")
    assert "xxx" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("namespace", "name", "variable"),
    [
        ("default", "api-key", "NOONMARK_SECRET_DEFAULT__API_KEY"),
        ("team-a", "API.Key", "NOONMARK_SECRET_TEAM_A__API_KEY"),
        # Two namespaces must never share a variable, nor a namespace and a name run together.
        ("team_a", "api-key", None),
        ("team--a", "api-key", None),
        ("team-", "api-key", None),
        ("team", "a__b", None),
        ("team", "-b", None),
        ("team", "b-", None),
    ],
)
def test_variables_of_secrets(namespace, name, variable):
    assert variable_of(namespace, name) == variable


def test_no_two_namespaces_share_a_variable():
    parts = ["a", "b", "a-b", "a_b", "b-a", "a--b", "a-", "a__b", "a-b-a"]
    owners = {}
    for namespace in parts:
        for name in [*parts, "-a", "_a", "a.b", "A"]:
            if variable := variable_of(namespace, name):
                assert owners.setdefault(variable, namespace) == namespace


def test_variables_of_secrets_are_no_unknown_settings(monkeypatch):
    monkeypatch.setenv("NOONMARK_SECRET_TESTS__A", "value")
    assert Settings.examine()[1] == []


@pytest.mark.parametrize("place", [["curl", "secret://a"], ["-H", "A: ${secret://a}"], {"x": ["secret://"]}])
def test_places_that_others_can_read_take_no_reference(place):
    assert has_references(place)
    with pytest.raises(SecretError, match="argv may not contain a secret") as caught:
        refuse_references(place, "argv")
    assert not caught.value.retryable


def test_a_secret_that_may_still_come_is_a_failure_with_a_retry(secrets):
    with pytest.raises(SecretError) as missing:
        secrets.get(hand(), "new-key")
    with pytest.raises(SecretError) as malformed:
        secrets.get(hand(), "../x")
    later, never = (
        raised(hand(retry={"max_retries": 1}), missing.value),
        raised(hand(retry={"max_retries": 1}), malformed.value),
    )
    assert (later.state, never.state) == (RunState.RETRYING, RunState.DEAD)
    assert later.error == str(missing.value)


def test_the_log_of_the_process_knows_every_secret_resolved_in_it(secrets):
    assert secrets.mask(VALUE) == VALUE
    secrets.resolve("tests", "secret://api-key")
    assert secrets.mask(f"password is {VALUE}") == "password is [secret:tests/api-key]"


def test_a_variable_that_is_no_text_is_refused_as_a_file_is():
    secrets = SecretResolver(None, {"NOONMARK_SECRET_TESTS__A": "caf\udce9-secret"})
    with pytest.raises(SecretError, match="UTF-8") as caught:
        secrets.get(hand(), "a")
    assert "caf" not in str(caught.value)
