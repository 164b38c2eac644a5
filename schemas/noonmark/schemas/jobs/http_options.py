"""Nested documents of an HTTP job's payload: conditions, TLS, callbacks."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from noonmark.core.kinds.http_request import BadRequestError
from noonmark.core.kinds.http_response import parse_conditions, parse_pointer
from noonmark.core.kinds.tls import MAX_PEM_CHARS, check_pem, check_server_name
from noonmark.schemas.problems.pydantic_errors import Document, Expected, wrong

MAX_CALLBACK_SECONDS: Final = 30 * 86_400
"""Longest callback timeout. Use two jobs for work that takes longer."""


def _pointer(text: str) -> str:
    try:
        parse_pointer(text)
    except BadRequestError as error:
        raise wrong(f"is not a JSON pointer: {error.message}") from None
    return text


def _pem(text: str) -> str:
    try:
        check_pem(text)
    except BadRequestError as error:
        raise wrong(error.message) from None
    return text


def _name(text: str) -> str:
    try:
        check_server_name(text)
    except BadRequestError as error:
        raise wrong(error.message) from None
    return text


Pem = Annotated[
    str | None,
    Field(max_length=MAX_PEM_CHARS),
    AfterValidator(lambda text: None if text is None else _pem(text)),
    Expected("secret://NAME, or PEM text that begins with -----BEGIN"),
]


class ConditionDocument(Document):
    """One condition on the JSON of a response."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["equals"]}, {"required": ["in"]}, {"required": ["exists"]}],
        }
    )
    secret: ClassVar[bool] = True

    pointer: Annotated[
        str,
        Field(
            description="JSON pointer into the response (RFC 6901); empty: the whole response.",
            examples=["/status"],
        ),
        AfterValidator(_pointer),
        Expected("a JSON pointer such as /status"),
    ] = ""
    equals: Annotated[Any, Field(description="The value must equal this.")] = None
    is_in: Annotated[
        list[Any] | None,
        Field(alias="in", min_length=1, max_length=100, description="The value must equal one of these."),
        Expected("a list of 1 to 100 values"),
    ] = None
    exists: Annotated[
        bool | None,
        Field(description="Whether the value must exist."),
        Expected("true or false"),
    ] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            parse_conditions(self.written())
        except BadRequestError as error:
            raise wrong(error.message) from None
        return self

    def written(self) -> dict[str, Any]:
        """Return the condition as workers read it, without omitted fields."""
        names = {"pointer": "pointer", "equals": "equals", "is_in": "in", "exists": "exists"}
        given = self.model_fields_set | {"pointer"}
        return {word: getattr(self, field) for field, word in names.items() if field in given}


class TlsDocument(Document):
    """TLS options for an https URL: trusted authorities and client certificate."""

    secret: ClassVar[bool] = True

    ca: Annotated[Pem, Field(description="Certificate authorities to trust instead of the system's.")] = None
    client_certificate: Annotated[Pem, Field(description="Client certificate with its chain.")] = None
    client_key: Annotated[
        Pem,
        Field(
            description="Private key of the client certificate. Use a reference to a secret: job "
            "documents are readable."
        ),
    ] = None
    server_name: Annotated[
        str | None,
        Field(description="Name that the server's certificate must have, if it differs from the URL's host."),
        AfterValidator(lambda text: None if text is None else _name(text)),
        Expected("a host name"),
    ] = None
    min_version: Annotated[
        Literal["1.2", "1.3"] | None,
        Field(description="Lowest TLS version. Default: 1.2."),
        Expected("1.2 or 1.3, as text"),
    ] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.client_certificate is None) != (self.client_key is None):
            raise wrong("has only one of client_certificate and client_key", "both, or neither")
        return self


class CallbackDocument(Document):
    """How long a target that responded 202 can take to report completion."""

    timeout_seconds: Annotated[
        float,
        Field(ge=1, le=MAX_CALLBACK_SECONDS, description="Seconds from the response 202.", examples=[3600]),
        Expected(f"a number of seconds from 1 to {MAX_CALLBACK_SECONDS}"),
    ]
