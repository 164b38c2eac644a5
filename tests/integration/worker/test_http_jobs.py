"""HTTP jobs against real targets and a real database: signatures, callbacks, secrets, TLS, what is unknown."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
import uvloop
from psycopg.types.json import Json
from tests.integration.store.world import SHARDS, TOPICS
from tests.unit.worker.bench import Bench
from tests.unit.worker.hands import record
from tests.unit.worker.test_http_executor import Target, answer

from noonmark.attempts.running_attempt import Delivery, NotBegunError, RunningAttempt
from noonmark.attempts.secrets import SecretResolver
from noonmark.core.access.webhook_signature import SignatureError, verify
from noonmark.core.states import Lane
from noonmark.schemas.events.submissions import CompleteRun
from noonmark.store.access.signing_keys import retire_signing_keys, rotate_signing_key, signing_keys
from noonmark.store.runs import callbacks
from noonmark.worker.http import signing
from noonmark.worker.http.callback_tokens import CallbackTokens
from noonmark.worker.http.client import HttpExecutor
from noonmark.worker.http.kind import HttpKind
from noonmark.worker.kinds import lookups as lookups_module
from noonmark.worker.kinds.lookups import PostgresLookups

HERE = ["127.0.0.1/32"]
CERTIFICATES = Path(__file__).parents[2] / "support" / "certificates"


class Sender:
    """A worker that sends the requests of runs, one scenario at a time."""

    def __init__(self, world, tmp_path):
        self.world, self.directory = world, tmp_path
        self.worker = world.worker()

    def secret(self, name, value):
        (self.directory / "tests").mkdir(exist_ok=True)
        (self.directory / "tests" / name).write_text(value)

    def hand(self, payload, **work):
        """Start a run of a job with this payload."""
        job_id = self.world.job()
        spec = {"payload": payload, "timeout_seconds": 5, **work}
        self.world.db.execute(
            "update jobs set kind = 'http', handler = null, work = %s where id = %s", [Json(spec), job_id]
        )
        (run,) = self.world.started(self.worker, job_id=job_id)
        ticket = self.world.ticket(run.id)
        hand = RunningAttempt.of(run, Delivery(ticket, record(), Lane.NORMAL), "default")
        hand.began_at = time.monotonic()
        return hand

    def scenario(self, play, *targets):
        """Play a scenario with a kind and targets that are up."""

        async def run():
            lookups = PostgresLookups(self.world.url)
            tokens = CallbackTokens(lookups, lambda: self.worker)
            kind = HttpKind(HttpExecutor(HERE), SecretResolver(self.directory, {}), lookups, tokens)
            async with asyncio.timeout(20), contexts(targets):
                try:
                    return await play(kind)
                finally:
                    await kind.close()

        return uvloop.run(run())

    def send(self, target, payload, **work):
        """Send the request of one run to a target; return run and outcome."""
        sent = []

        async def play(kind):
            hand = self.hand({"url": target.url(), "method": "POST", **payload}, **work)
            sent.append(hand)
            return await kind.run(hand)

        outcome = self.scenario(play, target)
        return sent[0], outcome

    def record(self, outcome):
        return self.world.record(self.worker, [outcome], [outcome.run.batch_id])


class contexts:  # noqa: N801 - used like a function
    """Enters asynchronous contexts together."""

    def __init__(self, members):
        self.members = members

    async def __aenter__(self):
        for member in self.members:
            await member.__aenter__()

    async def __aexit__(self, *exc):
        for member in self.members:
            await member.__aexit__(*exc)


@pytest.fixture
def sender(world, tmp_path):
    return Sender(world, tmp_path)


def success_of(run_id, token):
    return CompleteRun(run_id, token, succeeded=True, result=b'"done"', error=None, retryable=True)


def test_a_receiver_can_verify_a_call_and_its_fence(sender):
    target = Target()

    hand, outcome = sender.send(target, {"body": {"user_id": 42}})

    ((_, headers, body),) = target.requests
    (key,) = signing_keys(sender.world.db, "tests")
    call = verify(headers, body, [key.secret], now=time.time())
    assert outcome.state == "succeeded"
    assert (call.id, call.fence, call.attempt) == (str(hand.run.id), 1, 1)
    assert call.scheduled_for == hand.run.scheduled_for
    with pytest.raises(SignatureError):
        verify({**headers, "noonmark-fence": "2"}, body, [key.secret], now=time.time())


def test_no_request_is_sent_once_the_lease_may_be_over(sender):
    target = Target()

    async def play(kind):
        hand = sender.hand({"url": target.url(), "method": "POST"})
        hand.may_begin = lambda attempt: attempt is not hand
        with pytest.raises(NotBegunError):
            await kind.run(hand)

    sender.scenario(play, target)

    assert target.requests == []


def test_keys_change_over_without_a_call_that_a_receiver_refuses(sender, monkeypatch):
    monkeypatch.setattr(signing, "REFRESH_SECONDS", 0.0)
    target, world = Target(), sender.world

    async def play(kind):
        await kind.run(sender.hand({"url": target.url(), "method": "POST"}))
        old = signing_keys(world.db, "tests")[0]
        new = rotate_signing_key(world.db, "tests")
        while True:
            await kind.run(sender.hand({"url": target.url(), "method": "POST"}))
            if " " in target.requests[-1][1]["webhook-signature"]:
                break
        both = target.requests[-1][1]
        retire_signing_keys(world.db, "tests")
        while " " in target.requests[-1][1]["webhook-signature"]:
            await kind.run(sender.hand({"url": target.url(), "method": "POST"}))
        return old, new, both, target.requests[-1][1]

    old, new, both, after = sender.scenario(play, target)

    for key in (old, new):
        verify(both, b"", [key.secret], now=time.time())
    verify(after, b"", [new.secret], now=time.time())
    with pytest.raises(SignatureError):
        verify(after, b"", [old.secret], now=time.time())


def test_namespaces_have_keys_of_their_own_and_the_newest_is_never_retired(world):
    first = rotate_signing_key(world.db, "one")
    assert retire_signing_keys(world.db, "one") == []
    assert retire_signing_keys(world.db, "one", first.key_id) == []
    second = rotate_signing_key(world.db, "one")
    other = rotate_signing_key(world.db, "two")

    assert len({first.secret, second.secret, other.secret}) == 3
    assert retire_signing_keys(world.db, "one") == [first.key_id]


def test_a_target_that_answers_202_keeps_its_run_and_reports_with_the_token(sender):
    target = Target(answer(202))

    hand, outcome = sender.send(target, {"callback": {"timeout_seconds": 60}})
    sender.record(outcome)

    ((_, headers, _),) = target.requests
    row = sender.world.run(hand.run.id)
    assert (row["state"], row["owner"]) == ("running", 0)
    report = success_of(hand.run.id, headers["noonmark-callback-token"])
    with sender.world.db.transaction():
        assert callbacks.complete_runs(sender.world.db, TOPICS, [report], shards=SHARDS)[1] == [True]
    assert sender.world.run(hand.run.id)["result"] == "done"


def test_the_token_works_before_the_answer_has_come(sender):
    world = sender.world

    class Hasty(Target):
        async def _answer(self, head, reader, writer):
            fields = dict(line.split(": ", 1) for line in head.decode().strip().split("\r\n")[1:])
            run_id, token = UUID(fields["webhook-id"]), fields["Noonmark-Callback-Token"]
            with world.db.transaction():
                reports = [success_of(run_id, token)]
                assert callbacks.complete_runs(world.db, TOPICS, reports, shards=SHARDS)[1] == [True]
            await super()._answer(head, reader, writer)

    hand, outcome = sender.send(Hasty(answer(202)), {"callback": {"timeout_seconds": 60}})
    recorded = sender.record(outcome)

    assert len(recorded.fenced) == 1
    assert world.run(hand.run.id)["state"] == "succeeded"


def test_many_callbacks_are_opened_at_once_and_one_that_is_not_ours_sends_nothing(sender):
    target = Target(answer(202))

    async def play(kind):
        hands = [
            sender.hand({"url": target.url(), "method": "POST", "callback": {"timeout_seconds": 60}})
            for _ in range(20)
        ]
        sender.world.db.execute("update runs set fence = 2 where id = %s", [hands[0].run.id])
        return await asyncio.gather(*map(kind.run, hands))

    lost, *others = sender.scenario(play, target)

    assert lost.error == "not sent: this worker does not own the run any more"
    assert {outcome.state for outcome in others} == {"running"}
    tokens = {headers["noonmark-callback-token"] for _, headers, _ in target.requests}
    assert len(tokens) == 19


def test_an_answer_other_than_202_is_the_outcome(sender):
    hand, outcome = sender.send(Target(answer(200)), {"callback": {"timeout_seconds": 60}})
    sender.record(outcome)

    assert sender.world.run(hand.run.id)["state"] == "succeeded"
    assert sender.world.count("callbacks") == 0


@pytest.mark.parametrize(
    ("body", "state"), [(b'{"status":"ok"}', "succeeded"), (b'{"status":"no"}', "dead"), (b"ok", "dead")]
)
def test_the_body_of_an_answer_can_decide(sender, body, state):
    success = [{"pointer": "/status", "equals": "ok"}]

    _, outcome = sender.send(Target(answer(200, body)), {"success": success}, retry={"max_retries": 0})

    assert outcome.state == state
    assert outcome.error is None or "answered 200, but " in outcome.error


@pytest.mark.parametrize(
    ("payload", "body", "kept"),
    [
        ({}, b'{"a":1}', {"status": 200}),
        ({"keep_body": True}, b'{"a":1}', {"status": 200, "body": {"a": 1}}),
        ({"keep_body": True}, b"plain \0", {"status": 200, "body": "plain \ufffd"}),
        ({"keep_body": True}, b'"a\\u0000"', {"status": 200, "body": '"a\\u0000"'}),
        ({"keep_body": True}, b"[" * 300 + b"]" * 300, {"status": 200, "body": "[" * 300 + "]" * 300}),
        ({"keep_body": True}, b"x" * 5000, {"status": 200, "body": "x" * 4096}),
        ({"keep_body": True}, b"x" * 2_000_000, {"status": 200, "body": "x" * 4096, "truncated": True}),
    ],
)
def test_what_a_run_keeps_of_its_answer(sender, payload, body, kept):
    hand, outcome = sender.send(Target(answer(200, body)), payload)
    sender.record(outcome)

    assert sender.world.run(hand.run.id)["result"] == kept


@pytest.mark.parametrize("given", ["7", "-1", "soon"])
def test_a_target_may_ask_for_patience(sender, given):
    retry = {"max_retries": 3, "delay_seconds": 1, "jitter": "none", "max_delay_seconds": 5}

    _, outcome = sender.send(Target(answer(503, b"", f"Retry-After: {given}")), {}, retry=retry)

    # Seven seconds are more than the policy's cap.
    assert outcome.retry_seconds == (5 if given == "7" else 1)


@pytest.mark.parametrize(
    ("answers", "state"), [([None], "unknown"), ([answer(500)], "retrying"), ([b""], "unknown")], ids=str
)
def test_what_cannot_be_known_is_not_done_again_at_most_once(sender, answers, state):
    _, outcome = sender.send(Target(*answers), {}, delivery="at_most_once", timeout_seconds=0.5)

    assert outcome.state == state


def test_a_refused_connection_is_known_to_have_done_nothing(sender):
    async def play(kind):
        return await kind.run(sender.hand({"url": "http://127.0.0.1:1/"}, delivery="at_most_once"))

    outcome = sender.scenario(play)

    assert (outcome.state, outcome.attempt_outcome) == ("retrying", "failed")


def test_the_time_that_postgres_takes_does_not_count_against_the_target(sender):
    target, world = Target(), sender.world
    lookups = PostgresLookups(world.url)
    tokens = CallbackTokens(lookups, lambda: sender.worker)
    bench = Bench(
        kinds=lambda _: {
            "http": HttpKind(HttpExecutor(HERE), SecretResolver(None, {}), lookups, tokens),
        }
    )

    def held_up():
        """Execute a run while the keys cannot be read for longer than its timeout."""
        hand = sender.hand({"url": target.url()}, delivery="at_most_once", timeout_seconds=0.3)
        with psycopg.connect(world.url) as blocker:
            blocker.execute("lock table signing_keys in access exclusive mode")
            bench.executors.submit([hand])
            bench.wait(lambda: world.count("pg_locks", "not granted"), "the look-up")
            over = time.monotonic() + 2 * hand.timeout_seconds
            bench.wait(lambda: time.monotonic() > over, "the timeout to pass")
            # Nothing was sent: a hand-back may let it begin elsewhere.
            assert (bench.of(hand), hand.began_at) == (None, 0.0)
        return bench.end(hand)

    async def play():
        async with contexts([target]):
            return await asyncio.to_thread(held_up)

    try:
        outcome = uvloop.run(play())
    finally:
        bench.executors.close()
    assert (outcome.state, len(target.requests)) == ("succeeded", 1)


def test_a_lookup_without_an_answer_fails_the_attempt_before_anything_was_sent(sender, monkeypatch):
    monkeypatch.setattr(lookups_module, "_MOST_SECONDS", 0.05)
    target = Target()
    with psycopg.connect(sender.world.url) as blocker:
        blocker.execute("lock table signing_keys in access exclusive mode")

        async def play(kind):
            hand = sender.hand({"url": target.url()}, delivery="at_most_once")
            outcome = await kind.run(hand)
            blocker.rollback()
            return outcome

        outcome = sender.scenario(play, target)
    assert (outcome.state, target.requests) == ("retrying", [])
    assert outcome.error == "not sent: cannot query the database: no answer within 0.05 s"


def test_secrets_are_resolved_at_the_last_moment_and_known_to_the_hand(sender):
    sender.secret("token", "s3cret-value")
    target = Target()

    hand, _ = sender.send(
        target,
        {"headers": {"Authorization": "Bearer ${secret://token}"}, "body": {"key": "secret://token"}},
    )

    ((_, headers, body),) = target.requests
    assert headers["authorization"] == "Bearer s3cret-value"
    assert json.loads(body) == {"key": "s3cret-value"}
    assert hand.redactor.clean("x s3cret-value") == "x [secret:token]"
    assert "s3cret" not in sender.world.value("select work::text from jobs")


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({"headers": {"X": "secret://none"}}, "not known to this worker"),
        ({"headers": {"X": "secret://lines"}}, "line break"),
        ({"url": "http://127.0.0.1/${secret://lines}"}, "url may not contain a secret"),
    ],
)
def test_a_secret_that_cannot_be_used_sends_nothing(sender, payload, words):
    sender.secret("lines", "a\r\nX: y\r\nz")
    target = Target()

    _, outcome = sender.send(target, payload)

    assert words in outcome.error
    assert target.requests == []


class TlsTarget(Target):
    """The same behind TLS, asking for a certificate where `ca` is given."""

    def __init__(self, *answers, ca=None):
        super().__init__(*answers)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
        if ca is not None:
            self.context.load_verify_locations(ca)
            self.context.verify_mode = ssl.CERT_REQUIRED

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, self.host, 0, ssl=self.context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def url(self, path="/", host=None):
        return f"https://{host or self.host}:{self.port}{path}"


def text(name):
    return (CERTIFICATES / name).read_text()


def test_a_job_names_the_authority_and_the_name_that_it_trusts(sender):
    sender.secret("ca", text("ca.pem"))

    _, trusted = sender.send(TlsTarget(), {"tls": {"ca": "secret://ca", "server_name": "billing.test"}})
    _, unknown = sender.send(TlsTarget(), {})
    _, misnamed = sender.send(TlsTarget(), {"tls": {"ca": text("ca.pem"), "server_name": "other.example"}})

    assert trusted.state == "succeeded", trusted.error
    assert "is not trusted" in unknown.error
    assert "is not trusted" in misnamed.error


def test_a_job_shows_its_own_certificate(sender):
    sender.secret("key", text("client.key"))
    bare = {"ca": text("ca.pem"), "server_name": "billing.test"}
    ours = {**bare, "client_certificate": text("client.pem"), "client_key": "secret://key"}
    asking = CERTIFICATES / "client-ca.pem"

    _, unknown = sender.send(TlsTarget(ca=asking), {"tls": bare})
    _, shown = sender.send(TlsTarget(ca=asking), {"tls": ours})
    _, broken = sender.send(TlsTarget(), {"tls": {**ours, "client_key": text("ca.pem")}})

    assert unknown.state == "retrying"
    assert shown.state == "succeeded", shown.error
    assert (broken.state, "unencrypted key" in broken.error) == ("dead", True)
