"""The payload of an HTTP job: one request, and which responses count as success."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema, model_validator
from pydantic.config import JsonDict

from noonmark.core.kinds.http_request import (
    HEADER_NAME,
    HEADER_VALUE,
    MAX_HEADER_BYTES,
    MAX_HEADER_VALUE,
    MAX_HEADERS,
    MAX_URL_LENGTH,
    METHODS,
    BadRequestError,
    Method,
    check_headers,
    parse_url,
)
from noonmark.core.kinds.http_response import MAX_CONDITIONS
from noonmark.schemas.jobs.http_options import CallbackDocument, ConditionDocument, TlsDocument
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import Expected, PayloadDocument, any_case_schema, wrong

__all__ = ["HttpPayload", "Status", "wrong"]

_SUCCESS: Final[tuple[int | str, ...]] = ("200-299",)
_URL_TEXT: Final = re.compile(r"[!#-;=?-\[\]_a-z~]+")
_RANGE: Final = re.compile(r"([1-5][0-9]{2})-([1-5][0-9]{2})")


def _check_url(url: str) -> str:
    if "secret://" in url:
        raise wrong(
            "contains a reference to a secret that other users could read", "the secret in headers or body"
        )
    # Stricter than HTTP clients: with unencoded characters, the user could not know which URL is called.
    if not _URL_TEXT.fullmatch(url):
        raise wrong(
            "contains a character that URLs cannot have; percent-encode it, or write the host in its xn-- "
            "form"
        )
    try:
        parse_url(url)
    except BadRequestError as error:
        raise wrong(error.message, error.expected) from None
    return url


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    try:
        return check_headers(headers)
    except BadRequestError as error:
        raise wrong(error.message, error.expected) from None


def _one_or_many(schema: JsonDict) -> None:
    many = {name: schema.pop(name) for name in ("type", "items", "maxItems")}
    schema["anyOf"] = [many["items"], many]


def _status(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
        return value
    if isinstance(value, str) and (found := _RANGE.fullmatch(value)) and found[1] <= found[2]:
        return value
    raise wrong("is neither a status code nor a range of them", "an integer from 100 to 599 or '200-299'")


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


HeaderName = Annotated[str, Field(pattern=HEADER_NAME)]
HeaderValue = Annotated[str, Field(max_length=MAX_HEADER_VALUE, pattern=HEADER_VALUE)]
Status = Annotated[
    int | str,
    PlainValidator(_status),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 100, "maximum": 599},
                {"type": "string", "pattern": "^[1-5][0-9]{2}-[1-5][0-9]{2}$"},
            ]
        }
    ),
]


class HttpPayload(PayloadDocument):
    """The request that an HTTP job sends."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.HTTP

    purpose: ClassVar[str] = "an object with the url to call"

    url: Annotated[
        str,
        Field(
            max_length=MAX_URL_LENGTH,
            json_schema_extra={"pattern": "^https?://", "format": "uri"},
            description="Target of the request: http or https, without user information.",
            examples=["https://internal.example.com/billing/send"],
        ),
        AfterValidator(_check_url),
        Expected(
            f"an http or https URL of at most {MAX_URL_LENGTH} ASCII characters, without user information"
        ),
    ]
    method: Annotated[
        Method | None,
        BeforeValidator(_upper),
        WithJsonSchema({"anyOf": [any_case_schema(*METHODS), {"type": "null"}]}),
        Field(description="Request method, in any case. Default: POST with a body, GET without."),
        Expected("one of " + ", ".join(METHODS)),
    ] = None
    headers: Annotated[
        dict[HeaderName, HeaderValue],
        Field(
            max_length=MAX_HEADERS,
            description=f"Request headers: printable ASCII, at most {MAX_HEADER_BYTES} bytes together; not "
            f"those that the worker sets.",
        ),
        AfterValidator(_check_headers),
        Expected(f"an object of at most {MAX_HEADERS} headers; names are tokens, values are printable ASCII"),
    ] = Field(default_factory=dict)
    body: Annotated[
        Any,
        Field(
            description="Request body: a string is sent unchanged, any other value as JSON. null: no body."
        ),
    ] = None
    expected_status: Annotated[
        list[Status],
        Field(
            min_length=1,
            max_length=50,
            description="Statuses that count as success: codes, or ranges such as '200-299'.",
            examples=[[200, 202, "300-303"]],
        ),
        Expected("a list of status codes from 100 to 599 or ranges such as '200-299'"),
    ] = Field(default_factory=lambda: list(_SUCCESS))
    success: Annotated[
        list[ConditionDocument],
        Field(
            max_length=MAX_CONDITIONS,
            json_schema_extra=_one_or_many,
            description="Conditions on the JSON of the response, in addition to its status: one, or a list "
            "that must all hold.",
            examples=[{"pointer": "/status", "equals": "ok"}],
        ),
        BeforeValidator(lambda value: [value] if isinstance(value, dict) else value),
        Expected("a condition with a pointer and equals, in or exists, or a list of at most 20 of them"),
    ] = Field(default_factory=list)
    keep_body: Annotated[
        bool,
        Field(description="Whether the beginning of the response body is stored in the run's result."),
        Expected("true or false"),
    ] = False
    tls: Annotated[
        TlsDocument | None,
        Field(
            description="Trusted authorities and client certificate. The server's certificate is always "
            "verified."
        ),
        Expected("an object with ca, client_certificate and client_key, server_name, min_version"),
    ] = None
    callback: Annotated[
        CallbackDocument | None,
        Field(
            description="Allows the target to respond 202 and report completion later, with the run's id "
            "and the token of the request."
        ),
        Expected("an object with timeout_seconds"),
    ] = None

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if self.tls is not None and not self.url.lower().startswith("https:"):
            raise wrong("has tls, but its url is not https", "an https url, or no tls")
        return self

    def request(self) -> Mapping[str, object]:
        """Return the payload with all defaults filled in, as workers read it."""
        method = self.method or ("GET" if self.body is None else "POST")
        written: dict[str, object] = {"url": self.url, "method": method, "headers": self.headers}
        if self.body is not None:
            written["body"] = self.body
        written["expected_status"] = self.expected_status
        if self.success:
            written["success"] = [one.written() for one in self.success]
        if self.keep_body:
            written["keep_body"] = True
        if self.tls is not None:
            written["tls"] = self.tls.model_dump(exclude_none=True)
        if self.callback is not None:
            written["callback"] = self.callback.model_dump()
        return written
