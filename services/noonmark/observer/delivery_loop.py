"""Sends pending alert changes to each channel, until the channel accepts them or they are abandoned."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Final

import psycopg

from noonmark.alerting.channels import Channel, ChannelError, open_channels
from noonmark.core.faults import hit
from noonmark.core.monitoring.alerts import AlertChange
from noonmark.service.database_loop import DatabaseLoop
from noonmark.service.runner import Loop, Service, StartError
from noonmark.store.alerts import deliveries
from noonmark.store.alerts.deliveries import Delivery, Failure
from noonmark.telemetry.declared.labels import DELIVERY_RESULTS
from noonmark.telemetry.metrics import ALERT_DELIVERIES, ALERT_DELIVERIES_WAITING

_LEASE_SECONDS: Final = 90.0
"""Longer than a channel needs for a full batch when its receiver does not answer."""

_FIRST_WAIT_SECONDS: Final = 5.0
_LONGEST_WAIT_SECONDS: Final = 900.0
_LONGEST_REMINDER_SECONDS: Final = 60.0
_MEASURE_SECONDS: Final = 5.0


def delivery_loops(service: Service) -> list[Loop]:
    """Create a loop for each channel that the settings enable, so that one that is down delays no other.

    Raises:
        StartError: the settings of a channel are invalid.
    """
    try:
        return [DeliveryLoop(service, channel) for channel in open_channels(service.settings)]
    except ChannelError as error:
        raise StartError(str(error)) from error


class DeliveryLoop(DatabaseLoop):
    """Sends deliveries to one channel. Several observers may do so: one at a time leases each delivery.

    If the process dies between sending a delivery and recording that, it is sent again with the same id.
    """

    def __init__(self, service: Service, channel: Channel) -> None:
        """Create the loop; it closes the channel when it stops."""
        super().__init__(service, f"tell_{channel.name}", max_age_seconds=120.0)
        self._channel = channel
        self._measure_at = 0.0
        for result in DELIVERY_RESULTS:
            ALERT_DELIVERIES.labels(channel.name, result)

    def run_once(self, connection: psycopg.Connection) -> float:
        """Send the due deliveries; return 0 seconds if the batch was full, because more may be due."""
        channel = self._channel
        deliveries.recall(connection, channel.name, longest_seconds=2 * _longest_wait(channel))
        if channel.reminded:
            deliveries.retire(connection, channel.name)
        taken_at = time.monotonic()
        due = deliveries.claim(connection, channel.name, most=channel.most, lease_seconds=_LEASE_SECONDS)
        if due:
            self._deliver(connection, due, taken_at)
        if time.monotonic() >= self._measure_at:
            self._measure_at = time.monotonic() + _MEASURE_SECONDS
            ALERT_DELIVERIES_WAITING.labels(channel.name).set(
                deliveries.count_waiting(connection, channel.name)
            )
        return 0.0 if len(due) >= channel.most else 1.0

    def ending(self, connection: psycopg.Connection) -> None:
        """Close the channel."""
        del connection
        self._channel.close()

    def _deliver(self, connection: psycopg.Connection, due: Sequence[Delivery], taken_at: float) -> None:
        name = self._channel.name
        results = self._channel.send(due, taken_at)
        hit("observer.after_tell")
        sent = [one for one, error in results if not error]
        failed = [_failure(self._channel, one, error) for one, error in results if error]
        noted = deliveries.note_sent(connection, name, sent, reminded=self._channel.reminded)
        refused, given_up = deliveries.note_failed(connection, name, failed)
        ALERT_DELIVERIES.labels(name, "sent").inc(noted)
        ALERT_DELIVERIES.labels(name, "failed").inc(refused - given_up)
        ALERT_DELIVERIES.labels(name, "given_up").inc(given_up)
        if failed:
            self._log.warning(
                "alerts_not_told", channel=name, count=len(failed), given_up=given_up, reason=failed[0].error
            )
        if noted + refused < len(due):
            self._log.info("deliveries_taken_over", channel=name, count=len(due) - noted - refused)


def _longest_wait(channel: Channel) -> float:
    return _LONGEST_REMINDER_SECONDS if channel.reminded else _LONGEST_WAIT_SECONDS


def _failure(channel: Channel, one: Delivery, error: str) -> Failure:
    """Return when to retry a delivery, with twice the delay each time, or that it is abandoned."""
    # A channel that needs reminders must receive every open alert, however long it was down.
    keep_trying = channel.reminded and one.change == AlertChange.RAISED and one.resolved_at is None
    ceiling = min(_longest_wait(channel), _FIRST_WAIT_SECONDS * 2.0 ** min(one.attempts - 1, 16))
    wait = ceiling * random.uniform(0.5, 1.0)
    return Failure(one, error, wait, give_up=not keep_trying and one.attempts >= deliveries.MOST_ATTEMPTS)
