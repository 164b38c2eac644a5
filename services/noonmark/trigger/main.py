"""`noonmark trigger`: build the loops and run them."""

from __future__ import annotations

from collections.abc import Sequence

from noonmark.kafka.topics import Topics
from noonmark.service.ownership import OwnershipLoop
from noonmark.service.runner import Loop, Service, run_service
from noonmark.service.startup import await_install
from noonmark.settings import Settings
from noonmark.store.cluster.members import Membership
from noonmark.store.database.hints import (
    DUE_CHANNEL,
    ENDED_CHANNEL,
    FREED_CHANNEL,
    HintListener,
    HintSender,
)
from noonmark.store.outcomes.events import EventTopics
from noonmark.trigger.backfill_loop import BackfillLoop
from noonmark.trigger.claim_loop import ClaimLoop
from noonmark.trigger.failure_watch import FailureLoop
from noonmark.trigger.measure_loop import MeasureLoop
from noonmark.trigger.promote_loop import PromoteLoop
from noonmark.trigger.sweep_loop import HousekeepingLoop, LeaseLoop
from noonmark.trigger.workflow_loop import WorkflowLoop


def build(service: Service) -> Sequence[Loop]:
    """Create the trigger's loops."""
    settings = service.settings
    install = await_install(service)
    topics = Topics(settings.topic_prefix)
    events = EventTopics(lifecycle=topics.lifecycle, dead=topics.dead)
    membership = Membership("trigger", shards=install.shards, timeout_seconds=settings.owner_timeout_seconds)
    hints = HintSender(settings.dsn)
    promote = PromoteLoop(service, membership, events, hints, shards=install.shards)
    claim = ClaimLoop(
        service, membership, events, hints, shards=install.shards, waiting_runs=promote.wake.set
    )
    workflows = WorkflowLoop(service, membership, events, hints, shards=install.shards)
    channels = {DUE_CHANNEL: claim.wake, FREED_CHANNEL: promote.wake, ENDED_CHANNEL: workflows.wake}
    return [
        OwnershipLoop(service, membership, (claim.wake, workflows.wake)),
        HintListener(settings.dsn, channels),
        claim,
        workflows,
        promote,
        BackfillLoop(service, membership, hints),
        LeaseLoop(service, membership, events, hints, shards=install.shards),
        FailureLoop(service, membership, events, shards=install.shards),
        HousekeepingLoop(service, membership, topics, hints),
        MeasureLoop(service, membership, shards=install.shards),
    ]


def run(settings: Settings) -> int:
    """Run the service; return its exit code."""
    return run_service("trigger", settings, build)
