"""Registering handlers: what is accepted, and the exact words of every refusal."""

import functools

import pytest

from noonmark.handlers import REGISTRY, HandlerError, Registry, handler


@pytest.fixture
def registry():
    return Registry()


@pytest.fixture(autouse=True)
def process_registry_as_before():
    before = dict(REGISTRY._handlers)
    yield
    REGISTRY._handlers.clear()
    REGISTRY._handlers.update(before)


def send(ctx):
    return ctx


async def send_async(ctx):
    return ctx


class Mailer:
    def send(self, ctx):
        return ctx

    def __call__(self, ctx):
        return ctx


class AsyncMailer:
    async def __call__(self, ctx):
        return ctx


def refusal(registry, function, **options):
    with pytest.raises(HandlerError) as error:
        registry.add(function, **options)
    return str(error.value)


def test_a_plain_decorator_registers_under_the_dotted_path_and_returns_the_function():
    decorated = handler(send)
    assert decorated is send
    entry = REGISTRY.get(f"{__name__}.send")
    assert (entry.function, entry.is_async) == (send, False)


def test_a_decorator_with_a_name_registers_under_it():
    @handler("mails.welcome")
    def welcome(ctx):
        return ctx

    entry = REGISTRY.get("mails.welcome")
    assert entry.function is welcome


def test_async_functions_are_told_apart(registry):
    assert registry.add(send_async).is_async
    assert registry.add(functools.partial(send_async), name="partial").is_async
    assert registry.add(AsyncMailer(), name="instance").is_async
    assert not registry.add(Mailer(), name="sync-instance").is_async


def test_bound_methods_and_defaults_are_accepted(registry):
    registry.add(Mailer().send, name="method")
    registry.add(lambda ctx, retries=3: retries, name="default")
    registry.add(lambda *args: args, name="star")
    assert registry.names() == ["default", "method", "star"]


def test_an_unknown_name_gives_none(registry):
    registry.add(send, name="mails.send")
    assert registry.get("mails") is None
    assert registry.get("mails.send.now") is None


def test_two_handlers_of_one_name_are_refused_with_both_places(registry):
    registry.add(send, name="mails.send")
    line = send.__code__.co_firstlineno
    async_line = send_async.__code__.co_firstlineno
    assert refusal(registry, send_async, name="mails.send") == (
        f"two handlers are named 'mails.send': {__file__}:{line} and {__file__}:{async_line}; "
        'change one of the names: @handler("other.name")'
    )


def test_a_value_that_is_not_callable_is_refused(registry):
    assert refusal(registry, 7) == "7 is not callable; a handler is a function: def send(ctx): ..."


def test_a_class_is_refused(registry):
    assert refusal(registry, Mailer) == (
        f"{__name__}.Mailer is a class; a handler is a function: def send(ctx): ..."
    )


def test_generators_are_refused(registry):
    def rows(ctx):
        yield ctx

    async def stream(ctx):
        yield ctx

    for function in (rows, stream):
        assert refusal(registry, function, name="rows") == (
            "handler 'rows' is a generator (it has a yield), so calling it would run nothing; "
            "return the result instead"
        )


@pytest.mark.parametrize(
    ("function", "signature"),
    [(lambda: 1, "()"), (lambda ctx, payload: 1, "(ctx, payload)"), (lambda *, ctx: 1, "(*, ctx)")],
    ids=["none", "two", "keyword only"],
)
def test_a_wrong_signature_is_refused(registry, function, signature):
    assert refusal(registry, function, name="send") == (
        f"handler 'send' takes {signature}; it is called with one argument, the context: def send(ctx): ..."
    )


def test_an_unbound_method_is_refused(registry):
    assert "takes (self, ctx)" in refusal(registry, Mailer.send)


def test_a_function_inside_a_function_needs_a_name(registry):
    def inner(ctx):
        return ctx

    message = refusal(registry, inner)
    assert "is defined inside a function or is a lambda" in message
    assert message.endswith('set a name: @handler("mails.send")')


def test_a_partial_needs_a_name(registry):
    assert refusal(registry, functools.partial(send)).endswith(
        'has no name; set one: handler("mails.send")(function)'
    )


@pytest.mark.parametrize("name", ["", "a b", ".send", "-send", "a" * 201, "sénd", "a/b", "a\nb"])
def test_names_that_cannot_travel_are_refused(registry, name):
    assert refusal(registry, send, name=name) == (
        f"{name!r} cannot name a handler: use 1 to 200 ASCII letters, digits, dots, dashes and "
        "underscores, the first a letter, digit or underscore"
    )


def test_a_refused_handler_leaves_nothing_behind(registry):
    refusal(registry, send, name="a b")
    assert len(registry) == 0
    assert list(registry) == []


def test_async_functions_run_on_the_loop_others_on_a_thread_and_both_in_a_process_if_asked():
    async def waits(ctx): ...

    def works(ctx): ...

    registry = Registry()
    modes = [
        registry.add(waits, name="a").run,
        registry.add(works, name="b").run,
        registry.add(waits, name="c", run="loop").run,
        registry.add(works, name="d", run="thread").run,
        registry.add(waits, name="e", run="process").run,
        registry.add(works, name="f", run="process").run,
    ]
    assert modes == ["loop", "thread", "loop", "thread", "process", "process"]


@pytest.mark.parametrize(
    ("is_async", "run", "said"),
    [
        (True, "thread", "it is async, so it runs on the event loop"),
        (False, "loop", "it is not async, so it runs on a thread"),
        (False, "fiber", "use one of loop, thread, process"),
    ],
)
def test_a_mode_that_a_function_cannot_have_is_refused_at_import(is_async, run, said):
    async def waits(ctx): ...

    def works(ctx): ...

    with pytest.raises(HandlerError, match=said) as refused:
        Registry().add(waits if is_async else works, name="mails.send", run=run)
    assert "'mails.send'" in str(refused.value)
