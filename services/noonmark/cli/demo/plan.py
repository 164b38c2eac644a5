"""The demo's submissions and their expected outcomes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urljoin

from noonmark.cli.demo.target import REPAIRED_LATER

Verdict = Literal["accepted", "duplicate", "rejected"]

INTERVAL_RUNS: Final = 5
_INTERVAL_SECONDS: Final = 2


@dataclass(frozen=True, slots=True)
class Scene:
    """Values that are filled into the documents when they are published.

    Attributes:
        now: time of publishing.
        minute: the full minute of the cron job.
        target_url: URL of the HTTP job, on the server that a task of the workflow also calls.
        namespace: namespace of the jobs.
    """

    now: datetime
    minute: datetime
    target_url: str
    namespace: str

    @classmethod
    def at(cls, now: datetime, *, target_url: str, namespace: str) -> Scene:
        """Choose the next full minute that leaves a submission enough time to reach the database."""
        minute = (now + timedelta(seconds=63)).replace(second=0, microsecond=0)
        return cls(now, minute, target_url, namespace)


Document = dict[str, Any]


def _as_it_is(_document: Document, _scene: Scene) -> None:
    """Publish the file unchanged."""


def _in_five_seconds(document: Document, scene: Scene) -> None:
    document["run_at"] = _text(scene.now + timedelta(seconds=5))


def _five_instants(document: Document, scene: Scene) -> None:
    start = scene.now + timedelta(seconds=4)
    end = start + timedelta(seconds=_INTERVAL_SECONDS * (INTERVAL_RUNS - 1))
    document["schedule"] |= {"every": _INTERVAL_SECONDS, "start": _text(start), "end": _text(end)}


def _one_minute(document: Document, scene: Scene) -> None:
    document["schedule"] |= {"start": _text(scene.minute), "end": _text(scene.minute)}


def _to_the_target(document: Document, scene: Scene) -> None:
    document["payload"]["url"] = scene.target_url


def _to_what_is_broken(document: Document, scene: Scene) -> None:
    document["tasks"]["orders"]["payload"]["url"] = urljoin(scene.target_url, REPAIRED_LATER)


@dataclass(frozen=True, slots=True)
class Submission:
    """One event of the demo and its expected outcome.

    Attributes:
        title: name in the demo's output, and the event's id.
        file: the job document below `submissions/`.
        verdict: expected verdict of intake.
        state: expected final state of each run.
        runs: expected number of runs.
        attempts: expected number of attempts of each run.
        pointers: fields that the rejection must name.
        adapt: fills values into the document.
        repeats: the submission whose event is published again with the same id.
        binary: published in CloudEvents' binary content mode instead of structured.
        calls_target: the target's log must contain its runs.
        tasks: expected states of the tasks of a workflow, at its first end and after a redrive.
    """

    title: str
    file: str
    verdict: Verdict = "accepted"
    state: str = "succeeded"
    runs: int = 1
    attempts: int = 1
    pointers: tuple[str, ...] = ()
    adapt: Callable[[Document, Scene], None] = _as_it_is
    repeats: str | None = None
    binary: bool = False
    calls_target: bool = False
    tasks: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)

    def document(self, examples: Path, scene: Scene) -> Document:
        """Return the job document with its values filled in."""
        document: Document = json.loads((examples / "submissions" / self.file).read_text(encoding="utf-8"))
        document["namespace"] = scene.namespace
        self.adapt(document, scene)
        return document


SUBMISSIONS: Final = (
    Submission("one-time", "one-time.json", adapt=_in_five_seconds),
    Submission("interval", "interval.json", runs=INTERVAL_RUNS, adapt=_five_instants),
    Submission("cron", "cron.json", adapt=_one_minute),
    Submission("http", "http.json", adapt=_to_the_target, binary=True, calls_target=True),
    Submission("python sync", "python-sync.json"),
    Submission("python async", "python-async.json", binary=True),
    Submission("fails twice", "flaky.json", attempts=3),
    Submission("dead letter", "dead.json", state="dead", attempts=2),
    Submission(
        "workflow",
        "workflow.json",
        adapt=_to_what_is_broken,
        tasks={
            "extract": ("succeeded", "succeeded"),
            "orders": ("dead", "succeeded"),
            "refunds": ("skipped (upstream_skipped)", "skipped (upstream_skipped)"),
            "publish": ("skipped (upstream_failed)", "succeeded"),
        },
    ),
    Submission("sent twice", "duplicate.json"),
    Submission("the second time", "duplicate.json", verdict="duplicate", runs=0, repeats="sent twice"),
    Submission(
        "invalid",
        "invalid.json",
        verdict="rejected",
        runs=0,
        pointers=("/data/schedule", "/data/retry_delay_secs"),
    ),
)


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
