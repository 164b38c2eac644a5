"""Which line of a failed handler is shown: the user's own, and the library's if that raised the exception."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

from noonmark.core.raised_at import Place, raised_at


def module(path: Path, name: str, source: str) -> ModuleType:
    """Make a module as an import of this file does."""
    made = ModuleType(name)
    exec(compile(source, str(path), "exec"), vars(made))
    return made


LIBRARY = "def send(what):\n    raise ConnectionError(what)\n"
HANDLER = "\ndef charge(send):\n    send('no line')\n"


def caught(function, *arguments) -> BaseException:
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, its place is read
        return error
    raise AssertionError("nothing was raised")


def shown(error: BaseException) -> list[tuple[str, int, str]]:
    return [(place.function, place.line, place.file) for place in raised_at(error)]


def test_an_exception_of_an_installed_library_is_shown_at_the_line_that_called_it(tmp_path):
    library = module(tmp_path / "lib/site-packages/mails/smtp.py", "mails.smtp", LIBRARY)
    own = module(tmp_path / "jobs/billing.py", "billing", HANDLER)

    assert shown(caught(own.charge, library.send)) == [("charge", 3, "billing.py"), ("send", 2, "smtp.py")]


def test_so_is_one_of_the_standard_library(tmp_path):
    own = module(tmp_path / "billing.py", "billing", HANDLER)

    first, last = raised_at(caught(own.charge, json.loads))

    assert (first.function, first.line, first.file) == ("charge", 3, "billing.py")
    assert last.path == json.decoder.__file__


def test_so_is_one_that_noonmark_raised_for_the_handler(tmp_path):
    noonmark = module(tmp_path / "noonmark/handlers/context.py", "noonmark.handlers.context", LIBRARY)
    own = module(tmp_path / "billing.py", "billing", HANDLER)

    assert shown(caught(own.charge, noonmark.send)) == [
        ("charge", 3, "billing.py"),
        ("send", 2, "context.py"),
    ]


def test_an_exception_of_the_users_own_code_has_one_place(tmp_path):
    helper = module(tmp_path / "jobs/sending.py", "sending", LIBRARY)
    own = module(tmp_path / "jobs/billing.py", "billing", HANDLER)

    assert shown(caught(own.charge, helper.send)) == [("send", 2, "sending.py")]


def test_of_handlers_that_are_installed_themselves_their_package_counts(tmp_path):
    installed = tmp_path / "site-packages"
    library = module(installed / "mails/smtp.py", "mails.smtp", LIBRARY)
    own = module(installed / "shop/billing.py", "shop.billing", HANDLER)
    engine = module(
        tmp_path / "noonmark/worker.py", "noonmark.worker", "def run(handler, *given):\n    handler(*given)\n"
    )

    error = caught(engine.run, own.charge, library.send)
    error.__traceback__ = error.__traceback__.tb_next  # without this test, which is not installed

    assert shown(error) == [("charge", 3, "billing.py"), ("send", 2, "smtp.py")]


def test_without_any_own_code_the_innermost_place_is_shown():
    error = caught(json.loads, "{")
    error.__traceback__ = error.__traceback__.tb_next

    (place,) = raised_at(error)

    assert place.path == json.decoder.__file__


def test_a_module_whose_name_is_no_text_is_read_all_the_same(tmp_path):
    own = module(tmp_path / "odd.py", "odd", "def fail():\n    raise ValueError\n")
    own.__name__ = 7  # type: ignore[assignment]

    assert raised_at(caught(own.fail))[-1] == Place("fail", 2, str(tmp_path / "odd.py"), "")


def test_an_exception_that_was_never_raised_has_no_place():
    assert raised_at(ValueError()) == ()
