"""Submissions by the API: checked and taken in by the same code as events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from noonmark.api.http.problems import ProblemError
from noonmark.schemas.events.envelope import Event
from noonmark.schemas.events.submissions import Submission, parse_submission
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.service.acceptor import Acceptor
from noonmark.service.database_clock import Moment
from noonmark.store.jobs.submit import Request, Result, Status, Taken


class SubmissionAcceptor(Acceptor):
    """Takes in submissions inside transactions of requests. Safe to use from many threads."""

    def accept_one(self, connection: psycopg.Connection, event_type: str, data: Mapping[str, Any]) -> Taken:
        """Take in one submission, given as an event's type and data.

        Raises:
            ProblemError: it is rejected; nothing is changed once the caller's transaction rolls back.
            Refused: a document is not valid; pointers are relative to `data`.
        """

        def read(moment: Moment) -> Sequence[Request]:
            return [Request(parse(event_type, data, moment), None)]

        taken = self.accept_read(connection, read)
        raise_rejected(taken.results[0])
        return taken


def parse(event_type: str, data: Mapping[str, Any], moment: Moment) -> Submission:
    """Check a submission; pointers of problems are relative to `data`.

    Raises:
        Refused: it is not valid.
    """
    event = Event("", "api", event_type, None, None, None, dict(data), screened=True)
    try:
        return parse_submission(event, now=moment.now, ledger_floor=moment.ledger_floor, facts=moment.facts)
    except Refused as refused:
        # Events carry the document in `data`; here it is the body itself.
        raise Refused(
            FieldError(item.pointer.removeprefix("/data"), item.message, item.expected)
            for item in refused.errors
        ) from None


def raise_rejected(result: Result) -> None:
    """End the request if the store rejected it.

    Raises:
        ProblemError: it did.
    """
    if result.status is Status.REJECTED:
        raise ProblemError.of_result(result)
