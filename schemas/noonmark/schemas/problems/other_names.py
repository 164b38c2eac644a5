"""What other schedulers and queues call our fields, for the errors about unknown fields.

In snake case and lower case. A value is the path of our field in the same document, several separated by
`|`; `/timeout_seconds` is a field of the job around the document. An empty value: there is no such field, and
a name that is spelled alike would mislead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

_Names = Mapping[str, str]


def _table(**names: str) -> _Names:
    """Return {other name: our name} from {our name: other names}; two underscores are a dot."""
    return MappingProxyType(
        {other: ours.replace("__", ".") for ours, others in names.items() for other in others.split()}
    )


SCHEDULE: Final[_Names] = MappingProxyType(
    {
        **_table(
            cron="crontab cron_expression cronspec expression spec",
            rrule="rule recurrence",
            every="interval interval_seconds period repeat_every rate seconds minutes hours days weeks",
            any="schedules rules triggers",
            timezone="zone tz tzinfo time_zone tz_name zone_id",
            start="start_date start_time starts_at start_at valid_from not_before first_run_at",
            end="end_date end_time ends_at end_at valid_until until not_after last_run_at",
            max_runs="repeat repeat_count times count limit max_count max_executions max_occurrences",
            jitter_seconds="splay max_jitter spread",
            calendars="holidays holiday_calendar",
            calendars__exclude="exclude exclude_dates skip_dates",
            dst_gap="dst",
        ),
        **dict.fromkeys(("run_at", "run_date", "eta", "countdown", "delay"), "/run_at"),
        **dict.fromkeys(("misfire_grace_time", "misfire_grace_seconds", "grace"), "/misfire.grace_seconds"),
        **dict.fromkeys(("misfire", "coalesce", "catchup", "catch_up"), "/misfire"),
        "overlap": "/overlap",
        "name": "/name",
    }
)

MEMBER: Final[_Names] = MappingProxyType(
    {
        **{
            other: f"/schedule.{ours}"
            if ours.startswith(("timezone", "max_", "jitter_", "cal", "dst_"))
            else ours
            for other, ours in SCHEDULE.items()
            if ours != "any"
        },
        **dict.fromkeys(("run_at", "run_date", "eta"), "at"),
    }
)
"""Of one schedule of several: what applies to all of them is next to them."""

_OF_SCHEDULES: Final = (
    "cron rrule every any dialect seconds_field dtstart timezone dst_gap dst_overlap start end max_runs"
    " jitter_seconds calendars"
)

JOB: Final[_Names] = MappingProxyType(
    {
        **{other: f"schedule.{ours}" for other, ours in SCHEDULE.items() if not ours.startswith("/")},
        **{field: f"schedule.{field}" for field in _OF_SCHEDULES.split()},
        **_table(
            name="id title job_key job_name task_id",
            type="kind job_type executor",
            handler="task task_name function func callable job_class class target actor worker_class",
            payload="args kwargs arguments params parameters data input inputs message job_args op_kwargs"
            " op_args",
            payload__url="url uri endpoint",
            payload__method="method verb http_method",
            payload__headers="headers",
            payload__body="body",
            payload__argv="command cmd argv script",
            payload__env="env environment",
            payload__topic="topic",
            run_at="at eta countdown run_date run_on scheduled_at scheduled_for scheduled_time schedule_at"
            " execute_at start_after delay_until due_at available_at next_run_at next_run_time process_at"
            " send_at",
            max_retries="retries max_attempts attempts retry_count max_retry retry_limit num_retries"
            " max_tries tries retry_attempts backoff_limit retry_times",
            retry_delay_seconds="retry_interval retry_wait retry_after default_retry_delay retry_in backoff"
            " retry_backoff",
            retry="retry_policy retry_options retry_strategy",
            retry__max_delay_seconds="retry_backoff_max max_retry_delay",
            retry__only_on="autoretry_for retry_on",
            retry__never_on="dont_autoretry_for",
            timeout_seconds="time_limit soft_time_limit hard_time_limit max_runtime max_run_time"
            " execution_timeout job_timeout task_timeout visibility_timeout active_deadline_seconds ttr",
            deadline_seconds="max_age max_age_seconds",
            start_deadline_seconds="expires expiration expires_in ttl starting_deadline_seconds"
            " start_timeout",
            late_after_seconds="sla sla_seconds alert_after",
            pool="queue queue_name task_queue routing_key worker_group worker_pool tube channel partition",
            priority="prio importance weight lane",
            namespace="tenant project org",
            labels="tag tags metadata annotations",
            misfire="misfire_policy misfire_instruction coalesce catchup catch_up",
            misfire__grace_seconds="misfire_grace_time misfire_grace_seconds grace",
            overlap="max_instances concurrency concurrency_policy allow_concurrent allow_overlap"
            " overlap_policy max_active_runs singleton",
            delivery="acks acks_late ack guarantee semantics",
            limits="rate_limit throttle semaphore concurrency_limit concurrency_key",
            idempotency_key="unique_key dedup_key dedupe_key deduplication_id deduplication_key unique"
            " request_id queueing_lock",
            description="notes note comment desc doc docs summary",
            owner="responsible contact email author maintainer",
            tasks="steps",
            defaults="default_args task_defaults",
        ),
        "cron": "schedule|schedule.cron",
        "cron_expression": "schedule|schedule.cron",
        "crontab": "schedule|schedule.cron",
        "schedule_interval": "schedule",
        "schedule_expression": "schedule",
        "trigger": "schedule",
        "triggers": "schedule",
        "when": "run_at|schedule",
        **dict.fromkeys(("start_at", "start_time", "not_before"), "run_at|schedule.start"),
        "delay": "run_at|retry_delay_seconds",
        "rate": "schedule.every|limits",
        "limit": "limits",
        **dict.fromkeys(("enabled", "disabled", "active", "is_active", "paused", "pause", "suspend"), ""),
        **dict.fromkeys(("state", "status", "version", "order", "lock"), ""),
    }
)
"""Of the job document."""

_OF_WORK: Final = frozenset(
    {
        *("max_retries", "retry_delay_seconds", "retry", "timeout_seconds", "start_deadline_seconds"),
        *("pool", "priority", "delivery"),
    }
)
_OF_JOBS: Final = (
    *("schedule", "run_at", "misfire", "overlap", "deadline_seconds", "namespace", "labels", "owner"),
    *("idempotency_key", "pause_after_failures"),
)


def _only(known: Collection[str]) -> _Names:
    """Return what is called otherwise in `JOB`, of these fields."""
    return {other: ours for other, ours in JOB.items() if all(_top(one) in known for one in ours.split("|"))}


def _top(path: str) -> str:
    return path.partition(".")[0]


TASK: Final[_Names] = MappingProxyType(
    {
        **_only(_OF_WORK | {"type", "handler", "payload"}),
        **{field: f"/{field}" for field in _OF_JOBS},
        **_table(
            depends_on="needs dependencies depends dependson upstream upstreams requires after parents deps",
            rule="trigger_rule",
            when="condition conditions run_if only_if",
            may_fail="allow_failure continue_on_error ignore_errors ignore_failure soft_fail",
            handles="catches",
        ),
    }
)
"""Of the tasks of workflows."""

TASK_DEFAULTS: Final[_Names] = MappingProxyType(dict(_only(_OF_WORK)))

DEPENDENCY: Final[_Names] = MappingProxyType(
    {**_table(task="key name id task_id"), **dict.fromkeys(("when", "condition", "on"), "if")}
)

REFERENCE: Final[_Names] = _table(
    job_id="id uuid",
    name="job_name",
    reason="why message comment",
    payload="args kwargs data input",
    priority="lane",
)
"""Of requests about existing jobs and runs."""

FILTER: Final[_Names] = _table(
    since="from start after",
    until="to end before",
    job_name="job name",
    pool="queue",
    priority="lane",
    state="status",
)
"""Of filters of runs and dead letters."""

BACKFILL: Final[_Names] = MappingProxyType(
    {**dict.fromkeys(("since", "start", "start_date"), "from"), **_table(until="to end end_date")}
)

RETRY: Final[_Names] = _table(
    max_retries="retries max_attempts attempts count limit times tries max_tries retry_limit max"
    " maximum_attempts",
    delay_seconds="initial_delay initial_interval interval min_delay min_backoff base wait countdown",
    factor="backoff multiplier backoff_factor backoff_multiplier backoff_coefficient exponent rate",
    max_delay_seconds="max_interval max_backoff maximum_interval cap",
    max_age_seconds="timeout max_duration max_elapsed_time deadline deadline_seconds",
    only_on="on retry_on only include autoretry_for",
    never_on="except exclude ignore dont_retry_on not_on non_retryable_error_types",
    jitter="randomize random retry_jitter",
)

MISFIRE: Final[_Names] = _table(
    policy="mode strategy coalesce instruction",
    grace_seconds="grace_time misfire_grace_time threshold tolerance",
    look_back_seconds="max_age lookback catch_up_window catchup_window",
)

LIMIT: Final[_Names] = _table(name="limit id", key="group per partition_key")

_OF_THE_JOB: Final = {
    **dict.fromkeys(("timeout", "timeout_seconds"), "/timeout_seconds"),
    **dict.fromkeys(("retries", "max_retries", "max_attempts"), "/max_retries"),
}

HTTP: Final[_Names] = MappingProxyType(
    {
        **_table(
            url="uri endpoint target address",
            method="verb http_method",
            body="data json payload content",
            headers="header http_headers",
            expected_status="success_codes status_codes ok_status",
            tls="ssl",
        ),
        **_OF_THE_JOB,
    }
)
"""Of the payload of HTTP jobs."""

SCRIPT: Final[_Names] = MappingProxyType(
    {
        **_table(
            argv="command cmd args script program",
            env="environment envs env_vars",
            cwd="workdir working_dir working_directory dir",
            stdin="input",
            success_exit_codes="exit_codes success_codes",
        ),
        **_OF_THE_JOB,
    }
)
"""Of the payload of script jobs."""

GRPC: Final[_Names] = MappingProxyType(
    {
        **_table(
            target="host address url server endpoint",
            method="rpc service procedure",
            message="data body payload request",
            metadata="headers",
            tls="ssl",
        ),
        **_OF_THE_JOB,
    }
)
"""Of the payload of gRPC jobs."""

KAFKA: Final[_Names] = MappingProxyType(
    {**_table(value="message data body payload", topic="queue", key="partition_key"), **_OF_THE_JOB}
)
"""Of the payload of Kafka jobs."""

LIMIT_FIGURES: Final[_Names] = _table(
    max_running="concurrency max_concurrency max_concurrent max_in_flight max_parallel slots size",
    rate="rate_limit rps throttle",
)

NAMESPACE: Final[_Names] = _table(
    timezone=" ".join(other for other, ours in SCHEDULE.items() if ours == "timezone"),
    max_in_flight="max_running concurrency cap",
    max_jobs="quota job_quota",
)
