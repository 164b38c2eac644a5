"""The payload of a gRPC job: one unary call, described by the service's descriptors.

Protobuf is imported with the first gRPC job, so that other code that reads jobs does not wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo

from noonmark.core.kinds.grpc_call import (
    MAX_METADATA,
    MAX_METADATA_BYTES,
    MAX_SET_BYTES,
    MAX_TARGET,
    METADATA_NAME,
    METADATA_VALUE,
    METHOD_NAME,
    BadCallError,
    check_metadata,
    parse_target,
)
from noonmark.schemas.jobs.http_options import TlsDocument
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import Expected, PayloadDocument, wrong

if TYPE_CHECKING:
    from noonmark.core.kinds.grpc_methods import GrpcMethod

_MAX_ENCODED = (MAX_SET_BYTES + 2) // 3 * 4


def _check_target(target: str) -> str:
    try:
        parse_target(target)
    except BadCallError as error:
        raise wrong(error.message, error.expected) from None
    return target


def _check_set(encoded: str) -> str:
    from noonmark.core.kinds.grpc_methods import check_set  # noqa: PLC0415 - see above

    try:
        check_set(encoded)
    except BadCallError as error:
        raise wrong(error.message, error.expected) from None
    return encoded


def _method_of(encoded: str, name: str) -> GrpcMethod:
    from noonmark.core.kinds.grpc_methods import method_of  # noqa: PLC0415 - see above

    return method_of(encoded, name)


def _check_method(name: str, info: ValidationInfo) -> str:
    encoded = info.data.get("descriptor_set")
    if encoded is not None:
        try:
            _method_of(encoded, name)
        except BadCallError as error:
            raise wrong(error.message, error.expected) from None
    return name


def _check_message(message: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    encoded, name = info.data.get("descriptor_set"), info.data.get("method")
    if encoded is not None and name is not None:
        try:
            _method_of(encoded, name).encode(message)
        except BadCallError as error:
            raise wrong(error.message, error.expected) from None
    return message


def _check_metadata(metadata: dict[str, str]) -> dict[str, str]:
    try:
        return check_metadata(metadata)
    except BadCallError as error:
        raise wrong(error.message, error.expected) from None


def _check_tls(tls: TlsDocument | None, info: ValidationInfo) -> TlsDocument | None:
    target = info.data.get("target")
    if tls is not None and target is not None and not parse_target(target).tls:
        raise wrong("is given, but grpc:// in the target means no TLS", "grpcs:// in the target, or no tls")
    if tls is not None and tls.min_version == "1.3":
        raise wrong("has min_version 1.3, which gRPC does not support", "min_version 1.2 or left out")
    return tls


class GrpcPayload(PayloadDocument):
    """The call that a gRPC job makes."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.GRPC

    purpose: ClassVar[str] = "an object with target, descriptor_set, method and message"

    target: Annotated[
        str,
        Field(
            max_length=MAX_TARGET,
            description="Server to call: host or host:port, over TLS (default port 443). With the prefix "
            "grpc://: without TLS (default port 80).",
            examples=["billing.example.com:443"],
        ),
        AfterValidator(_check_target),
        Expected("host:port, optionally with the prefix grpc:// or grpcs://"),
    ]
    descriptor_set: Annotated[
        str,
        Field(
            min_length=1,
            max_length=_MAX_ENCODED,
            json_schema_extra={"contentEncoding": "base64"},
            description="The service's FileDescriptorSet with all imports, in Base64, as `protoc "
            "--include_imports --descriptor_set_out` writes it.",
        ),
        AfterValidator(_check_set),
        Expected(f"a FileDescriptorSet of at most {MAX_SET_BYTES} bytes in Base64, with all imports"),
    ]
    method: Annotated[
        str,
        Field(
            max_length=300,
            pattern=METHOD_NAME,
            description="Method to call: one message in, one out.",
            examples=["billing.v1.Billing/SendInvoice"],
        ),
        AfterValidator(_check_method),
        Expected("package.Service/Method of the descriptor set, not streaming"),
    ]
    message: Annotated[
        dict[str, Any],
        Field(
            validate_default=True,
            description="The message to send, in protobuf's JSON form. Default: the empty message.",
            examples=[{"userId": 42}],
        ),
        AfterValidator(_check_message),
        Expected("a JSON object that fits the method's request message"),
    ] = Field(default_factory=dict)
    metadata: Annotated[
        dict[
            Annotated[str, Field(pattern=METADATA_NAME)],
            Annotated[str, Field(max_length=MAX_METADATA_BYTES, pattern=METADATA_VALUE)],
        ],
        Field(
            max_length=MAX_METADATA,
            description="Metadata of the call: lower-case names, printable ASCII, at most "
            f"{MAX_METADATA_BYTES} bytes together; not the names that gRPC or the worker sets.",
        ),
        AfterValidator(_check_metadata),
        Expected(f"an object of at most {MAX_METADATA} lower-case names with printable ASCII values"),
    ] = Field(default_factory=dict)
    tls: Annotated[
        TlsDocument | None,
        Field(
            description="Trusted authorities and client certificate. The server's certificate is always "
            "verified."
        ),
        AfterValidator(_check_tls),
        Expected("an object with ca, client_certificate and client_key, server_name"),
    ] = None

    def request(self) -> Mapping[str, object]:
        """Return the payload with all defaults filled in, as workers read it."""
        written: dict[str, object] = {
            "target": self.target,
            "method": self.method,
            "descriptor_set": self.descriptor_set,
            "message": self.message,
            "metadata": self.metadata,
        }
        if self.tls is not None:
            written["tls"] = self.tls.model_dump(exclude_none=True)
        return written
