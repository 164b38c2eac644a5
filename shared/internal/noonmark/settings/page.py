"""Generates docs/settings.md from the settings."""

from __future__ import annotations

from typing import Any, Final

from pydantic import SecretStr

from noonmark.settings import PREFIX, Settings
from noonmark.settings.values import values_of

_SECTIONS: Final = {
    "database_url": "Postgres",
    "kafka_bootstrap": "Kafka",
    "zone_data_dir": "Every service",
    "lease_seconds": "Leases and ownership",
    "claim_batch": "Trigger and dispatcher",
    "pool": "Worker",
    "intake_batch": "Intake",
    "retention_days": "Housekeeping",
    "api_url": "Command line and clients",
    "late_after_seconds": "Observer and alerts",
    "watchdog_url": "Watchdog",
    "otlp_endpoint": "Traces",
}
"""Headings of docs/settings.md, by the first setting below each."""

_HEAD: Final = """\
# Settings

Every process reads its settings once, from the environment. The defaults suit a first installation.
`noonmark config check` shows the values of this shell, with secrets masked, and all problems. A variable that
starts with `NOONMARK_` but is not a setting is an error. A setting in seconds is a number, or a
duration such as `5m`, `1h30m` or `PT5M`.

For advice on values see [operations.md](operations.md). `python -m noonmark.settings` generates this page; do
not edit it by hand.
"""
_TABLE_HEAD: Final = "| variable | default | values | meaning |\n|---|---|---|---|\n"


def page() -> str:
    """Return the text of docs/settings.md."""
    text = _HEAD
    for name, info in Settings.model_fields.items():
        if name in _SECTIONS:
            text += f"\n## {_SECTIONS[name]}\n\n{_TABLE_HEAD}"
        cells = (f"`{PREFIX}{name.upper()}`", _default(info.default), values_of(info), info.description)
        text += f"| {' | '.join(map(str, cells))} |\n"
    return text


def _default(value: Any) -> str:
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, tuple):
        value = ",".join(f"{part:g}" if isinstance(part, float) else part for part in value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{value}`" if value != "" else "none"
