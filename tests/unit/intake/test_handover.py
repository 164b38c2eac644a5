"""The hand-over: one batch written, one waiting, and none let go before it is done."""

from __future__ import annotations

import threading
from typing import cast

from noonmark.intake.authorization import BatchContext
from noonmark.intake.batch_checks import CheckedBatch
from noonmark.intake.write_loop import BatchQueue
from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.store.schedules.time_facts import Moment


def batch() -> CheckedBatch:
    return CheckedBatch(cast("BatchConsumer", None), [], cast("Moment", None), BatchContext(0.0))


def test_a_batch_stays_in_hand_until_it_is_done() -> None:
    handover = BatchQueue(threading.Event())
    first, second = batch(), batch()
    handover.offer(first)
    assert handover.begin() is first
    assert handover.wait_for_slot(0)
    handover.offer(second)
    assert not handover.wait_for_slot(0)
    assert handover.begin() is first, "written again after a failure"
    handover.done()
    assert handover.begin() is second
    handover.done()
    assert handover.begin() is None


def test_an_offer_wakes_the_writer() -> None:
    wake = threading.Event()
    BatchQueue(wake).offer(batch())
    assert wake.is_set()


def test_after_the_close_nothing_new_is_begun_and_what_is_written_is_waited_for() -> None:
    handover = BatchQueue(threading.Event())
    handover.offer(batch())
    assert handover.begin() is not None
    handover.offer(batch())
    writer = threading.Timer(0.05, handover.done)
    writer.start()
    handover.close(10)
    writer.join()
    assert handover.begin() is None


def test_nobody_waits_for_a_writer_that_is_gone() -> None:
    handover = BatchQueue(threading.Event())
    handover.offer(batch())
    assert handover.begin() is not None
    handover.abandon()
    handover.close(60)
    assert handover.begin() is None
