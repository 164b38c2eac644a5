"""Settings of the REST API, and of the identity provider whose tokens it accepts."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_settings import BaseSettings, NoDecode

from noonmark.settings.checks import check_issuer, checked_networks


class ApiSettings(BaseSettings):
    """What `noonmark api` listens on, how much it serves, and which tokens it accepts."""

    api_host: str = Field("127.0.0.1", description="Address that the API listens on.")
    api_port: int = Field(
        8080, ge=0, le=65535, description="Port of the API. 0: a free port, logged at startup."
    )
    api_connections: int = Field(
        16,
        ge=2,
        le=500,
        description="Most Postgres connections of one API process. One credential uses at most three"
        " quarters of them, and at most 30.",
    )
    api_rate_per_minute: int = Field(
        6000,
        ge=0,
        description="Most requests per minute of one credential, unless its key sets another limit."
        " 0: unlimited.",
    )
    api_event_streams: int = Field(
        200,
        ge=0,
        le=10_000,
        description="Most streams of live events, and of logs, that one API process serves at once.",
    )
    api_trusted_proxies: Annotated[tuple[str, ...], NoDecode, AfterValidator(checked_networks)] = Field(
        (),
        description="Proxies (CIDR) whose `X-Forwarded-For` header names the client. None: the client is the"
        " peer of the connection.",
    )
    api_bulk_bytes: int = Field(
        32 * 1024 * 1024,
        ge=1024,
        le=256 * 1024 * 1024,
        description="Largest bulk request in bytes; larger ones are refused.",
    )
    oidc_issuer: str = Field(
        "",
        description="Identity provider whose tokens the API and signed events may carry: the `iss` of its"
        " tokens. Empty: API keys only. See [security.md](security.md).",
    )
    oidc_audience: str = Field(
        "", description="Value that `aud` of these tokens must contain; required with an issuer."
    )
    oidc_roles_claim: str = Field(
        "noonmark_roles",
        min_length=1,
        description="Claim that holds the roles; dots separate the names of nested claims.",
    )

    @model_validator(mode="after")
    def _check_issuer(self) -> Self:
        check_issuer(self.oidc_issuer, self.oidc_audience)
        return self
