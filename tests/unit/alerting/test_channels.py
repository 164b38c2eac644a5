"""What receivers of alerts are sent, on a real socket: signed, bounded, and never where they redirect to."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from uuid import UUID

import pytest

from noonmark.alerting.alertmanager import Alertmanager, alert_of
from noonmark.alerting.channels import ChannelError, channel_names, open_channels
from noonmark.alerting.http_post import DeliveryRefusedError, Poster
from noonmark.alerting.links import Links
from noonmark.alerting.webhook import Webhook
from noonmark.core.access.webhook_signature import SignatureError
from noonmark.receiver import verify
from noonmark.schemas.events.alerts import AlertRaised, AlertResolved
from noonmark.settings import Settings
from noonmark.store.alerts.deliveries import Delivery

SECRET = "whsec_" + "A" * 43 + "="
JOB, RUN, ALERT = (UUID(int=n) for n in (1, 2, 3))
AT = datetime(2026, 6, 1, 9, tzinfo=UTC)
LATER = datetime(2026, 6, 1, 9, 5, tzinfo=UTC)


def delivery(**changes: Any) -> Delivery:
    return Delivery(
        alert_id=ALERT,
        change="raised",
        attempts=1,
        now=datetime.now(UTC),
        kind="runaway",
        severity="warning",
        namespace="billing",
        job_id=JOB,
        run_id=RUN,
        summary="runs for 9 s, usual are 3 s",
        details={"usual_seconds": 3.0, "pools": ["default"], "error": None},
        raised_at=AT,
        resolved_at=None,
        fingerprint="runaway:2",
        job_name="invoices",
    )._replace(**changes)


class Receiver:
    """Keeps what it gets; answers as it is told."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[tuple[int, bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                receiver.got.append((self.path, dict(self.headers.items()), body))
                status, answer = receiver.answers.pop(0) if receiver.answers else (200, b"")
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST  # noqa: N815 - the base class names it

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.fixture
def webhook(receiver: Receiver) -> Iterator[Webhook]:
    channel = Webhook(f"{receiver.url}/hook?token=s3cret", SECRET, Links(""), Poster())
    yield channel
    channel.close()


def test_a_receiver_that_knows_the_secret_believes_it_and_no_other_does(receiver, webhook):
    one = delivery()

    assert webhook.send([one], time.monotonic()) == [(one, "")]

    path, headers, body = receiver.got[0]
    assert path == "/hook?token=s3cret"
    assert verify(headers, body, [SECRET]).id == f"{ALERT}-raised" == headers["Idempotency-Key"]
    with pytest.raises(SignatureError):
        verify(headers, body, ["whsec_" + "B" * 43 + "="])
    with pytest.raises(SignatureError):
        verify(headers, body + b" ", [SECRET])


def test_it_is_the_event_of_the_topic_with_a_name_and_a_link_beside_it(receiver, webhook):
    webhook.send([delivery()], time.monotonic())
    webhook.send([delivery(change="resolved", resolved_at=LATER)], time.monotonic())

    raised, resolved = (json.loads(body) for _, _, body in receiver.got)
    assert (raised["type"], raised["id"]) == ("noonmark.alert.raised.v1", f"{ALERT}-raised")
    assert (raised["data"]["job_name"], raised["data"]["link"]) == ("invoices", f"/v1/runs/{RUN}/logs")
    assert AlertRaised.model_validate(raised["data"]).raised_at == AT
    assert (resolved["type"], resolved["id"]) == ("noonmark.alert.resolved.v1", f"{ALERT}-resolved")
    assert AlertResolved.model_validate(resolved["data"]).resolved_at == LATER


def test_what_is_not_taken_says_why_and_shows_nothing_of_the_address(receiver, webhook):
    one = delivery()
    receiver.answers = [(500, b"no disk\n" + b"x" * 10_000), (302, b""), (204, b"")]

    first, second, third = (webhook.send([one], time.monotonic())[0][1] for _ in range(3))

    assert first.startswith("answered 500: no disk xxx")
    assert len(first) < 400
    assert second == "answered 302: redirects are not followed; set the URL of the target"
    assert third == ""
    assert [path for path, _, _ in receiver.got] == ["/hook?token=s3cret"] * 3


def test_what_an_answer_repeats_of_the_address_is_not_shown(receiver):
    path, query = "/services/T00/B00/tok-3n", "key=s3cret%2Fx&n=1"
    url = receiver.url.replace("http://", "http://me:hunter22@") + f"{path}?{query}"
    repeated = f"{path}?{query} is unknown: {path}, s3cret/x, hunter22. " + "y" * 280 + "s3cret/x" + "z" * 99
    receiver.answers = [(404, repeated.encode()), (404, b"/services\\/T00\\/0123456789abcdef is unknown")]

    with pytest.raises(DeliveryRefusedError) as first:
        Poster(5).call(url, body=b"{}")
    with pytest.raises(DeliveryRefusedError) as second:
        Poster(5).call(f"{receiver.url}/services/T00/0123456789abcdef")

    assert str(first.value).startswith("answered 404: …?… is unknown: …, …, ….")
    assert not [part for part in ("tok", "s3c", "hunter", "0123") if part in f"{first.value}{second.value}"]


@pytest.mark.parametrize("drop", [b"X-More: 1\r\n", b"HTTP/1.1 102 Processing\r\n\r\n"])
def test_a_receiver_that_answers_drop_by_drop_costs_no_more_than_one_that_is_silent(drop):
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def drip() -> None:
            with server.accept()[0] as call:
                call.sendall(b"HTTP/1.1 200 OK\r\n" if drop.startswith(b"X") else b"")
                while not ended.wait(0.02):
                    with suppress(OSError):
                        call.sendall(drop)

        dripping = threading.Thread(target=drip)
        dripping.start()
        with pytest.raises(DeliveryRefusedError, match=r"no answer within 0\.2 s"):
            Poster(0.2).call(f"http://127.0.0.1:{server.getsockname()[1]}/hook")
        ended.set()
        dripping.join()


def test_an_authority_that_cannot_be_read_is_told_and_not_left_out(receiver, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")

    with pytest.raises(DeliveryRefusedError, match="cannot read SSL_CERT_FILE: "):
        Poster(5).call(receiver.url)


def test_an_address_where_nobody_listens_is_named_by_its_trouble_alone(receiver):
    with Receiver().server as gone:
        port = gone.server_address[1]

    with pytest.raises(DeliveryRefusedError, match=r"cannot be reached: .*Connect") as caught:
        Poster(5).call(f"http://user:s3cret@127.0.0.1:{port}/x")

    assert "s3cret" not in str(caught.value)


def test_alertmanager_knows_an_alert_by_labels_that_stay_and_holds_it_for_a_while():
    now = datetime(2026, 6, 1, 9, 1, tzinfo=UTC)
    told = alert_of(delivery(now=now), "https://logs/x")
    other_run = alert_of(delivery(run_id=UUID(int=9), summary="another"), "")

    assert told["labels"] == {
        "alertname": "NoonmarkRunaway",
        "kind": "runaway",
        "severity": "warning",
        "service": "noonmark",
        "namespace": "billing",
        "job": "invoices",
        "fingerprint": "78326f896dbadcdb",
    }
    assert other_run["labels"] == told["labels"]
    assert told["annotations"] == {
        "summary": "runs for 9 s, usual are 3 s",
        "link": "https://logs/x",
        "run_id": str(RUN),
        "usual_seconds": "3.0",
    }
    assert told["startsAt"] == AT
    assert told["endsAt"] == datetime(2026, 6, 1, 9, 6, tzinfo=UTC)
    over = alert_of(delivery(change="resolved", resolved_at=LATER), "/v1/runs/2/logs")
    assert told["generatorURL"] == "https://logs/x"
    assert (over["endsAt"], "generatorURL" in over) == (LATER, False)


def test_one_alert_that_alertmanager_refuses_keeps_no_other_from_it(receiver):
    good, bad = delivery(), delivery(alert_id=UUID(int=4))
    receiver.answers = [(400, b"one of them"), (200, b""), (400, b"this one")]
    channel = Alertmanager(receiver.url + "/", Links(""), Poster())

    told = channel.send([good, bad], time.monotonic())

    assert told == [(good, ""), (bad, "answered 400: this one")]
    assert {path for path, _, _ in receiver.got} == {"/api/v2/alerts"}
    channel.close()


@pytest.mark.parametrize(
    ("pattern", "changes", "link"),
    [
        ("", {}, f"/v1/runs/{RUN}/logs"),
        ("", {"run_id": None}, f"/v1/jobs/{JOB}"),
        ("", {"run_id": None, "job_id": None}, ""),
        ("https://x/?q={run_id}&n={namespace}", {"namespace": "a/b&c"}, f"https://x/?q={RUN}&n=a%2Fb%26c"),
        ("https://x/{run_id}", {"run_id": None}, f"/v1/jobs/{JOB}"),
    ],
)
def test_a_link_leads_to_the_run_or_the_job(pattern, changes, link):
    assert Links(pattern).of(delivery(**changes)) == link


def test_the_settings_say_which_channels_there_are():
    assert channel_names(Settings()) == ()
    both = Settings(
        alert_webhook_url="https://x/hook", alert_webhook_secret=SECRET, alertmanager_url="http://am:9093"
    )
    assert channel_names(both) == ("webhook", "alertmanager")
    assert [channel.name for channel in open_channels(both)] == ["webhook", "alertmanager"]


def test_a_webhook_without_a_secret_is_refused_in_a_sentence_that_shows_none():
    with pytest.raises(ChannelError, match="needs a valid NOONMARK_ALERT_WEBHOOK_SECRET") as caught:
        open_channels(Settings(alert_webhook_url="https://x/hook", alert_webhook_secret="hunter2"))

    assert "hunter2" not in str(caught.value)
