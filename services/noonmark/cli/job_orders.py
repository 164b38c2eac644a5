"""`noonmark job pause` and `resume`: orders about one job, published for intake as any client would."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from noonmark.cli.context import operator_settings
from noonmark.cli.options import AsJson, Missed, MissedName, as_uuid
from noonmark.cli.output import show_json

Job = Annotated[str, typer.Argument(metavar="ID|NAME", help="Id of the job, or the name of a recurring one.")]
InNamespace = Annotated[str, typer.Option("--namespace", help="Namespace of a job that is named.")]
Source = Annotated[str, typer.Option(help="`source` of the event.")]


def pause(
    *,
    job: Job,
    reason: Annotated[str | None, typer.Option(help="Why, for people.")] = None,
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
    missed: Missed = MissedName.SKIP,
    namespace: InNamespace = "default",
    source: Source = "noonmark-cli",
    as_json: AsJson = False,
) -> None:
    """Ask for a paused job to go on, and its held runs to be queued."""
    _publish("resume", job, namespace, {"missed": missed.value}, source=source, as_json=as_json)


def _publish(
    word: str, job: str, namespace: str, data: dict[str, Any], *, source: str, as_json: bool
) -> None:
    from noonmark.cli.submit import publish  # noqa: PLC0415
    from noonmark.core.ids import uuid7  # noqa: PLC0415

    named = {"job_id": job} if as_uuid(job) is not None else {"namespace": namespace, "name": job}
    event = {
        "specversion": "1.0",
        "id": str(uuid7()),
        "source": source,
        "type": f"noonmark.job.{word}.v1",
        "datacontenttype": "application/json",
        "data": {**named, **data},
    }
    (sent,) = publish(operator_settings(), [event], source=source, bulk=False)
    if as_json:
        show_json(sent)
        return
    print(
        f"{word} of job {job} is published at {sent['position']}; `noonmark job show {job}` shows what"
        " becomes of it, `noonmark rejection list` whether it was refused"
    )
