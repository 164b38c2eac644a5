"""`noonmark job pause`, `resume`, `trigger` and `cancel`: orders about one job, as any client gives them."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from noonmark.cli.context import operator_settings
from noonmark.cli.options import AsJson, Missed, as_uuid
from noonmark.cli.output import show_json
from noonmark.core.words import ResumeChoice

Job = Annotated[str, typer.Argument(metavar="ID|NAME", help="Id of the job, or the name of a recurring one.")]
InNamespace = Annotated[str, typer.Option("--namespace", help="Namespace of a job that is named.")]
Reason = Annotated[str | None, typer.Option(help="Why, for people.")]
Source = Annotated[str, typer.Option(help="`source` of the event.")]


def pause(
    *,
    job: Job,
    reason: Reason = None,
    namespace: InNamespace = "default",
    source: Source = "noonmark-cli",
    as_json: AsJson = False,
) -> None:
    """Ask for a job to be held: nothing of it starts until it is resumed. Runs under way go on."""
    data = {} if reason is None else {"reason": reason}
    _publish("pause", job, namespace, data, source=source, as_json=as_json)


def resume(
    *,
    job: Job,
    missed: Missed = ResumeChoice.SKIP,
    namespace: InNamespace = "default",
    source: Source = "noonmark-cli",
    as_json: AsJson = False,
) -> None:
    """Ask for a paused job to go on, and its held runs to be queued."""
    _publish("resume", job, namespace, {"missed": missed.value}, source=source, as_json=as_json)


def trigger(
    *,
    job: Job,
    namespace: InNamespace = "default",
    source: Source = "noonmark-cli",
    as_json: AsJson = False,
) -> None:
    """Ask for a job to run once now, beside its schedule."""
    _publish("trigger", job, namespace, {}, source=source, as_json=as_json)


def cancel(
    *,
    job: Job,
    reason: Reason = None,
    namespace: InNamespace = "default",
    source: Source = "noonmark-cli",
    as_json: AsJson = False,
) -> None:
    """Ask for a job to end for good: nothing of it is due any more, and its unfinished runs are cancelled."""
    data = {} if reason is None else {"reason": reason}
    _publish("cancel", job, namespace, data, source=source, as_json=as_json)


def hint(word: str, job: str, namespace: str) -> str:
    """Return the command that shows what becomes of an order; as typed, it works in a shell."""
    words = ["run", "list"] if word == "trigger" else ["job", "show"]
    if as_uuid(job) is None:
        # Other namespaces may have a job of this name as well.
        words += ["--namespace", namespace]
    # What follows `--` is no option, whatever a name looks like.
    words += ["--job", job] if word == "trigger" else ["--", job] if job.startswith("-") else [job]
    return shlex.join(["noonmark", *words])


def event_of(word: str, job: str, namespace: str, data: dict[str, Any], *, source: str) -> dict[str, Any]:
    """Return the event that gives an order.

    Args:
        word: pause, resume, trigger or cancel.
        job: its id, or its name in the namespace.
        namespace: of a job that is named.
        data: what the order says besides which job is meant.
        source: of the event.
    """
    from noonmark.core.ids import uuid7  # noqa: PLC0415

    named = {"job_id": job} if as_uuid(job) is not None else {"namespace": namespace, "name": job}
    return {
        "specversion": "1.0",
        "id": str(uuid7()),
        "source": source,
        "type": f"noonmark.job.{word}.v1",
        "datacontenttype": "application/json",
        "data": {**named, **data},
    }


def _publish(
    word: str, job: str, namespace: str, data: dict[str, Any], *, source: str, as_json: bool
) -> None:
    from noonmark.cli.submit import publish  # noqa: PLC0415

    event = event_of(word, job, namespace, data, source=source)
    (sent,) = publish(operator_settings(), [event], source=source, bulk=False)
    if as_json:
        show_json(sent)
        return
    print(
        f"{word} of job {job} is published at {sent['position']}; `{hint(word, job, namespace)}` shows what"
        " becomes of it, `noonmark rejection list` whether it was refused"
    )
