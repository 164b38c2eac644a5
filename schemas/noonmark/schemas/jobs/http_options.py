"""Parts of an HTTP job's payload that are documents of their own: conditions, TLS, callbacks."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from noonmark.core.kinds.http_request import BadRequestError
from noonmark.core.kinds.http_response import parse_conditions, parse_pointer
from noonmark.core.kinds.tls import MAX_PEM_CHARS, check_pem, check_server_name
from noonmark.schemas.problems.pydantic_errors import Document, Expected, wrong

MAX_CALLBACK_SECONDS: Final = 30 * 86_400
"""A run that waits for longer is better two jobs."""


def _pointer(text: str) -> str:
    try:
        parse_pointer(text)
    except BadRequestError as error:
        raise wrong(f"is no JSON pointer: {error.message}") from None
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
    """One demand on the JSON of an answer."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["equals"]}, {"required": ["in"]}, {"required": ["exists"]}],
        }
    )
    secret: ClassVar[bool] = True

    pointer: Annotated[
        str,
        Field(
            description="JSON pointer into the answer (RFC 6901); empty means the whole answer.",
            examples=["/status"],
        ),
        AfterValidator(_pointer),
        Expected("a JSON pointer such as /status"),
    ] = ""
    equals: Annotated[Any, Field(description="The value must be this.")] = None
    is_in: Annotated[
        list[Any] | None,
        Field(alias="in", min_length=1, max_length=100, description="The value must be one of these."),
        Expected("a list of 1 to 100 values"),
    ] = None
    exists: Annotated[
        bool | None,
        Field(description="Whether there must be a value at all."),
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
        """Return the condition as workers read it, without what was left out."""
        names = {"pointer": "pointer", "equals": "equals", "is_in": "in", "exists": "exists"}
        given = self.model_fields_set | {"pointer"}
        return {word: getattr(self, field) for field, word in names.items() if field in given}


class TlsDocument(Document):
    """How the target of an https URL is trusted, and how we show who we are."""

    secret: ClassVar[bool] = True

    ca: Annotated[Pem, Field(description="Authorities that are trusted instead of the system's.")] = None
    client_certificate: Annotated[Pem, Field(description="Our certificate, with its chain.")] = None
    client_key: Annotated[
        Pem, Field(description="Its private key. Better a reference: the job's document can be read.")
    ] = None
    server_name: Annotated[
        str | None,
        Field(description="Name that the target's certificate must have, where it is not the URL's host."),
        AfterValidator(lambda text: None if text is None else _name(text)),
        Expected("a host name"),
    ] = None
    min_version: Annotated[
        Literal["1.2", "1.3"] | None,
        Field(description="Oldest version of TLS that is spoken. Default: 1.2."),
        Expected("1.2 or 1.3, as text"),
    ] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.client_certificate is None) != (self.client_key is None):
            raise wrong("has one of client_certificate and client_key", "both of them, or neither")
        return self


class CallbackDocument(Document):
    """For how long the target may take to report the end of what it answered 202 to."""

    timeout_seconds: Annotated[
        float,
        Field(ge=1, le=MAX_CALLBACK_SECONDS, description="Counted from the answer 202.", examples=[3600]),
        Expected(f"a number of seconds from 1 to {MAX_CALLBACK_SECONDS}"),
    ]
