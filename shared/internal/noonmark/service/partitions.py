"""Readiness of a member of a consumer group: it has partitions, or it is a spare that could take over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.kafka.consumers.membership import coordinator_answers
from noonmark.service.health import Health

SPARE_SECONDS: Final = 30.0
"""A process that is older and has no partition is a spare: the group has had the time to assign it one."""

_ASK_SECONDS: Final = 10.0
_ASK_AGAIN_SECONDS: Final = 2.0


class PartitionReadiness:
    """A condition of `/readyz`. A spare is ready, else a rollout waits forever for a pod without a partition.

    The group does not say that a member is a spare, and a member that Kafka refuses or does not answer has no
    partition either. So the coordinator is asked, and only a spare that gets an answer is ready.
    """

    def __init__(
        self,
        health: Health,
        condition: str,
        *,
        answers: Callable[[BatchConsumer], bool] = coordinator_answers,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Add the condition.

        Args:
            health: of the process.
            condition: its name.
            answers: returns whether the coordinator of a consumer's group answers it; may take a second.
            clock: monotonic seconds.
        """
        self._health = health
        self._condition = condition
        self._answers = answers
        self._clock = clock
        self._is_ready = False
        self._spare_at = self._ask_at = clock() + SPARE_SECONDS
        health.require(condition, "no partition is assigned yet")

    def report(self, consumer: BatchConsumer) -> None:
        """Set the condition; call it in every pass, in the thread that owns the consumer."""
        now = self._clock()
        if consumer.assigned:
            # Ask at once when they are lost.
            self._ask_at = self._spare_at
            self._set(ready=True)
        elif now < self._spare_at:
            self._set(ready=False)
        elif now >= self._ask_at:
            answers = self._answers(consumer)
            self._ask_at = self._clock() + (_ASK_SECONDS if answers else _ASK_AGAIN_SECONDS)
            self._set(ready=answers)

    def _set(self, *, ready: bool) -> None:
        if ready != self._is_ready:
            self._is_ready = ready
            self._health.set_ready(self._condition, ready=ready, missing="no partition is assigned")
