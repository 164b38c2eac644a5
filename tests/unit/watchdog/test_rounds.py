"""Asking all parts at once: what hangs or fails is one part's trouble."""

from __future__ import annotations

import threading

from noonmark.watchdog.check_rounds import Check, CheckRounds


def describe(error: Exception) -> str:
    return f"said: {error}"


def test_each_part_gets_its_own_answer():
    def fails():
        raise ConnectionError("refused")

    rounds = CheckRounds(
        (
            Check("one", ("a", "b"), lambda: {"a": "", "b": "slow"}, describe),
            Check("two", ("c",), fails, describe),
            Check("three", ("d",), dict, describe),
        ),
        within_seconds=30,
    )

    assert rounds.run() == {"a": "", "b": "slow", "c": "said: refused", "d": "was not checked"}


def test_one_that_hangs_holds_up_no_other_and_is_asked_again_when_it_came_back():
    release, calls = threading.Event(), []
    back = threading.Event()

    def hangs():
        calls.append(1)
        release.wait()
        back.set()
        return {"a": ""}

    rounds = CheckRounds(
        (Check("one", ("a",), hangs, describe), Check("two", ("b",), lambda: {"b": ""}, describe)),
        within_seconds=0.05,
    )

    assert rounds.run() == {"a": "does not answer within 0.05 s", "b": ""}
    assert rounds.run() == {"a": "does not answer within 0.05 s", "b": ""}
    assert len(calls) == 1
    release.set()
    assert back.wait(30)
    while rounds.run() != {"a": "", "b": ""}:
        pass
