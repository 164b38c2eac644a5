"""The steps of the demo: start the stack, publish, follow, check, stop the stack."""

from __future__ import annotations

import math
import os
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from noonmark.cli.connections.context import kafka_config, load_settings
from noonmark.cli.demo.display import Display
from noonmark.cli.demo.ledger import Account, Sent, Snapshot, assess, read
from noonmark.cli.demo.plan import SUBMISSIONS, Scene, Submission
from noonmark.cli.demo.repair import Repair, TaskAccount, differences
from noonmark.cli.demo.target import Target
from noonmark.cli.operations import lag
from noonmark.cli.submissions.submit import send
from noonmark.cli.terminal.output import duration
from noonmark.cli.terminal.problems import CliError, ExitCode
from noonmark.core.ids import uuid7
from noonmark.devstack import commands, state
from noonmark.devstack.options import StackOptions, default_services
from noonmark.kafka.lag.lag import LagProbe, LagUnavailable
from noonmark.kafka.topics import Topics
from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, render_binary, render_structured
from noonmark.schemas.events.submissions import CREATE
from noonmark.settings import Settings

_POLL_SECONDS: Final = 0.4
_STALLED_SECONDS: Final = 60.0
"""The demo waits while something is settled or committed within this time: a busy machine is only slow."""


@dataclass(frozen=True, slots=True)
class _Stage:
    """What every step needs: addresses, start time, publisher's name, display, HTTP target, its repair."""

    settings: Settings
    scene: Scene
    source: str
    display: Display
    target: Target
    repair: Repair

    @property
    def topics(self) -> Topics:
        """Names of the topics."""
        return Topics(self.settings.topic_prefix)


def play(state_dir: Path, examples: Path) -> int:
    """Run the demo.

    Returns:
        0 if everything was as expected, 1 if not, or if the stack could not be started.
    """
    display = Display()
    began = time.monotonic()
    with _signals_as_exit():
        _clear(state_dir)
        try:
            namespace = _namespace()
            if code := commands.up(_options(state_dir, examples, namespace)):
                return code
            target = Target(state_dir / "target.log")
            try:
                faults = _show(state_dir, examples, namespace, display, target)
            finally:
                target.close()
        finally:
            _end(state_dir)
    took = duration(time.monotonic() - began)
    for fault in faults:
        display.line(fault, style="bold red")
    if faults:
        display.line(f"The demo did not go as expected. Logs: {state_dir / 'logs'}", style="bold red")
        return ExitCode.PROBLEM
    display.line(f"All as expected, in {took}. All processes have stopped.", style="bold green")
    return ExitCode.OK


def _show(state_dir: Path, examples: Path, namespace: str, display: Display, target: Target) -> list[str]:
    """Publish, follow and check everything; return the differences."""
    stage = _set_stage(state_dir, namespace, display, target)
    sent = _publish(stage, examples)
    wait_seconds = (stage.scene.minute - datetime.now(UTC)).total_seconds()
    display.line(
        f"Published {len(sent)} events to {stage.topics.submissions};"
        f" the cron job fires in {wait_seconds:.0f} s."
    )
    accounts = _follow(stage, sent)
    lags, failed = _drained(stage.settings)
    tasks = _tasks(stage, accounts)
    display.close(accounts, lags, {submission.title: found for submission, found in tasks.items()})
    faults = [f"{account.sent.submission.title}: {fault}" for account in accounts for fault in account.faults]
    faults += [
        f"{account.sent.submission.title}: not settled in time"
        for account in accounts
        if not account.is_settled and not account.faults
    ]
    for submission, found in tasks.items():
        faults += [f"{submission.title}: {fault}" for fault in differences(submission, found)]
    faults += failed
    left = sum(row["start_backlog"] + row["commit_lag"] for row in lags)
    return [*faults, f"expected lag 0, found {left}"] if left else faults


def _tasks(stage: _Stage, accounts: Sequence[Account]) -> dict[Submission, list[TaskAccount]]:
    """Read the tasks of the workflow runs that have ended after their redrive."""
    return {
        account.sent.submission: [one for run_id in account.run_ids for one in stage.repair.tasks(run_id)]
        for account in accounts
        if account.sent.submission.tasks and account.is_settled
    }


def _namespace() -> str:
    """Return the namespace of the demo's jobs: shared servers may contain jobs of earlier demos."""
    is_shared = "NOONMARK_DATABASE_URL" in os.environ or "NOONMARK_KAFKA_BOOTSTRAP" in os.environ
    return f"demo-{str(uuid7())[-12:]}" if is_shared else "default"


def _set_stage(state_dir: Path, namespace: str, display: Display, target: Target) -> _Stage:
    running = state.running(state_dir)
    if running is None:
        raise CliError(f"the demo's stack stopped unexpectedly; see {state_dir / 'logs'}")
    settings = load_settings(database_url=running.database_url, kafka_bootstrap=running.kafka_bootstrap)
    scene = Scene.at(datetime.now(UTC), target_url=target.url, namespace=namespace)
    repair = Repair(running.api_url, Path(running.api_key_file), namespace, target)
    return _Stage(settings, scene, f"demo/{uuid7()}", display, target, repair)


def _publish(stage: _Stage, examples: Path) -> list[Sent]:
    """Publish every submission as a CloudEvent, as any Kafka client would."""
    records, made = [], []
    for submission in SUBMISSIONS:
        document = submission.document(examples, stage.scene)
        event_id = submission.repeats or submission.title
        if submission.binary:
            value, headers = render_binary(id=event_id, source=stage.source, type=CREATE, data=document)
        else:
            value = render_structured(id=event_id, source=stage.source, type=CREATE, data=document)
            headers = STRUCTURED_HEADERS
        records.append((document["name"].encode(), value, headers))
        made.append((submission, event_id, document["name"]))
    positions = send(stage.settings, stage.topics.submissions, records)
    return [Sent(*parts, position) for parts, position in zip(made, positions, strict=True)]


def _follow(stage: _Stage, sent: Sequence[Sent]) -> list[Account]:
    """Poll until every submission is settled, or none was for too long."""
    left = (stage.scene.minute - stage.scene.now).total_seconds() + _STALLED_SECONDS
    deadline, most = time.monotonic() + left, 0
    probe = LagProbe(kafka_config(stage.settings))
    try:
        with stage.display.following():
            while True:
                passed = _passed(probe, stage.settings)
                snapshot = read(stage.settings, stage.source, stage.scene.namespace)
                accounts = [_assess(stage, one, snapshot, passed) for one in sent]
                settled = sum(account.is_settled for account in accounts)
                if settled > most:
                    most, deadline = settled, max(deadline, time.monotonic() + _STALLED_SECONDS)
                left = deadline - time.monotonic()
                stage.display.update(accounts, max(left, 0))
                _redrive(stage, sent, snapshot)
                if left <= 0 or settled == len(accounts):
                    return accounts
                time.sleep(_POLL_SECONDS)
    finally:
        probe.close()


def _assess(stage: _Stage, sent: Sent, snapshot: Snapshot, passed: dict[int, int]) -> Account:
    return assess(
        sent,
        snapshot,
        passed=_is_passed(sent, passed),
        target=stage.target,
        redriven=stage.repair.redriven,
    )


def _redrive(stage: _Stage, sent: Sequence[Sent], snapshot: Snapshot) -> None:
    """Redrive the workflow run that died; what is read from then on is of its second time."""
    for one in sent:
        if stage.repair.consider(one.submission, snapshot.runs.get(one.name, ())):
            stage.display.step(one.submission.title, "the service that it calls is repaired; redriven")


def _passed(probe: LagProbe, settings: Settings) -> dict[int, int]:
    """Return the offset that intake has committed for each partition of the submissions."""
    topics = Topics(settings.topic_prefix)
    try:
        return {one.partition: one.position for one in probe.measure(topics.group_intake, topics.submissions)}
    except LagUnavailable:
        return {}


def _is_passed(sent: Sent, passed: dict[int, int]) -> bool:
    _, partition, offset = sent.position.rsplit("/", 2)
    return passed.get(int(partition), 0) > int(offset)


def _drained(settings: Settings) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure lag until it is zero, or does not shrink: the last commits follow the last outcome."""
    deadline, least = time.monotonic() + _STALLED_SECONDS, math.inf
    while True:
        rows, failed = lag.measure(settings)
        left = sum(row["start_backlog"] + row["commit_lag"] for row in rows)
        if left < least:
            least, deadline = left, time.monotonic() + _STALLED_SECONDS
        if (not failed and not left) or time.monotonic() > deadline:
            return rows, failed
        time.sleep(_POLL_SECONDS)


def _options(state_dir: Path, examples: Path, namespace: str) -> StackOptions:
    """Return the stack's plan: defaults, and a worker with the handlers of the examples."""
    folder = examples.resolve()
    services = default_services(handlers=(f"{folder.name}.handlers",), path=str(folder.parent))
    return StackOptions(state_dir=state_dir, detach=True, services=services, namespace=namespace)


def _clear(state_dir: Path) -> None:
    """Stop the stack of an earlier demo and delete its data."""
    if state.load(state_dir) is not None:
        _end(state_dir)
    shutil.rmtree(state_dir, ignore_errors=True)
    state_dir.mkdir(parents=True, exist_ok=True)


def _end(state_dir: Path) -> None:
    if state.load(state_dir) is not None and commands.down(state_dir):
        raise CliError(f"cannot stop the demo's stack; run `noonmark dev down --state-dir {state_dir}`")


@contextmanager
def _signals_as_exit() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that the demo stops what it started."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
