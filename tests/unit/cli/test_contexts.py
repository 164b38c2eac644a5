"""Contexts: the file they stand in, and which one a command works in."""

import json
import os
import stat

import pytest
from tests.support.cli import call

from noonmark.cli.connections import contexts
from noonmark.cli.connections.context import stack_addresses
from noonmark.cli.connections.targets import require_direct, target_of
from noonmark.cli.terminal.problems import CliError
from noonmark.devstack import state
from noonmark.settings import Settings

SECRET = "nmk_abcdefghijkl_" + "s" * 43


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("NOONMARK_")]:
        monkeypatch.delenv(name)
    path = tmp_path / "noonmark.toml"
    monkeypatch.setenv("NOONMARK_CONFIG", str(path))
    return path


def add(name="lab", url="https://lab.example.com", *more, stdin=SECRET + "\n"):
    return call("context", "add", name, "--url", url, "--key", "-", *more, stdin=stdin)


def test_a_context_is_added_used_shown_and_removed(config):
    add("lab", "https://lab.example.com:8443/base/", "--namespace", "shop")
    call("context", "add", "prod", "--url", "https://noonmark.example.com", "--key", "env:PROD_KEY", "--use")
    listed = json.loads(call("context", "list", "--json").stdout)["items"]
    assert listed == [
        {"name": "lab", "current": False, "url": "https://lab.example.com:8443/base", "namespace": "shop", "key": "********"},
        {"name": "prod", "current": True, "url": "https://noonmark.example.com", "namespace": None, "key": "env:PROD_KEY"},
    ]  # fmt: skip
    call("context", "use", "lab")
    shown = json.loads(call("context", "show", "--json").stdout)
    assert shown == {"works_on": "https://lab.example.com:8443/base", "context": "lab", "namespace": "shop", "key": "********", "named_by": "the configuration file"}  # fmt: skip
    assert "no current context" in call("context", "remove", "lab").stdout
    assert "lab" not in config.read_text()
    assert SECRET not in config.read_text()


def test_a_key_is_never_shown_and_only_its_owner_can_read_it(config):
    outputs = [
        add(),
        call("context", "list"),
        call("context", "show", "lab"),
        call("context", "list", "--json"),
    ]
    assert SECRET in config.read_text()
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert all(SECRET not in one.stdout + one.stderr for one in outputs)


def test_a_file_with_keys_that_others_may_read_is_refused(config):
    add()
    config.chmod(0o640)
    told = call("context", "list", code=2).stderr
    assert f"chmod 600 {config}" in told
    assert SECRET not in told


def test_a_file_without_keys_may_be_read_by_others(config):
    call("context", "add", "prod", "--url", "https://n.example.com", "--key", "env:K")
    config.chmod(0o644)
    assert "prod" in call("context", "list").stdout


def test_a_key_is_not_taken_as_an_argument():
    told = call("context", "add", "a", "--url", "https://n.example.com", "--key", SECRET, code=2).stderr
    assert "--key -" in told
    assert SECRET not in told


@pytest.mark.parametrize(
    ("name", "url", "key", "told"),
    [
        ("a b", "https://n.example.com", "k", "is not a context name"),
        ("a", "n.example.com", "k", "is not the URL of an API"),
        ("a", "https://joe:pw@n.example.com", "k", "is not the URL of an API"),
        ("a", "ftp://n.example.com", "k", "is not the URL of an API"),
        ("a", "https://n.example.com", "k k", "has invalid characters"),
        ("a", "https://n.example.com", "", "key is missing"),
        ("a", "http://n.example.com", "k", "unencrypted"),
    ],
)
def test_what_cannot_be_a_context_is_refused(name, url, key, told):
    with pytest.raises(CliError, match=told) as refused:
        contexts.make(name, url, key)
    assert "pw" not in str(refused.value)


def test_plain_http_is_for_this_machine_or_a_network_that_is_trusted():
    assert contexts.make("a", "http://localhost:8080", "k").allow_http is False
    assert contexts.make("a", "http://n.example.com", "k", allow_http=True).allow_http is True


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("current = ", "is not TOML"),
        ("colour = 1", "unknown key colour"),
        ("current = 1", "current must be a string"),
        ("[contexts.a]\nurl = 'https://n.example.com'", "has no url or no key"),
        ("[contexts.a]\nurl = 'https://n.example.com'\nkey = 1", "key is unknown or has the wrong type"),
        ("[contexts.a]\nurl = 'https://n.example.com'\nkey = 'env:K'\ntoken = 'x'", "token is unknown"),
        ("[contexts.a]\nurl = 'x'\nkey = 'env:K'", "is not the URL"),
    ],
)
def test_a_wrong_file_is_told(config, text, told):
    config.write_text(text)
    assert told in call("context", "list", code=2).stderr


def test_what_is_written_is_read_back(config):
    made = contexts.make(
        "a", "https://n.example.com", 'file:/run/secrets/käse\\n"x"'.replace("ä", "a"), "shop"
    )
    contexts.write(contexts.Contexts(config, {"a": made}, "a"))
    assert contexts.read(config) == contexts.Contexts(config, {"a": made}, "a")


def test_a_link_in_the_place_of_the_new_file_is_not_followed(config, tmp_path):
    target = tmp_path / "target"
    config.with_name(f"{config.name}.{os.getpid()}.new").symlink_to(target)
    with pytest.raises(CliError, match="cannot write"):
        contexts.write(contexts.Contexts(config, {}))
    assert not target.exists()


def test_keys_come_from_where_their_context_says(tmp_path):
    place = tmp_path / "key"
    place.write_text(f" {SECRET}\n")
    assert contexts.key_of(contexts.Context("a", "u", f"file:{place}")) == SECRET
    assert contexts.key_of(contexts.Context("a", "u", "env:K"), {"K": "x"}) == "x"
    assert contexts.key_of(contexts.Context("a", "u", "plain")) == "plain"


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("env:K", "the key env:K is not set"),
        ("file:/nowhere", "cannot be read"),
        ("file:/dev/null", "is empty"),
    ],
)
def test_a_key_that_is_not_there_is_told(key, told):
    with pytest.raises(CliError, match=told):
        contexts.key_of(contexts.Context("a", "u", key), {})


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({"XDG_CONFIG_HOME": "/x"}, "/x/noonmark/config.toml"),
        ({"XDG_CONFIG_HOME": "x", "HOME": "/home/joe"}, "/home/joe/.config/noonmark/config.toml"),
        ({"HOME": "/home/joe"}, "/home/joe/.config/noonmark/config.toml"),
    ],
)
def test_the_file_lies_where_configurations_do(monkeypatch, environment, place):
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert str(contexts.path_of("")) == place
    assert str(contexts.path_of("/y.toml")) == "/y.toml"


def both(config):
    made = {
        name: contexts.make(name, f"https://{name}.example.com", f"key-{name}") for name in ("one", "two")
    }
    contexts.write(contexts.Contexts(config, made, "one"))


DATABASE = {"database_url": "postgresql://localhost/x"}


@pytest.mark.parametrize(
    ("given", "url", "named_by"),
    [
        ({}, "https://one.example.com", "the configuration file"),
        ({"context": "two"}, "https://two.example.com", "--context"),
        ({"context": "two", **DATABASE}, "https://two.example.com", "--context"),
        ({"api_url": "https://env.example.com", "api_key": "k"}, "https://env.example.com", "NOONMARK_API_URL"),
        ({"api_url": "https://env.example.com", "api_key": "k", **DATABASE}, "https://env.example.com", "NOONMARK_API_URL"),
        (DATABASE, "", "the settings"),
    ],
)  # fmt: skip
def test_the_nearer_decides_where_commands_go(config, given, url, named_by):
    both(config)
    target = target_of(Settings.load(**given))
    assert (target.url, target.named_by) == (url, named_by)


def test_the_option_stands_above_the_environment(config, monkeypatch):
    both(config)
    monkeypatch.setenv("NOONMARK_API_URL", "https://env.example.com")
    monkeypatch.setenv("NOONMARK_API_KEY", "k")
    monkeypatch.setenv("NOONMARK_CONTEXT", "one")
    assert "env.example.com" in call("context", "show").stdout
    assert "two.example.com" in call("--context", "two", "context", "show").stdout
    assert "env.example.com" in call("context", "show").stdout


def test_a_key_of_the_environment_is_for_no_other_server(config):
    both(config)
    assert target_of(Settings.load(context="two", api_key="of-the-environment")).key == "key-two"


def test_an_address_without_a_key_is_told():
    with pytest.raises(CliError, match="NOONMARK_API_KEY is not"):
        target_of(Settings.load(api_url="https://env.example.com"))


def test_an_unknown_context_is_told_with_those_there_are(config):
    both(config)
    assert "context 'three' does not exist" in (
        told := call("--context", "three", "context", "show", code=2).stderr
    )
    assert "one, two" in told


def test_a_command_on_the_database_says_that_a_context_names_none(config):
    both(config)
    told = call("pool", "list", code=2).stderr
    assert (
        "connects to the database directly, but context one (from the configuration file) names an API"
        in told
    )
    assert "NOONMARK_DATABASE_URL" in told


def test_what_the_environment_names_beside_an_api_is_used(config):
    both(config)
    require_direct(Settings.load(**DATABASE), "database_url")
    require_direct(Settings.load(**DATABASE, api_url="https://e.example.com"), "database_url")
    with pytest.raises(CliError, match="Kafka directly, but NOONMARK_API_URL names an API"):
        require_direct(Settings.load(**DATABASE, api_url="https://e.example.com"), "kafka_bootstrap")
    with pytest.raises(CliError, match=r"context two \(from --context\)"):
        require_direct(Settings.load(**DATABASE, context="two"), "database_url")


def test_the_stack_of_the_folder_is_not_the_database_of_another_api(config, monkeypatch):
    folder = config.parent / ".noonmark"
    stack = state.StackState(
        state.ProcessEntry(1, "now"),
        database_url="postgresql://x@h/stack",
        api_url="http://127.0.0.1:7",
    )
    with state.hold(folder):
        state.save(folder, stack)
        monkeypatch.setattr(state, "running", state.load)
        assert stack_addresses() == {"database_url": "postgresql://x@h/stack"}
        monkeypatch.setenv("NOONMARK_API_URL", "http://127.0.0.1:7/")
        assert stack_addresses() == {"database_url": "postgresql://x@h/stack"}
        monkeypatch.setenv("NOONMARK_API_URL", "https://prod.example.com")
        assert stack_addresses() == {}
        told = call("pool", "list", code=2).stderr
    assert "connects to the database directly, but NOONMARK_API_URL names an API" in told


def test_settings_show_no_key(monkeypatch):
    monkeypatch.setenv("NOONMARK_API_KEY", SECRET)
    assert SECRET not in call("config", "check").stdout
