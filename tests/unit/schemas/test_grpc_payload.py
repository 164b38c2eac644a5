"""The payload of gRPC jobs: what is taken, and the exact words for what is not."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import Any

import orjson
import pytest
from google.protobuf import descriptor_pb2
from tests.support.grpc_server import METHOD, descriptor_set, encoded
from tests.unit.schemas.job_cases import parse, refusal

from noonmark.core.kinds.grpc_call import BadCallError
from noonmark.core.kinds.grpc_methods import check_set, method_of
from noonmark.store.documents.jobs import effective

FILE = descriptor_pb2.FileDescriptorProto
FIELD = descriptor_pb2.FieldDescriptorProto
DESCRIPTORS = descriptor_set()


def grpc(**payload: Any) -> dict[str, Any]:
    given = {"target": "billing.example.com:443", "descriptor_set": DESCRIPTORS, "method": METHOD, **payload}
    return {"type": "gRPC", "payload": given}


BAD: list[tuple[dict[str, Any], str, str]] = [
    (
        grpc(target="https://billing.example.com"),
        "/payload/target",
        (
            "has a scheme that is neither grpc:// nor grpcs://; names are resolved by the worker; "
            "host:port, optionally with the prefix grpc:// or grpcs://"
        ),
    ),
    (
        grpc(target="user:pw@billing.example.com:443"),
        "/payload/target",
        "holds user information; send credentials as metadata; host:port, optionally with the prefix grpc:// or grpcs://",
    ),
    (
        grpc(target="0x7f000001:443"),
        "/payload/target",
        (
            "has a number form of an address as its host; write four decimal numbers, as in 192.0.2.1; "
            "host:port, optionally with the prefix grpc:// or grpcs://"
        ),
    ),
    (
        grpc(target="unix:///run/docker.sock"),
        "/payload/target",
        "is neither a host nor host:port; host:port, optionally with the prefix grpc:// or grpcs://",
    ),
    (
        grpc(target="metadata.google.internal:80"),
        "/payload/target",
        "names a cloud's metadata service, which is never called; host:port, optionally with the prefix grpc:// or grpcs://",
    ),
    (
        grpc(method="billing.v1.Billing/Sent"),
        "/payload/method",
        "names a method that billing.v1.Billing does not have; one of Send, Watch",
    ),
    (
        grpc(method="billing.v2.Billing/Send"),
        "/payload/method",
        (
            "names the service billing.v2.Billing, which the descriptor set does not have; "
            "package.Service/Method of the descriptor set, not streaming"
        ),
    ),
    (
        grpc(method="billing.v1.Billing/Watch"),
        "/payload/method",
        "names a streaming method; a method that takes one message and answers with one",
    ),
    (
        grpc(descriptor_set="no base64"),
        "/payload/descriptor_set",
        "is not Base64; a FileDescriptorSet of at most 65536 bytes in Base64, with all imports",
    ),
    (
        grpc(descriptor_set=base64.b64encode(b"\xff\xff").decode()),
        "/payload/descriptor_set",
        "is not a FileDescriptorSet; a FileDescriptorSet of at most 65536 bytes in Base64, with all imports",
    ),
    (
        grpc(descriptor_set=encoded(FILE(name="a.proto", dependency=["b.proto"]))),
        "/payload/descriptor_set",
        (
            "lacks 'b.proto', which 'a.proto' imports; a set with all imports "
            "(protoc --include_imports --descriptor_set_out)"
        ),
    ),
    (
        grpc(
            descriptor_set=encoded(
                FILE(name="a.proto", dependency=["b.proto"]), FILE(name="b.proto", dependency=["a.proto"])
            )
        ),
        "/payload/descriptor_set",
        (
            "has imports that form a cycle or are nested too deeply; "
            "a FileDescriptorSet of at most 65536 bytes in Base64, with all imports"
        ),
    ),
    (
        grpc(descriptor_set=encoded(FILE(name="mine.proto", package="google.protobuf"))),
        "/payload/descriptor_set",
        (
            "declares google.protobuf in 'mine.proto'; that package is protobuf's own; "
            "a FileDescriptorSet of at most 65536 bytes in Base64, with all imports"
        ),
    ),
    (
        grpc(descriptor_set=base64.b64encode(b"\0" * 65_537).decode()),
        "/payload/descriptor_set",
        "is 65537 bytes; 65536 are allowed; a FileDescriptorSet of at most 65536 bytes in Base64, with all imports",
    ),
    (
        grpc(message={"user": 42}),
        "/payload/message",
        "has no field 'user' in billing.v1.Invoice; a JSON object that fits the method's request message",
    ),
    (
        grpc(message={"lines": [{}, {"txt": "s3cr3t"}]}),
        "/payload/message",
        "has no field 'txt' in billing.v1.Line, at lines; a JSON object that fits the method's request message",
    ),
    (
        grpc(message={"userId": "s3cr3t"}),
        "/payload/message",
        "does not fit at userId; a value of int32 at userId",
    ),
    (
        grpc(message={"lines": {"text": "s3cr3t"}}),
        "/payload/message",
        "does not fit at lines; a list of billing.v1.Line at lines",
    ),
    (
        grpc(message={"due": "s3cr3t"}),
        "/payload/message",
        "does not fit at due; a value of google.protobuf.Timestamp at due",
    ),
    (
        grpc(message=[1]),
        "/payload/message",
        "is an array; a JSON object that fits the method's request message",
    ),
    (
        grpc(metadata={"grpc-timeout": "1S"}),
        "/payload/metadata",
        (
            "grpc-timeout is set by gRPC or noonmark and cannot be given; names that neither frame the call nor name "
            "its run (not grpc-…, noonmark-…, webhook-…, proxy-…, idempotency-key, user-agent)"
        ),
    ),
    (
        grpc(metadata={"trace-bin": "AAAA"}),
        "/payload/metadata",
        "trace-bin is binary metadata, which cannot be given; text under another name",
    ),
    (
        grpc(metadata={"Authorization": "s3cr3t"}),
        "/payload/metadata/Authorization",
        (
            'the name "Authorization" has a form that is not allowed; '
            "an object of at most 50 lower-case names with printable ASCII values"
        ),
    ),
    (
        grpc(metadata={"authorization": "s3cr3t\r\nx: y"}),
        "/payload/metadata/authorization",
        (
            "the value has a form that is not allowed; "
            "an object of at most 50 lower-case names with printable ASCII values"
        ),
    ),
    (
        grpc(metadata={f"n{i}": "x" * 200 for i in range(45)}),
        "/payload/metadata",
        "the metadata is longer than 8192 bytes; names and values of at most 8192 bytes together",
    ),
    (
        grpc(target="grpc://billing.example.com", tls={"server_name": "x.test"}),
        "/payload/tls",
        "is given, but grpc:// in the target means no TLS; grpcs:// in the target, or no tls",
    ),
    (
        grpc(tls={"min_version": "1.3"}),
        "/payload/tls",
        "has min_version 1.3, which gRPC does not support; min_version 1.2 or left out",
    ),
    (
        grpc(wait_for_ready=True),
        "/payload/wait_for_ready",
        "unknown field; one of target, descriptor_set, method, message, metadata, tls",
    ),
]


@pytest.mark.parametrize(("document", "pointer", "words"), BAD)
def test_a_bad_call_is_refused_with_its_place_and_what_would_be_right(document, pointer, words):
    found = refusal(document)
    assert found == {pointer: words}
    assert "s3cr3t" not in str(found)


@pytest.mark.parametrize(
    "target", ["billing.example.com", "grpcs://billing.example.com:50051", "grpc://10.1.2.3:80", "[::1]:443"]
)
def test_targets_that_are_taken(target):
    assert parse(grpc(target=target)).kind == "grpc"


def test_defaults_are_spelt_out_and_a_job_read_back_is_the_same():
    spec = parse(grpc(message={"userId": 1}, metadata={"authorization": "secret://token"}))
    payload = orjson.loads(spec.payload_json)
    assert payload == {
        "target": "billing.example.com:443",
        "method": METHOD,
        "descriptor_set": DESCRIPTORS,
        "message": {"userId": 1},
        "metadata": {"authorization": "secret://token"},
    }
    assert spec.timeout_seconds == 30
    again = parse({name: value for name, value in effective(spec).items() if value is not None})
    assert again.payload_json == spec.payload_json


def test_no_message_is_the_empty_message():
    assert orjson.loads(parse(grpc()).payload_json)["message"] == {}


def test_a_required_field_of_proto2_is_asked_for():
    field = descriptor_pb2.FieldDescriptorProto
    file = FILE(name="old.proto", package="old", syntax="proto2")
    message = file.message_type.add(name="Ask")
    message.field.add(name="who", number=1, type=field.TYPE_STRING, label=field.LABEL_REQUIRED)
    file.service.add(name="Old").method.add(name="Ask", input_type=".old.Ask", output_type=".old.Ask")
    document = grpc(descriptor_set=encoded(file), method="old.Old/Ask")
    assert refusal(document) == {
        "/payload/message": "lacks required fields: who; a JSON object that fits the method's request message"
    }


def test_two_jobs_may_declare_different_messages_under_one_name():
    field = descriptor_pb2.FieldDescriptorProto
    file = FILE(name="billing.proto", package="billing.v1", syntax="proto3")
    file.message_type.add(name="Invoice").field.add(
        name="other", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL
    )
    file.service.add(name="Billing").method.add(
        name="Send", input_type=".billing.v1.Invoice", output_type=".billing.v1.Invoice"
    )
    assert method_of(encoded(file), METHOD).encode({"other": "x"}) == b"\x0a\x01x"
    assert method_of(DESCRIPTORS, METHOD).encode({"userId": 1}) == b"\x08\x01"


def test_a_set_may_leave_out_what_protobuf_ships_and_cannot_replace_it():
    mine = FILE(name="google/protobuf/timestamp.proto", package="google.protobuf", syntax="proto3")
    mine.message_type.add(name="Timestamp")
    for carried in (DESCRIPTORS, descriptor_set(mine)):
        assert method_of(carried, METHOD).encode({"due": "1970-01-01T00:00:01Z"}) == b"\x22\x02\x08\x01"


@pytest.mark.parametrize("where", ["name", "package", "dependency"])
def test_a_set_with_names_that_are_no_text_is_refused(where):
    raw = base64.b64decode(DESCRIPTORS)
    spoilt = {
        "name": lambda file: file.replace(FILE(name="a").SerializeToString(), b"\n\x01\xff"),
        "package": lambda file: file.replace(FILE(package="a").SerializeToString(), b"\x12\x01\xff"),
        "dependency": lambda file: file.replace(FILE(dependency=["a"]).SerializeToString(), b"\x1a\x01\xff"),
    }[where](FILE(name="a", package="a", dependency=["a"]).SerializeToString())
    spoilt_set = base64.b64encode(raw + b"\n" + bytes([len(spoilt)]) + spoilt).decode()
    with pytest.raises(BadCallError, match="is not a FileDescriptorSet"):
        check_set(spoilt_set)


@pytest.mark.parametrize("value", [10**400, float("inf"), "\ud800", [[]], {"a": {}}])
def test_no_value_breaks_what_reads_it(value):
    file = FILE(name="a.proto", package="p", syntax="proto3")
    file.enum_type.add(name="E").value.add(name="ZERO", number=0)
    message = file.message_type.add(name="M")
    kinds = (
        FIELD.TYPE_FLOAT,
        FIELD.TYPE_DOUBLE,
        FIELD.TYPE_INT64,
        FIELD.TYPE_STRING,
        FIELD.TYPE_BYTES,
        FIELD.TYPE_ENUM,
    )
    for number, kind in enumerate(kinds, 1):
        field = message.field.add(name=f"f{number}", number=number, type=kind, label=FIELD.LABEL_OPTIONAL)
        if kind == FIELD.TYPE_ENUM:
            field.type_name = ".p.E"
    file.service.add(name="S").method.add(name="Do", input_type=".p.M", output_type=".p.M")
    method = method_of(encoded(file), "p.S/Do")
    for number in range(1, len(kinds) + 1):
        with suppress(BadCallError):
            method.encode({f"f{number}": value})
