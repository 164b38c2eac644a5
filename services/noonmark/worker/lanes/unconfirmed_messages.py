"""What a worker makes of messages that the ledger does not bear out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

import psycopg

from noonmark.attempts.running_attempt import Delivery
from noonmark.store.database.row_types import StartedRun
from noonmark.store.runs import held_runs
from noonmark.store.runs.worker_lease import Identity
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.metrics import DUPLICATE_MESSAGES, HANDED_BACK
from noonmark.worker.lanes.reader import LaneReader

_log = get_logger()


def drop_forged(
    connection: psycopg.Connection,
    identity: Identity,
    readers: Sequence[LaneReader],
    deliveries: Mapping[UUID, Delivery],
    runs: list[StartedRun],
) -> list[StartedRun]:
    """Return the runs whose message said what the ledger says of them; give back the others.

    A message that is signed and names another job, version or namespace was made by somebody who has the
    pool's key. It is refused as `mismatch`, and its run is queued anew under a higher fence, with a message
    made of its row: nothing of it was executed, and no attempt is burnt.

    Args:
        connection: autocommit.
        identity: who started the runs.
        readers: by lane.
        deliveries: the message of each run.
        runs: that were just started.
    """
    forged = [run for run in runs if not deliveries[run.id].agrees(run)]
    if not forged:
        return runs
    count = held_runs.requeue_unfinished(
        connection, identity, [(run.id, run.scheduled_for) for run in forged]
    )
    HANDED_BACK.inc(count)
    _log.error("messages_forged", count=len(forged), run_id=str(forged[0].id))
    for run in forged:
        delivery = deliveries[run.id]
        readers[delivery.lane].refuse([delivery])
    unfit = {run.id for run in forged}
    return [run for run in runs if run.id not in unfit]


def count_duplicates(deliveries: Sequence[Delivery]) -> None:
    """Count messages that started nothing."""
    for lane, count in Counter(delivery.lane for delivery in deliveries).items():
        DUPLICATE_MESSAGES.labels(lane.label).inc(count)
