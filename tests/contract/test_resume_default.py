"""A resume that does not say `missed` does the same wherever it is requested: no instant of the pause runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from noonmark.cli.jobs import control
from noonmark.cli.namespaces import namespaces
from noonmark.client.groups.jobs import Jobs
from noonmark.client.groups.settings import Namespaces
from noonmark.client.publisher import Publisher
from noonmark.core.states import ResumeChoice
from noonmark.schemas.api.jobs import ResumeBody
from noonmark.schemas.api.namespaces import NamespaceResume
from noonmark.schemas.events import submissions
from noonmark.schemas.events.envelope import parse_event, render_structured

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "resume",
    [control.resume, namespaces.resume, Jobs.resume.build, Namespaces.resume.build, Publisher.resume],
    ids=lambda function: f"{function.__module__}.{function.__qualname__}",
)
def test_commands_and_clients_skip_unless_they_are_given_a_choice(resume: Callable[..., Any]) -> None:
    assert inspect.signature(resume).parameters["missed"].default == ResumeChoice.SKIP


@pytest.mark.parametrize("body", [ResumeBody, NamespaceResume])
def test_the_api_skips_unless_a_request_has_a_choice(body: type[Any]) -> None:
    assert body().missed == ResumeChoice.SKIP


def test_an_event_skips_unless_it_has_a_choice() -> None:
    value = render_structured(id="1", source="/s", type=submissions.RESUME, data={"name": "nightly"})
    found = submissions.parse_submission(parse_event(value, None), now=NOW, ledger_floor=NOW)
    assert isinstance(found, submissions.ResumeJob)
    assert found.missed is ResumeChoice.SKIP
