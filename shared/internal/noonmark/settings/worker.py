"""Settings of the worker: which runs it executes, and what they are allowed to do."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, field_validator
from pydantic_settings import BaseSettings, NoDecode

from noonmark.core.kinds.emitted_event import check_allow_list
from noonmark.settings.checks import checked_networks, checked_scripts


class WorkerSettings(BaseSettings):
    """Pool, slots, handlers and permissions of one worker."""

    pool: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,47}$")] = Field(
        "default", description="Pool whose runs the worker executes."
    )
    handlers: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Modules that register Python handlers."
    )
    worker_slots: int = Field(256, ge=1, le=20_000, description="Most runs that one worker executes at once.")
    worker_high_reserve: float = Field(
        0.1, ge=0, le=0.9, description="Share of slots reserved for the lane high."
    )
    worker_low_share: float = Field(
        0.05, gt=0, le=0.25, description="Share of starts reserved for each lower lane."
    )
    drain_seconds: float = Field(
        30.0, ge=0, le=3600, description="Time that running work has to finish after SIGTERM."
    )
    worker_processes: int = Field(
        0,
        ge=0,
        le=1000,
        description="Most handlers that one worker runs in processes at once. 0: the number of CPUs of the"
        " machine.",
    )
    worker_suspect_processes: int = Field(
        0,
        ge=0,
        le=1000,
        description="Most suspect runs (lost twice) that one worker runs in processes at once, in addition to"
        " `worker_processes`. 0: one per slot, up to 64 and to one per 128 MB of memory, but at least 8.",
    )
    kill_grace_seconds: float = Field(
        5.0,
        ge=0,
        le=30,
        description="Time between SIGTERM and SIGKILL for a handler's process or a script that must stop.",
    )
    scripts: Annotated[tuple[str, ...], NoDecode, AfterValidator(checked_scripts)] = Field(
        (),
        description="Absolute paths of executables that script jobs may run, or of folders with them; `*`"
        " allows all. None by default: the worker runs no scripts.",
    )
    secrets_dir: str = Field(
        "",
        description="Directory with the secrets of jobs, one file `<namespace>/<name>` each. Empty:"
        " environment variables only. See [secrets.md](secrets.md).",
    )
    http_allow_networks: Annotated[tuple[str, ...], NoDecode, AfterValidator(checked_networks)] = Field(
        (), description="Private networks (CIDR) that HTTP and gRPC jobs may call; none by default."
    )
    emit_topics: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Topics that jobs may write events to: names, or prefixes with `*` at the end; none by"
        " default.",
    )

    @field_validator("emit_topics")
    @classmethod
    def _check_emit_topics(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        check_allow_list(given)
        return given
