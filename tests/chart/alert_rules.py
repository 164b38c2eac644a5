"""The rules of the chart, and which of its alerts fire on which recording."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.support.promql import selectors

ROOT = Path(__file__).parents[2]
RULES = ROOT / "helm/noonmark/files/rules"
RECORDINGS = Path(__file__).parent / "recordings"

RECORDED: dict[str, set[str]] = {
    "healthy": set(),
    "services_killed": {
        "NoonmarkApiDead",
        "NoonmarkIntakeDead",
        "NoonmarkObserverDead",
        "NoonmarkPoolWithoutWorkers",
        "NoonmarkStartBacklogOverObjective",
        "NoonmarkTargetDown",
        "NoonmarkWatchdogDead",
        "NoonmarkWorkersDead",
    },
    "trigger_and_dispatcher_killed": {
        "NoonmarkDispatcherDead",
        "NoonmarkTargetDown",
        "NoonmarkTriggerDead",
        "NoonmarkWatchdogBeatsFail",
        "NoonmarkWatchdogPartNotOk",
    },
    "jobs_and_messages_bad": {
        "NoonmarkDeadLettersGrow",
        "NoonmarkFailureRateHigh",
        "NoonmarkMessagesRejected",
        "NoonmarkRejectionsHigh",
        "NoonmarkRetriesStorm",
    },
    "messages_forged": {"NoonmarkMessageForged"},
    "handlers_stuck": {
        "NoonmarkPoolSaturated",
        "NoonmarkStartBacklogGrowing",
        "NoonmarkStartBacklogOverObjective",
        "NoonmarkStartBacklogStalled",
        "NoonmarkStartSloBurnsFast",
        "NoonmarkStartSloBurnsSlowly",
    },
    "processes_paused": {
        "NoonmarkOwnershipFlaps",
        "NoonmarkRunsLost",
        "NoonmarkWorkersLapse",
        "NoonmarkWritesFenced",
    },
    "postgres_stopped": {
        "NoonmarkApiErrors",
        "NoonmarkHeartbeatNearLease",
        "NoonmarkPostgresUnreachable",
        "NoonmarkShardsUnowned",
        "NoonmarkWatchdogPartNotOk",
    },
    "postgres_hangs": {
        "NoonmarkDispatcherDead",
        "NoonmarkHeartbeatNearLease",
        "NoonmarkLoopStalled",
        "NoonmarkPostgresUnreachable",
        "NoonmarkShardsUnowned",
        "NoonmarkTriggerDead",
        "NoonmarkWatchdogPartNotOk",
    },
    "postgres_slow": {"NoonmarkApiSlow", "NoonmarkClaimsSlow"},
    "kafka_stopped": {
        "NoonmarkDueTimersWaiting",
        "NoonmarkOutboxFilling",
        "NoonmarkOutboxStuck",
        "NoonmarkWatchdogPartNotOk",
    },
    "owners_cut_off": {"NoonmarkInstantsMissed", "NoonmarkShardsUnowned"},
    "transaction_idle": {
        "NoonmarkDeadRowsPile",
        "NoonmarkIntakeStalled",
        "NoonmarkObserverBehind",
        "NoonmarkOldestXminHeld",
        "NoonmarkSubmissionsBehind",
    },
    "commits_refused": {"NoonmarkOffsetCommitsFail"},
    "jobs_and_topics_broken": {
        "NoonmarkAlertDeliveriesFail",
        "NoonmarkEventsRefused",
        "NoonmarkJobsBroken",
        "NoonmarkRunsParked",
    },
    "topic_truncated": {"NoonmarkRunsResent"},
    "promises_broken": {"NoonmarkVerifyFindings", "NoonmarkVerifyOverdue"},
    "app_outboxes_bad": {
        "NoonmarkAppOutboxParked",
        "NoonmarkAppOutboxStuck",
        "NoonmarkAppOutboxUnreachable",
    },
    "upgrade_unfinished": {"NoonmarkVersionsMixed", "NoonmarkZoneDataInactive"},
}
"""The alerts that fire on a recording, and nothing else does."""

NOT_RECORDED: dict[str, str] = {
    "NoonmarkDeadMansSwitch": "it reads no series: it always fires, also on the healthy recording",
    "NoonmarkWorkflowFactsWaiting": "workflows stop like all claims do, and no recording has workflows",
    "NoonmarkWorkflowsBroken": "only damaged rows break a workflow run, and no recording has workflows",
}
"""The alerts that fire on no recording, and why; all of them fire on invented series, in promtool/."""


@cache
def rule_groups() -> list[dict[str, Any]]:
    """The groups of rules, those that record first."""
    return [
        group
        for name in ("recording", "alerting")
        for group in yaml.safe_load((RULES / f"{name}.yaml").read_text(encoding="utf-8"))["groups"]
    ]


@cache
def read_series() -> frozenset[str]:
    """The names of all series that alerts read, themselves or by what is recorded for them."""
    rules = [rule for group in rule_groups() for rule in group["rules"]]
    recorded = {rule["record"]: rule for rule in rules if "record" in rule}
    found: set[str] = set()
    left = [one.name for rule in rules if "alert" in rule for one in selectors(rule["expr"])]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            if name in recorded:
                left += [
                    one.name
                    for rule in rules
                    if rule.get("record") == name
                    for one in selectors(rule["expr"])
                ]
    return frozenset(found - recorded.keys())
