"""Importing the operator's modules, with readable refusals."""

import sys

import pytest

from noonmark.handlers import REGISTRY, HandlerLoadError, load_handlers

GOOD = "from noonmark.handlers import handler\n\n@handler\ndef send(ctx):\n    return 1\n"


@pytest.fixture
def folder(tmp_path):
    """A folder for modules; what loading changes in the process is undone."""
    path, modules, handlers = list(sys.path), set(sys.modules), dict(REGISTRY._handlers)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    REGISTRY._handlers.clear()
    REGISTRY._handlers.update(handlers)


def refusal(modules, path):
    with pytest.raises(HandlerLoadError) as error:
        load_handlers(modules, path)
    return str(error.value)


def test_modules_are_imported_and_their_handlers_found(folder):
    (folder / "nm_mails.py").write_text(GOOD)
    (folder / "nm_pkg").mkdir()
    (folder / "nm_pkg" / "__init__.py").touch()
    (folder / "nm_pkg" / "bills.py").write_text(GOOD)
    registry = load_handlers(["nm_mails", "nm_pkg.bills"], folder)
    assert registry is REGISTRY
    assert registry.get("nm_mails.send").function(None) == 1
    assert registry.get("nm_pkg.bills.send") is not None
    assert sys.path[0] == str(folder)


def test_loading_twice_is_harmless(folder):
    (folder / "nm_mails.py").write_text(GOOD)
    load_handlers(["nm_mails"], folder)
    load_handlers(["nm_mails"], folder)
    assert sys.path.count(str(folder)) == 1


def test_a_module_called_like_one_of_our_source_roots_is_not_shadowed(folder):
    (folder / "services").mkdir()
    (folder / "services" / "__init__.py").touch()
    (folder / "services" / "mails.py").write_text(GOOD)
    assert load_handlers(["services.mails"], folder).get("services.mails.send") is not None


def test_a_missing_module_is_named(folder):
    advice = "install its package, or pass its folder with --path"
    assert refusal(["nm_nowhere"], folder) == f"module nm_nowhere not found; {advice}"
    assert refusal(["nm_nowhere.mails"], folder) == (
        f"module nm_nowhere (needed for nm_nowhere.mails) not found; {advice}"
    )


def test_a_missing_dependency_of_a_module_is_named(folder):
    (folder / "nm_mails.py").write_text("import nm_not_installed\n")
    assert refusal(["nm_mails"], folder) == "module nm_mails needs 'nm_not_installed', which is not installed"


def test_a_module_that_fails_says_where(folder):
    (folder / "nm_mails.py").write_text("\nlimit = 1 / 0\n")
    assert refusal(["nm_mails"], folder) == (
        f"module nm_mails fails at import: ZeroDivisionError: division by zero ({folder}/nm_mails.py:2)"
    )


def test_a_module_with_a_syntax_error_says_where(folder):
    (folder / "nm_mails.py").write_text("def send(ctx)\n")
    assert refusal(["nm_mails"], folder).endswith("SyntaxError: expected ':' (nm_mails.py, line 1)")


def test_a_module_that_fails_within_a_library_says_where_it_called_it(folder):
    (folder / "nm_mails.py").write_text("import json\nlimit = json.loads('{')\n")
    told = refusal(["nm_mails"], folder)
    assert f"({folder}/nm_mails.py:2, raised at " in told
    assert "json/decoder.py:" in told


def test_a_script_that_exits_at_import_does_not_end_the_worker(folder):
    (folder / "nm_mails.py").write_text("import sys\nsys.exit(3)\n")
    assert "fails at import: SystemExit: 3" in refusal(["nm_mails"], folder)


def test_a_refused_handler_is_reported_with_its_module(folder):
    (folder / "nm_mails.py").write_text("from noonmark.handlers import handler\nhandler(7)\n")
    assert refusal(["nm_mails"], folder).startswith("module nm_mails: 7 is not callable")


def test_a_module_without_handlers_is_refused(folder):
    (folder / "nm_mails.py").write_text("def send(ctx):\n    return 1\n")
    assert refusal(["nm_mails"], folder).startswith("module nm_mails registers no handler")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mails.py", "; did you mean mails?"),
        ("./app/mails.py", "; did you mean app.mails?"),
        ("app/mails", "; did you mean app.mails?"),
        ("", ""),
        ("a b", ""),
        ("mails.send()", ""),
    ],
)
def test_what_is_no_module_name_is_refused(folder, name, hint):
    assert refusal([name], folder) == (
        f"{name!r} is not a module name; write it with dots, as in an import{hint}"
    )


def test_a_path_that_is_no_directory_is_refused(folder):
    assert refusal([], folder / "nowhere").startswith(f"--path {folder}/nowhere is not a folder")
