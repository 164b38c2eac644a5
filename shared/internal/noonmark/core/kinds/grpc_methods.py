"""A unary gRPC method from a descriptor set: it turns JSON into the request and the response into JSON.

The descriptor set is data of a client. It is loaded into a separate pool, so that it can neither see nor
replace what another job or this program declares; it contains no code. Files of `google/protobuf/` come only
from the protobuf library: JSON treats their messages specially and trusts their fields.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    json_format,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from noonmark.core.kinds.grpc_call import MAX_SET_BYTES, BadCallError

_MAX_DEPTH: Final = 64
_SHIPPED: Final[Mapping[str, bytes]] = {
    module.DESCRIPTOR.name: module.DESCRIPTOR.serialized_pb
    for module in (
        any_pb2,
        descriptor_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )
}
_OWN_PACKAGE: Final = "google.protobuf"
_FAILED_FIELD: Final = re.compile(r"Failed to parse (\S+) field: ")
_UNKNOWN_FIELD: Final = re.compile(r'Message type "([\w.]+)" has no field named "([^"]*)"')


@dataclass(frozen=True, slots=True)
class GrpcMethod:
    """A unary method.

    Attributes:
        path: as calls name it, `/package.Service/Method`.
    """

    path: str
    _request: Callable[[], Message]
    _answer: Callable[[], Message]
    _pool: descriptor_pool.DescriptorPool

    def encode(self, request: Mapping[str, Any]) -> bytes:
        """Turn JSON into the request's bytes, always the same for the same JSON.

        Raises:
            BadCallError: the JSON does not fit the message; the error says where, and quotes no value.
        """
        message: Any = self._request()  # the stubs know only half of a message
        try:
            json_format.ParseDict(
                dict(request), message, descriptor_pool=self._pool, max_recursion_depth=_MAX_DEPTH
            )
            return bytes(message.SerializeToString(deterministic=True))
        except json_format.ParseError as error:
            raise _misfit(str(error), message.DESCRIPTOR) from None
        except EncodeError:
            missing = ", ".join(message.FindInitializationErrors()[:10])
            raise BadCallError(f"lacks required fields: {missing}") from None
        except (TypeError, ValueError, AttributeError, RecursionError, OverflowError, SystemError):
            raise BadCallError(f"does not fit the message {message.DESCRIPTOR.full_name}") from None

    def decode(self, answer: bytes) -> Any:
        """Turn the response's bytes into JSON; 64-bit integers are strings, as protobuf's JSON has them.

        Raises:
            ValueError: the bytes are not such a message.
        """
        message = self._answer()
        try:
            message.ParseFromString(answer)
            return json_format.MessageToDict(message, descriptor_pool=self._pool)
        except (DecodeError, json_format.Error, TypeError, RecursionError) as error:
            raise ValueError(
                f"is not a {message.DESCRIPTOR.full_name} as the descriptor set defines it"
            ) from error


def check_set(encoded: str) -> None:
    """Read a descriptor set.

    Raises:
        BadCallError: not Base64, too large, no descriptor set, or not complete.
    """
    _pool_of(encoded)


def method_of(encoded: str, name: str) -> GrpcMethod:
    """Find a unary method in a descriptor set.

    Args:
        encoded: the set's bytes in Base64.
        name: `package.Service/Method`.

    Raises:
        BadCallError: the set cannot be used, or has no such method.
    """
    return _method_of(encoded, name)


# Otherwise sets are read again for every run; a worker has memory for a few hundred of 64 KB.
@lru_cache(maxsize=256)
def _method_of(encoded: str, name: str) -> GrpcMethod:
    pool = _pool_of(encoded)
    service_name, _, method_name = name.partition("/")
    try:
        service = pool.FindServiceByName(service_name)
    except KeyError:
        raise BadCallError(
            f"names the service {service_name}, which the descriptor set does not have"
        ) from None
    method = service.methods_by_name.get(method_name)
    if method is None:
        known = ", ".join(sorted(service.methods_by_name)[:10]) or "none"
        raise BadCallError(f"names a method that {service_name} does not have", f"one of {known}")
    if method.client_streaming or method.server_streaming:
        raise BadCallError("names a streaming method", "a method that takes one message and answers with one")
    return GrpcMethod(
        f"/{service.full_name}/{method.name}",
        message_factory.GetMessageClass(method.input_type),
        message_factory.GetMessageClass(method.output_type),
        pool,
    )


def _pool_of(encoded: str) -> descriptor_pool.DescriptorPool:
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise BadCallError("is not Base64") from None
    if len(raw) > MAX_SET_BYTES:
        raise BadCallError(f"is {len(raw)} bytes; {MAX_SET_BYTES} are allowed")
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(raw).file
    except DecodeError:
        raise BadCallError("is not a FileDescriptorSet") from None
    if not files:
        raise BadCallError("has no files")
    # The library returns bytes for what is not UTF-8.
    if not all(
        isinstance(text, str) for file in files for text in (file.name, file.package, *file.dependency)
    ):
        raise BadCallError("is not a FileDescriptorSet: a name in it is not text")
    return _built({file.name: file for file in files})


def _built(files: Mapping[str, descriptor_pb2.FileDescriptorProto]) -> descriptor_pool.DescriptorPool:
    """Add the files to a new pool, each after those that it imports."""
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()

    def add(name: str, importer: str, depth: int) -> None:
        if name in added:
            return
        file = files.get(name)
        if depth > _MAX_DEPTH:
            raise BadCallError("has imports that form a cycle or are nested too deeply")
        if name in _SHIPPED:
            raw = _SHIPPED[name]
        elif file is None:
            raise BadCallError(
                f"lacks {name[:200]!r}, which {importer[:200]!r} imports",
                "a set with all imports (protoc --include_imports --descriptor_set_out)",
            )
        elif file.package == _OWN_PACKAGE or file.package.startswith(_OWN_PACKAGE + "."):
            raise BadCallError(f"declares {_OWN_PACKAGE} in {name[:200]!r}; that package is protobuf's own")
        else:
            for imported in file.dependency:
                add(imported, name, depth + 1)
            raw = file.SerializeToString()
        try:
            pool.AddSerializedFile(raw)
        except (TypeError, ValueError) as error:
            reason = str(error).removeprefix("Couldn't build proto file into descriptor pool: ")
            raise BadCallError(f"is not consistent in {name[:200]!r}: {reason[:300]}") from None
        added.add(name)

    for name in files:
        add(name, name, 0)
    return pool


def _misfit(message: str, root: Descriptor) -> BadCallError:
    """Say without any value where JSON does not fit a message."""
    unknown = _UNKNOWN_FIELD.search(message)
    path = _FAILED_FIELD.findall(message)
    place = ".".join(path)
    if unknown is not None:
        name, owner = unknown[2], unknown[1]
        return BadCallError(f"has no field {name[:100]!r} in {owner}" + (f", at {place}" if place else ""))
    field = _field_at(root, path)
    if field is None:
        return BadCallError(f"does not fit the message {root.full_name}" + (f", at {place}" if place else ""))
    return BadCallError(f"does not fit at {place}", f"{_type_of(field)} at {place}")


def _field_at(root: Descriptor, path: list[str]) -> FieldDescriptor | None:
    message: Descriptor | None = root
    field: FieldDescriptor | None = None
    for part in path:
        if message is None:
            return None
        field = next((one for one in message.fields if part in (one.json_name, one.name)), None)
        if field is None:
            return None
        message = field.message_type
    return field


_TYPE_NAMES: Final[Mapping[int, str]] = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in descriptor_pb2.FieldDescriptorProto.Type.items()
}


def _type_of(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        words = field.message_type.full_name
    elif field.enum_type is not None:
        words = field.enum_type.full_name
    else:
        words = _TYPE_NAMES[field.type]
    return f"a list of {words}" if field.is_repeated else f"a value of {words}"
