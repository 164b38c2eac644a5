"""Submissions through the API: checked and accepted by the same code as events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from noonmark.api.http.problems import ProblemError
from noonmark.schemas.events.envelope import Event
from noonmark.schemas.events.submissions import Submission, parse_submission
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.service.acceptor import Acceptor
from noonmark.store.jobs.submit import Request, Result, Status, Taken
from noonmark.store.schedules.time_facts import Moment


class SubmissionAcceptor(Acceptor):
    """Accepts submissions inside the transactions of requests. Thread-safe."""

    def accept_one(self, connection: psycopg.Connection, event_type: str, data: Mapping[str, Any]) -> Taken:
        """Accept one submission, given as an event's type and data.

        Raises:
            ProblemError: if it is rejected; the caller's transaction must roll back.
            Refused: if a document is invalid; pointers are relative to `data`.
        """

        def read(moment: Moment) -> Sequence[Request]:
            return [Request(parse(event_type, data, moment), None)]

        taken = self.accept_read(connection, read)
        raise_rejected(taken.results[0])
        return taken


def parse(event_type: str, data: Mapping[str, Any], moment: Moment) -> Submission:
    """Check a submission; pointers of problems are relative to `data`.

    Raises:
        Refused: if it is invalid.
    """
    event = Event("", "api", event_type, None, None, None, dict(data), screened=True)
    try:
        return parse_submission(event, now=moment.now, ledger_floor=moment.ledger_floor, facts=moment.facts)
    except Refused as refused:
        # Events contain the document in `data`; here it is the body itself.
        raise Refused(
            FieldError(item.pointer.removeprefix("/data"), item.message, item.expected)
            for item in refused.errors
        ) from None


def raise_rejected(result: Result) -> None:
    """Fail the request if the store rejected it.

    Raises:
        ProblemError: if the store rejected it.
    """
    if result.status is Status.REJECTED:
        raise ProblemError.of_result(result)
