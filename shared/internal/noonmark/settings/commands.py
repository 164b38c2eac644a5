"""Settings of the command line and of clients."""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings

from noonmark.core.access.submission_signature import PublisherKey
from noonmark.settings.checks import checked_api_url


class CommandSettings(BaseSettings):
    """Which installation a command works on, and with which credentials."""

    api_url: str = Field(
        "",
        description="API that commands call, `https://host[:port]`. Empty: commands use the database of these"
        " settings. See [contexts.md](contexts.md).",
    )
    api_key: SecretStr = Field(SecretStr(""), description="API key for that API.")
    publisher_key: SecretStr = Field(
        SecretStr(""),
        description="Key that signs what commands publish to Kafka (`nmp_…`). Empty: they publish unsigned"
        " events.",
    )
    context: str = Field(
        "", description="Context that commands use, from the file of contexts; same as `--context`."
    )
    config: str = Field(
        "",
        description="File of contexts. Empty: `noonmark/config.toml` in `XDG_CONFIG_HOME` (`~/.config`).",
    )

    @field_validator("api_url")
    @classmethod
    def _check_api_url(cls, given: str) -> str:
        return checked_api_url(given) if given else given

    @field_validator("publisher_key")
    @classmethod
    def _check_publisher_key(cls, given: SecretStr) -> SecretStr:
        PublisherKey.parse(given.get_secret_value()) if given else None
        return given
