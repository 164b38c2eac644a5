"""The demo's dead workflow run: repair the service that a task calls, redrive the run, check its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from noonmark.cli.demo.plan import Submission
from noonmark.cli.demo.target import Target
from noonmark.core.states import RunState

if TYPE_CHECKING:
    from noonmark.client import Client

NOT_DECIDED: Final = "undecided"


@dataclass(frozen=True, slots=True)
class TaskAccount:
    """A task of the workflow: what happened the first time, and after the redrive.

    Attributes:
        key: name of the task.
        before: state of its run before the redrive, with the reason of a skip.
        after: the same when the workflow run has ended again.
        ran_again: whether the redrive gave it another run.
    """

    key: str
    before: str
    after: str
    ran_again: bool


class Repair:
    """Redrives the workflow runs that are expected to die once, as a person would through the API."""

    def __init__(self, api_url: str, key_file: Path, namespace: str, target: Target) -> None:
        """Store the addresses; nothing is called yet."""
        self.redriven: set[str] = set()
        self._api_url = api_url
        self._key_file = key_file
        self._namespace = namespace
        self._target = target

    def consider(self, submission: Submission, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Repair the service and redrive the run if it died and was not redriven; return whether it did."""
        dead = [str(row["id"]) for row in rows if row["state"] == RunState.DEAD]
        dead = [one for one in dead if one not in self.redriven]
        if not submission.tasks or not dead:
            return False
        self._target.repair()
        with self._client() as client:
            client.dead_letters.redrive({"runs": dead})
        self.redriven.update(dead)
        return True

    def tasks(self, run_id: str) -> list[TaskAccount]:
        """Return the tasks of a workflow run that was redriven."""
        with self._client() as client:
            first = {one["key"]: one for one in client.runs.tasks(run_id, generation=1)}
            last = list(client.runs.tasks(run_id))
        return [_account(first.get(one["key"]), one) for one in last]

    def _client(self) -> Client:
        from noonmark.client import Client  # noqa: PLC0415 - loads an HTTP library

        key = self._key_file.read_text(encoding="utf-8").strip()
        return Client(self._api_url, key, namespace=self._namespace)


def differences(submission: Submission, tasks: Sequence[TaskAccount]) -> list[str]:
    """Compare the tasks with what is expected."""
    found = {one.key: (one.before, one.after) for one in tasks}
    return [
        f"task {key} expected to be {_shown(wanted)}, is {_shown(found.get(key, ('missing',)))}"
        for key, wanted in submission.tasks.items()
        if found.get(key) != wanted
    ]


def _shown(states: Sequence[str]) -> str:
    return " and then ".join(states)


def _account(first: Mapping[str, Any] | None, last: Mapping[str, Any]) -> TaskAccount:
    before = NOT_DECIDED if first is None else _state(first)
    return TaskAccount(str(last["key"]), before, _state(last), last["generation"] != 1)


def _state(task: Mapping[str, Any]) -> str:
    skipped = task["state"] == RunState.SKIPPED
    return f"{task['state']} ({task['reason']})" if skipped else str(task["state"])
