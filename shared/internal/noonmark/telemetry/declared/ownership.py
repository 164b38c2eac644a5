"""Metrics of leadership, and of what each process of a role owns."""

from __future__ import annotations

from noonmark.telemetry.declared.declaring import Part

_declare = Part("trigger", "dispatcher", "observer")

LEADS = _declare.gauge(
    "leads",
    ("role",),
    "1 if this process is the leader of its role, else 0.",
    "The sum over a role's processes must be 1. If it is 0 for over 10 s, check their logs.",
)
LEADER_CHANGES = _declare.counter(
    "leader_changes_total",
    {"role": ()},
    "Times that this process became the leader of its role or stopped being it.",
    "See `owner_changes_total`.",
)
OWNED_SHARDS = _declare.gauge(
    "owned_shards",
    ("role",),
    "Shards (trigger) or outbox slices (dispatcher) that this process owns.",
    "The sum over all processes must equal the number fixed at install. Less for over 10 s: an owner hangs.",
)
SHARDS = _declare.gauge(
    "shards",
    ("role",),
    "Shards (trigger) or outbox slices (dispatcher) fixed at install.",
    "Compare with the sum of `owned_shards`.",
)
OWNER_CHANGES = _declare.counter(
    "owner_changes_total",
    {"role": ()},
    "Shards or slices gained or lost by this process.",
    "Steady growth without deployments: heartbeats are late. Check for CPU starvation.",
)
