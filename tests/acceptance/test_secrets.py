"""A canary in every slot that takes a secret, and careless work of every kind: nothing of it is left anywhere."""

import base64
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from tests.support.cluster import Cluster

CANARY = "c4nary/+\"q' e\\é-0123456789"
MISSING = "secret://not-there"

pytestmark = pytest.mark.slow


class Echo(BaseHTTPRequestHandler):
    """Answers with all that it was told; the path says with which status."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.told.append((self.path, dict(self.headers), body))  # type: ignore[attr-defined]
        answer = str(self.headers).encode() + body
        self.send_response(int(self.path.strip("/")))
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def echo() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        server.told = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def descriptors() -> FileDescriptorSet:
    """A service whose methods take and return one text."""
    file = FileDescriptorProto(name="echo.proto", package="echo", syntax="proto3")
    message = file.message_type.add(name="Text")
    message.field.add(name="token", number=1, type=9, label=1)
    service = file.service.add(name="Echo")
    for name in ("Give", "Fail"):
        service.method.add(name=name, input_type=".echo.Text", output_type=".echo.Text")
    return FileDescriptorSet(file=[file])


class Calls(grpc.GenericRpcHandler):
    """Gives back what it was told: as the answer, or as the words of a failure."""

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        told = dict(details.invocation_metadata)["x-token"]

        def call(request: bytes, context: grpc.ServicerContext) -> bytes:
            if details.method.endswith("Fail"):
                context.abort(grpc.StatusCode.INTERNAL, f"{told} {request[2:].decode()}")
            return request

        return grpc.unary_unary_rpc_method_handler(call)


@pytest.fixture
def grpc_port() -> Iterator[int]:
    server = grpc.server(ThreadPoolExecutor(2), handlers=[Calls()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(0).wait()


def jobs(port: int, grpc_port: int) -> list[dict[str, object]]:
    once = {"max_retries": 1, "delay_seconds": 0.2, "jitter": "none"}
    http = {
        "headers": {"X-Token": "Bearer ${secret://ascii}", "X-Plain": "secret://ascii"},
        "body": {"token": "secret://canary", "deep": [{"x": "<${secret://canary}>"}]},
        "keep_body": True,
    }
    script = {
        "env": {"TOKEN": "secret://canary"},
        "stdin": "secret://canary",
        "result": "json",
    }
    shell = (
        'cat; printf "\\n%s\\n" "$TOKEN"; printf "%s\\n" "$TOKEN" >&2;'
        ' printf "\\"%s\\"\\n" $(printf "%s" "$TOKEN" | base64 -w 0); exit '
    )
    grpc = {
        "target": f"grpc://127.0.0.1:{grpc_port}",
        "descriptor_set": base64.b64encode(descriptors().SerializeToString()).decode(),
        "message": {"token": "secret://canary"},
        "metadata": {"x-token": "Bearer ${secret://ascii}"},
    }
    return [
        *(
            {"type": "http", "payload": {"url": f"http://127.0.0.1:{port}/{status}", **http}, "retry": once}
            for status in (200, 500, 400)
        ),
        {"type": "http", "payload": {"url": "http://127.0.0.1:9/", **http}, "retry": once},
        *(
            {"type": "script", "payload": {"argv": ["/bin/sh", "-c", shell + code], **script}, "retry": once}
            for code in ("0", "3")
        ),
        {
            "type": "script",
            "payload": {"argv": ["/bin/sh", "-c", "kill -9 $$"], **script},
            "retry": once,
        },
        *(
            {"type": "grpc", "payload": {**grpc, "method": f"echo.Echo/{name}"}, "retry": once}
            for name in ("Give", "Fail")
        ),
        *(
            {"type": "python", "handler": f"secret.{name}", "retry": once}
            for name in ("returns", "raises", "raises_cut", "async", "process", "process_returns", "missing")
        ),
    ]


def test_no_trace_of_a_secret_is_left_by_work_of_any_kind(
    noonmark: Cluster, command, echo, grpc_port, tmp_path
) -> None:
    folder = tmp_path / "secrets"
    (folder / "vault").mkdir(parents=True)
    (folder / "vault" / "canary").write_text(CANARY + "\n", encoding="utf-8")
    # Header values are ASCII.
    ascii_canary = "h34der-c4nary-0123456789"
    (folder / "vault" / "ascii").write_text(ascii_canary, encoding="utf-8")
    worker = {
        "secrets_dir": str(folder),
        "scripts": "*",
        "handlers": "tests.support.secret_handlers",
        "log_level": "debug",
    }
    noonmark.start("intake", "trigger", "dispatcher")
    noonmark.start("worker", **worker)
    documents = [{**job, "namespace": "vault"} for job in jobs(echo.server_port, grpc_port)]
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps(documents), encoding="utf-8")
    command("submit", str(file))

    def ended() -> bool:
        states = noonmark.states("vault")
        return sum(states.values()) == len(documents) and set(states) <= {"succeeded", "dead"}

    noonmark.wait(ended, "every run to end", within=60)

    # The secrets did reach the work, so there was something to keep silent about.
    told = echo.told  # type: ignore[attr-defined]
    assert {headers["X-Token"] for _, headers, _ in told} == {f"Bearer {ascii_canary}"}
    assert all(json.loads(body)["token"] == CANARY for _, _, body in told)
    states = noonmark.states("vault")
    assert states == {"succeeded": 5, "dead": len(documents) - 5}, noonmark.rows(
        "select kind, handler, state, error from runs join jobs on jobs.id = job_id"
    )

    seen = everything(noonmark, command)
    for name, text in seen.items():
        for trace in traces(CANARY) | traces(ascii_canary):
            assert trace not in text, f"{trace!r} in {name}"
    dump = seen["the database"]
    for kept in ("[secret:canary]", MISSING):
        assert kept in dump
    assert "[secret:vault/canary]" in seen["worker"], "the handlers' own loggers were heard"


def everything(noonmark: Cluster, command) -> dict[str, str]:
    """All that a run leaves for people and machines, by the place where it is found."""
    tables = [
        row[0]
        for row in noonmark.rows(
            "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
        )
    ]
    assert {"attempt_logs", "run_notes", "attempts", "outbox"} <= set(tables)
    found = {
        "the database": "\n".join(
            row[0] for table in tables for row in noonmark.rows(f'select t::text from "{table}" as t')
        )
    }
    topics = noonmark.kafka.topics()
    for message in noonmark.kafka.read(topics):
        parts = [
            message.key() or b"",
            message.value() or b"",
            *(v or b"" for _, v in message.headers() or []),
        ]
        texts = [part.decode("utf-8", "backslashreplace") for part in parts]
        found[message.topic()] = found.get(message.topic(), "") + "\n".join(texts)
    assert any("lifecycle" in topic for topic in found)
    for node in noonmark.nodes:
        found[node.service] = node.log_file.read_text(encoding="utf-8")
    for run_id, *_ in noonmark.rows("select id from runs"):
        for words in (("show",), ("show", "--json"), ("logs",), ("logs", "--json")):
            said = command("run", words[0], str(run_id), *words[1:])
            found["run " + " ".join(words)] = (
                found.get("run " + " ".join(words), "") + said.stdout + said.stderr
            )
    for words in (
        ("run", "list", "--json"),
        ("dead", "list", "--namespace", "vault", "--json"),
        ("job", "list", "--json"),
    ):
        found[" ".join(words)] = command(*words).stdout
    return found


def traces(value: str) -> set[str]:
    data = value.encode()
    coded = base64.b64encode(data).decode().rstrip("=")
    inside = base64.b64encode(b"user:" + data).decode()[8:-4]
    return {
        value,
        value[:12],
        coded,
        inside,
        coded.replace("+", "-").replace("/", "_"),
        json.dumps(value)[1:-1],
        json.dumps(json.dumps(value))[3:-3],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        quote(value, safe=""),
        data.hex(),
    }
