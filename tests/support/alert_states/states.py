"""The states that are recorded, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.alert_states import blocked, commits, data, in_use, killed, overload, paused, servers
from tests.support.alert_states.ground import Ground
from tests.support.recordings import Recording

STATES: Mapping[str, Callable[[Ground], Recording]] = {
    state.__name__: state
    for state in (
        in_use.healthy,
        in_use.jobs_and_messages_bad,
        in_use.messages_forged,
        killed.trigger_and_dispatcher_killed,
        killed.services_killed,
        overload.handlers_stuck,
        paused.processes_paused,
        servers.postgres_stopped,
        servers.postgres_hangs,
        servers.postgres_slow,
        servers.kafka_stopped,
        servers.owners_cut_off,
        blocked.transaction_idle,
        commits.commits_refused,
        data.jobs_and_topics_broken,
        data.topic_truncated,
        data.promises_broken,
        data.app_outboxes_bad,
        data.upgrade_unfinished,
    )
}
