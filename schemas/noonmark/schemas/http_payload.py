"""The payload of an HTTP job: one request, and which answers count as success."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from noonmark.schemas.problems import Document, Expected, any_case_schema

MAX_URL: Final = 2048
MAX_HEADERS: Final = 50
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_OWNED_HEADERS: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that frame or route the request: a job that set them could smuggle a second one."""

_SUCCESS: Final[tuple[int | str, ...]] = ("200-299",)
_URL_TEXT: Final = re.compile(r"[!#-;=?-\[\]_a-z~]+")
_RANGE: Final = re.compile(r"([1-5][0-9]{2})-([1-5][0-9]{2})")


def wrong(message: str, expected: str = "") -> PydanticCustomError:
    """Make the error of a validator whose message is final; `expected` replaces the field's own."""
    context: dict[str, Any] = {"expected_text": expected} if expected else {}
    return PydanticCustomError("not_right", message.replace("{", "(").replace("}", ")"), context)


def _check_url(url: str) -> str:
    if not _URL_TEXT.fullmatch(url):
        raise wrong("holds a character that a URL may not have; percent-encode it")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise wrong(f"is not a URL: {error}") from None
    if parts.scheme not in {"http", "https"}:
        raise wrong("does not start with http:// or https://")
    if not host:
        raise wrong("names no host")
    if "@" in parts.netloc:
        raise wrong("holds user information; send credentials in a header")
    return url


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    seen: set[str] = set()
    for name in headers:
        lower = name.lower()
        if lower in seen:
            raise wrong(f"header {name!r} is given twice")
        if lower in _OWNED_HEADERS:
            raise wrong(f"header {name!r} is set by the worker", "a header that does not frame the request")
        seen.add(lower)
    return headers


def _status(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
        return value
    if isinstance(value, str) and (found := _RANGE.fullmatch(value)) and found[1] <= found[2]:
        return value
    raise wrong("is neither a status code nor a range of them", "an integer from 100 to 599 or '200-299'")


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}$")]
HeaderValue = Annotated[str, Field(max_length=8192, pattern=r"^[^\x00-\x08\x0a-\x1f\x7f]*$")]
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


class HttpPayload(Document):
    """The request that an HTTP job sends."""

    secret: ClassVar[bool] = True

    url: Annotated[
        str,
        Field(
            max_length=MAX_URL,
            json_schema_extra={"pattern": "^https?://", "format": "uri"},
            description="Target of the request: http or https, without user information.",
            examples=["https://internal.example.com/billing/send"],
        ),
        AfterValidator(_check_url),
        Expected(f"an http or https URL of at most {MAX_URL} ASCII characters, without user information"),
    ]
    method: Annotated[
        Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] | None,
        BeforeValidator(_upper),
        WithJsonSchema({"anyOf": [any_case_schema(*METHODS), {"type": "null"}]}),
        Field(description="Request method, in any case. Default: POST with a body, GET without."),
        Expected("one of " + ", ".join(METHODS)),
    ] = None
    headers: Annotated[
        dict[HeaderName, HeaderValue],
        Field(max_length=MAX_HEADERS, description="Request headers; values without line breaks."),
        AfterValidator(_check_headers),
        Expected(f"an object of at most {MAX_HEADERS} headers; names are tokens, values hold no line break"),
    ] = Field(default_factory=dict)
    body: Annotated[
        Any,
        Field(description="A string is sent as it stands, any other value as JSON. Null means no body."),
    ] = None
    expected_status: Annotated[
        list[Status],
        Field(
            min_length=1,
            max_length=50,
            description="Answers that count as success: codes, or ranges such as '200-299'.",
            examples=[[200, 202, "300-303"]],
        ),
        Expected("a list of status codes from 100 to 599 or ranges such as '200-299'"),
    ] = Field(default_factory=lambda: list(_SUCCESS))

    def request(self) -> Mapping[str, object]:
        """Return the payload with every default spelt out, as workers read it."""
        method = self.method or ("GET" if self.body is None else "POST")
        spelt: dict[str, object] = {"url": self.url, "method": method, "headers": self.headers}
        if self.body is not None:
            spelt["body"] = self.body
        spelt["expected_status"] = self.expected_status
        return spelt
