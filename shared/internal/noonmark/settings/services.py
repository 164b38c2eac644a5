"""The settings that the services have in common: fields, and the rules between them. See `settings`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

from noonmark.core.access.submission_signature import PublisherKey
from noonmark.core.access.topic_bindings import read_bindings
from noonmark.core.kinds.emitted_event import check_allow_list
from noonmark.core.zones.zones import ZoneData
from noonmark.settings.checks import (
    check_app_outboxes,
    check_database_url,
    check_issuer,
    checked_api_url,
    checked_brokers,
    checked_networks,
    checked_scripts,
)


class ServiceSettings(BaseSettings):
    """Fields of every service, but those of what observes them."""

    database_url: SecretStr = Field(
        SecretStr("postgresql://localhost/noonmark"), description="Postgres 15 or newer, as a libpq URL."
    )
    kafka_bootstrap: Annotated[str, AfterValidator(checked_brokers)] = Field(
        "localhost:9092", description="host:port list of the brokers."
    )
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="How the brokers are spoken to."
    )
    kafka_sasl_mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = Field(
        "", description="With a SASL protocol only."
    )
    kafka_sasl_username: str = Field("", description="User of the SASL mechanism.")
    kafka_sasl_password: SecretStr = Field(SecretStr(""), description="Its password.")
    kafka_ssl_ca_location: str = Field("", description="File or folder of trusted CA certificates.")
    kafka_ssl_certificate_location: str = Field("", description="Client certificate, for mutual TLS.")
    kafka_ssl_key_location: str = Field("", description="Its private key.")
    kafka_group_protocol: Literal["consumer", "classic"] = Field(
        "consumer", description="KIP-848 where the broker has it (Kafka 4), else classic."
    )
    kafka_partitions: int = Field(6, ge=1, le=1000, description="Partitions of a topic made by noonmark.")
    kafka_replication: int = Field(-1, ge=-1, le=10, description="-1: the broker's default.")
    topic_prefix: str = Field(
        "noonmark",
        pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$",
        description="First part of the name of every topic and consumer group.",
    )

    zone_data_dir: str = Field(
        "",
        description="Directory of compiled time zone data (TZif files, and `tzdata.zi` or `version`); none:"
        " those of the Python package tzdata. See [time-zones.md](time-zones.md).",
    )
    api_host: str = Field("127.0.0.1", description="Where the API listens.")
    api_port: int = Field(8080, ge=0, le=65535, description="0: a free port, logged at the start.")
    api_connections: int = Field(16, ge=2, le=500, description="Postgres connections of one API process.")
    api_rate_per_minute: int = Field(
        6000, ge=0, description="Requests a minute of one credential, unless its key says otherwise; 0: any."
    )
    api_event_streams: int = Field(
        200, ge=0, le=10_000, description="Streams of live events that one API process serves at a time."
    )
    api_trusted_proxies: Annotated[tuple[str, ...], NoDecode, AfterValidator(checked_networks)] = Field(
        (), description="Proxies (CIDR) whose `X-Forwarded-For` says who calls; none: whoever connects does."
    )
    api_bulk_bytes: int = Field(
        32 * 1024 * 1024, ge=1024, le=256 * 1024 * 1024, description="A larger bulk request is refused."
    )
    oidc_issuer: str = Field(
        "",
        description="Identity provider whose tokens the API and signed events may carry, as `iss` names it;"
        " none: API keys only. See [security.md](security.md).",
    )
    oidc_audience: str = Field("", description="What `aud` of its tokens must hold; needed with an issuer.")
    oidc_roles_claim: str = Field(
        "noonmark_roles",
        min_length=1,
        description="Claim that the roles stand in; dots lead into nested ones.",
    )
    metrics_host: str = Field("127.0.0.1", description="Where /livez, /readyz and /metrics listen.")
    metrics_port: int = Field(0, ge=0, le=65535, description="0: a free port, logged at the start.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Lines below this level are not written."
    )
    log_format: Literal["json", "console"] = Field(
        "json", description="One JSON object per line, or columns for people."
    )

    lease_seconds: float = Field(15.0, ge=2, le=3600, description="A worker silent for longer is lost.")
    beat_seconds: float = Field(
        2.0, ge=0.2, le=60, description="Time between two heartbeats of a worker; well below its lease."
    )
    owner_timeout_seconds: float = Field(
        3.0, ge=1, le=60, description="A trigger or dispatcher silent for longer loses its shards."
    )

    claim_batch: int = Field(1000, ge=1, le=10_000, description="Runs claimed in one transaction.")
    claim_pause_ms: int = Field(
        15,
        ge=0,
        le=1000,
        description="Shortest time between two claim rounds, three times that while rounds are small:"
        " lower is prompter and costs more CPU.",
    )
    relay_batch: int = Field(
        1000, ge=1, le=10_000, description="Outbox rows that a dispatcher reads at once, per lane."
    )
    outbox_age_limit_seconds: float = Field(
        10.0, ge=1, description="An older unsent row stops claims of its slice and lane."
    )
    outbox_depth_limit: int = Field(
        20_000, ge=100, description="More unsent rows stop claims of their slice and lane."
    )
    app_outboxes: SecretStr = Field(
        SecretStr(""),
        description="Outboxes of applications that dispatchers relay: `name=postgresql://…=namespace`, with"
        " spaces between several. See [outbox.md](outbox.md).",
    )
    catch_up_cap: int = Field(100, ge=1, le=10_000, description="Runs made per job and claim under fire_all.")
    ledger_cap: int = Field(1000, ge=1, le=100_000, description="A longer gap gets one summary row.")
    backfill_runs_per_second: int = Field(200, ge=5, le=5000, description="Runs queued by one backfill.")
    backfill_unfinished_limit: int = Field(
        1000,
        ge=1,
        le=10_000,
        description="Unfinished runs of one backfill at which it waits for some to end.",
    )

    resend_check_seconds: float = Field(
        300.0, ge=1, le=3600, description="How often queued runs are sought whose message provably vanished."
    )

    pool: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,47}$")] = Field(
        "default", description="Whose runs a worker takes."
    )
    handlers: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Modules that register Python handlers."
    )
    worker_slots: int = Field(256, ge=1, le=20_000, description="Runs executed at once by one worker.")
    worker_high_reserve: float = Field(0.1, ge=0, le=0.9, description="Share of slots that only high takes.")
    worker_low_share: float = Field(
        0.05, gt=0, le=0.25, description="Share of starts kept for each lower lane."
    )
    drain_seconds: float = Field(
        30.0, ge=0, le=3600, description="Time to finish running work after SIGTERM."
    )
    worker_processes: int = Field(
        0,
        ge=0,
        le=1000,
        description="Handlers that one worker runs in processes at once; 0: as many as the machine has CPUs.",
    )
    kill_grace_seconds: float = Field(
        5.0,
        ge=0,
        le=30,
        description="Time between SIGTERM and SIGKILL for a handler's process or a script that must end.",
    )
    scripts: Annotated[tuple[str, ...], NoDecode, AfterValidator(checked_scripts)] = Field(
        (),
        description="Executables that script jobs may run, or folders of them, absolute; `*` for all. None by"
        " default: scripts are off.",
    )
    secrets_dir: str = Field(
        "",
        description="Directory of the secrets of jobs, `<namespace>/<name>` each; none: environment variables"
        " only. See [secrets.md](secrets.md).",
    )
    http_allow_networks: Annotated[tuple[str, ...], NoDecode, AfterValidator(checked_networks)] = Field(
        (), description="Private networks (CIDR) that HTTP and gRPC jobs may call; none by default."
    )
    emit_topics: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Topics that jobs may write events to: names, or beginnings of names with `*` at the end;"
        " none by default.",
    )

    intake_batch: int = Field(1000, ge=1, le=10_000, description="Submissions written in one transaction.")
    max_submission_bytes: int = Field(
        256 * 1024, ge=1024, le=8 * 1024 * 1024, description="A larger event is refused unread."
    )
    bound_topics: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Topics whose events need no signature, `topic=namespace` each: they act as an editor of"
        " that namespace, `topic=*` of every namespace. Others than the two of submissions are read too. None"
        " by default. See [events.md](events.md#who-may-publish).",
    )
    rejection_bytes: int = Field(
        16 * 1024, ge=0, le=1024 * 1024, description="Bytes of a refused event that are kept."
    )
    retention_days: int = Field(30, ge=1, le=3650, description="Days of runs that are kept.")
    audit_days: int = Field(400, ge=1, le=3650, description="Days of the audit log that are kept.")
    partitions_ahead_days: int = Field(
        3, ge=1, le=60, description="Days for which ledger partitions are made ahead."
    )
    inbox_days: int = Field(
        14, ge=1, le=365, description="Days an event id is remembered; above the topic's retention."
    )

    api_url: str = Field(
        "",
        description="API that commands call, `https://host[:port]`; none: they run over the database of these"
        " settings. See [contexts.md](contexts.md).",
    )
    api_key: SecretStr = Field(SecretStr(""), description="Key for it.")
    publisher_key: SecretStr = Field(
        SecretStr(""),
        description="Key that commands sign with what they publish to Kafka (`nmp_…`); none: it goes"
        " unsigned.",
    )
    context: str = Field(
        "", description="Context of the command line that is meant, as `--context` names it."
    )
    config: str = Field(
        "",
        description="File of the contexts; none: `noonmark/config.toml` in `XDG_CONFIG_HOME` (`~/.config`).",
    )

    @field_validator("database_url")
    @classmethod
    def _url_can_be_read(cls, given: SecretStr) -> SecretStr:
        check_database_url(given.get_secret_value())
        return given

    @field_validator("app_outboxes")
    @classmethod
    def _outboxes_can_be_read(cls, given: SecretStr) -> SecretStr:
        check_app_outboxes(given.get_secret_value())
        return given

    @field_validator("api_url")
    @classmethod
    def _api_can_be_called(cls, given: str) -> str:
        return checked_api_url(given) if given else given

    @field_validator("zone_data_dir")
    @classmethod
    def _zone_data_can_be_read(cls, given: str) -> str:
        if given:
            ZoneData.from_directory(Path(given))
        return given

    @field_validator("bound_topics")
    @classmethod
    def _bindings_can_be_read(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        read_bindings(given)
        return given

    @field_validator("publisher_key")
    @classmethod
    def _publisher_key_can_sign(cls, given: SecretStr) -> SecretStr:
        PublisherKey.parse(given.get_secret_value()) if given else None
        return given

    @field_validator("emit_topics")
    @classmethod
    def _topics_can_be_read(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        check_allow_list(given)
        return given

    @model_validator(mode="after")
    def _issuer_can_be_believed(self) -> Self:
        check_issuer(self.oidc_issuer, self.oidc_audience)
        return self

    @model_validator(mode="after")
    def _beats_fit_the_lease(self) -> Self:
        if self.beat_seconds * 3 > self.lease_seconds:
            raise ValueError(
                f"NOONMARK_BEAT_SECONDS={self.beat_seconds:g} is too long for NOONMARK_LEASE_SECONDS="
                f"{self.lease_seconds:g}: a lease must outlast three beats"
            )
        return self
