"""Limits and descriptors of the process, which a handler can spoil for all runs after it."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from noonmark.worker.engine.process_resources import ProcessResources


@pytest.fixture
def limits() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def lower_to(files: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))


def test_a_limit_that_a_handler_lowered_is_put_back(limits: None) -> None:
    resources = ProcessResources()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lower_to(8)

    assert resources.problem(100.0) == ""

    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def test_a_process_without_descriptors_starts_nothing_and_is_lost_after_a_while(limits: None) -> None:
    lower_to(max(int(each.name) for each in Path("/proc/self/fd").iterdir()) + 8)
    resources = ProcessResources()
    assert resources.problem(100.0) == ""
    taken = []
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))

    problems = [resources.problem(at) for at in (100.5, 101.0, 110.0, 115.9)]
    assert (problems[0], resources.are_lost) == ("", False)  # it looks once a second
    assert all("file descriptors" in problem for problem in problems[1:])
    resources.problem(117.0)
    assert resources.are_lost

    for descriptor in taken:
        os.close(descriptor)
    assert resources.problem(120.0) == ""
    assert not resources.are_lost
