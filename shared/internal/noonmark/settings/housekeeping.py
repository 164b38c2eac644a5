"""Settings of housekeeping: how long data is kept."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings


class HousekeepingSettings(BaseSettings):
    """Retention of runs, audit log and event ids, and partitions created ahead."""

    retention_days: int = Field(30, ge=1, le=3650, description="Days that runs are kept.")
    audit_days: int = Field(400, ge=1, le=3650, description="Days that the audit log is kept.")
    partitions_ahead_days: int = Field(
        3, ge=1, le=60, description="Days ahead for which ledger partitions are created."
    )
    inbox_days: int = Field(
        14,
        ge=1,
        le=365,
        description="Days that event ids are kept to detect duplicates; must exceed the topic's retention.",
    )
