"""Decides who publishes an event and in which namespaces it may act, before its contents are checked.

An event is authorized by the signature of a publisher's key, by a token of the identity provider, or by its
topic, for which Kafka's ACLs decide who may write. A valid topic does not excuse a bad signature or token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from noonmark.auth.authenticator import Publisher
from noonmark.auth.errors import AuthenticationError
from noonmark.core.access.roles import EVERYWHERE, Permission, Principal
from noonmark.core.access.submission_signature import (
    JWT_HEADER,
    SIGNATURE_HEADER,
    Signature,
    SignedEvent,
    SubmissionSignatureError,
    signed_batch,
)
from noonmark.intake.event_batches import BatchedRecord
from noonmark.intake.key_masking import holds_key
from noonmark.kafka.consumers.records import Headers, Record
from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, Event
from noonmark.schemas.events.submissions import (
    CANCEL,
    CANCEL_RUNS,
    COMPLETE_RUN,
    CREATE,
    PAUSE,
    RESUME,
    TRIGGER,
    UPDATE,
)
from noonmark.schemas.problems.refusal import FieldError, Refused, shown

PERMISSIONS: Final[Mapping[str, Permission]] = MappingProxyType(
    {
        CREATE: Permission.JOBS_WRITE,
        UPDATE: Permission.JOBS_WRITE,
        CANCEL: Permission.JOBS_WRITE,
        PAUSE: Permission.JOBS_OPERATE,
        RESUME: Permission.JOBS_OPERATE,
        TRIGGER: Permission.JOBS_OPERATE,
        CANCEL_RUNS: Permission.RUNS_OPERATE,
    }
)
"""The permission that each submission needs, the same as its API route. A run report has its own token."""

_HOW: Final = (
    f"a header {SIGNATURE_HEADER} signed with a publisher's key, a header {JWT_HEADER}, or a topic that"
    " NOONMARK_BOUND_TOPICS binds to a namespace"
)
_MOST_HEADER_BYTES: Final = 16 * 1024


class Unauthorized(Refused):
    """The event may not do what it requests. `principal` is its publisher, if that is certain."""

    def __init__(self, problem: FieldError, principal: Principal | None = None) -> None:
        super().__init__([problem])
        self.principal = principal


class Grant(NamedTuple):
    """The namespaces that an event may act in.

    Attributes:
        namespace: the default namespace of its document.
        within: the only namespaces that it may act in; None means all.
        scope: the scope in which its source and id are unique; "" for events that may act everywhere.
        principal: its publisher; None if only its topic authorizes it.
    """

    namespace: str
    within: frozenset[str] | None
    scope: str
    principal: Principal | None = None


@dataclass(frozen=True, slots=True)
class BatchContext:
    """When and with which tokens a batch was first checked.

    A second check of the batch uses the same context, so that passing time does not make it invalid.

    Attributes:
        at: Unix seconds, by the database's clock.
        tokens: the principal of each token that was valid.
    """

    at: float
    tokens: dict[str, Principal] = field(default_factory=dict, repr=False)


class CredentialStore(Protocol):
    """Looks up keys and tokens, and caches them for less than 5 s: `noonmark.auth.Authenticator`."""

    def principal_of_key(self, key_id: str) -> Publisher | None:
        """Return the publisher of a key; None if it is not a valid signing key."""

    def authenticate_jwt(self, token: str) -> Principal:
        """Return the principal of a token, if the token is valid now."""


_EVERYWHERE: Final = Grant("default", None, "")


class Authorizer:
    """Authorizes events. Thread-safe."""

    def __init__(self, bound: Mapping[str, str], authority: CredentialStore) -> None:
        """Create an authorizer.

        Args:
            bound: namespace of each topic whose events need no signature; `*` for all namespaces.
            authority: looks up keys and tokens.
        """
        self._bound = {
            topic: _EVERYWHERE if place == EVERYWHERE else Grant(place, frozenset({place}), place)
            for topic, place in bound.items()
        }
        self._authority = authority

    def authorize(self, record: Record, event: Event, context: BatchContext) -> Grant:
        """Authorize an event and return its grant.

        Args:
            record: the record as it was read.
            event: the event in it.
            context: the context of its batch.

        Raises:
            Unauthorized: it may not do what it requests.
            psycopg.OperationalError: its key is not cached and the database is unavailable.
        """
        signature, token = _credentials(record.headers) if record.headers else (None, None)
        if event.type == COMPLETE_RUN:
            return _EVERYWHERE
        if signature is not None:
            admitted = self._signed(record, event, signature, _taken_at(record, context))
        elif token is not None:
            admitted = self._by_token(event, token, context)
        else:
            bound = self._bound.get(record.topic)
            if bound is None:
                raise Unauthorized(FieldError("", "the event has no signature or token", _HOW))
            admitted = bound
        if admitted.within is not None:
            _check_namespace(event, admitted)
        return admitted

    def _signed(self, record: Record, event: Event, header: object, at: float) -> Grant:
        try:
            signature = Signature.read(header if isinstance(header, bytes | str) else None)
            publisher = self._authority.principal_of_key(signature.key_id)
            if publisher is None:
                _refuse_signature("its key is unknown, revoked, expired or not a publisher's key")
            signed = (
                signed_batch(record.batch)
                if isinstance(record, BatchedRecord)
                else SignedEvent(event.source, event.id, event.type, event.sequence, record.value)
            )
            if not signature.fits(publisher.signing_secret, signed):
                _refuse_signature("it does not match: another key made it, or the event was changed since")
            signature.check_time(at)
        except SubmissionSignatureError as error:
            _refuse_signature(str(error))
        place, who = signature.namespace, publisher.principal
        needed = _permission_for(event)
        if needed is not None and not who.may(needed, place):
            raise _not_allowed(who, needed, place)
        return Grant(place, frozenset({place}), place, who)

    def _by_token(self, event: Event, token: str, context: BatchContext) -> Grant:
        who = context.tokens.get(token)
        if who is None:
            try:
                who = self._authority.authenticate_jwt(token)
            except AuthenticationError as error:
                raise Unauthorized(FieldError("", f"{JWT_HEADER}: {error}", error.hint)) from None
            context.tokens[token] = who
        needed = _permission_for(event)
        within = who.namespaces(needed) if needed is not None else frozenset()
        if needed is not None and within is not None and not within:
            raise _not_allowed(who, needed, None)
        return Grant(who.home or "default", within, who.home or who.id, who)


def _permission_for(event: Event) -> Permission | None:
    """Return the permission that an event needs. A trigger with its own payload needs that to write jobs."""
    if event.type == TRIGGER and isinstance(event.data, dict) and "payload" in event.data:
        return Permission.JOBS_WRITE
    return PERMISSIONS.get(event.type)


def _credentials(headers: Headers) -> tuple[bytes | str | None, str | None]:
    """Return the signature and the token of a record.

    Raises:
        Unauthorized: it has both or one twice, or contains a secret that does not belong on Kafka.
    """
    signature: bytes | str | None = None
    token: str | None = None
    if headers == STRUCTURED_HEADERS:
        return None, None
    for name, raw in headers:
        if name == "content-type":
            continue
        kind = name.lower()
        if kind in _REFUSED_HEADERS or (isinstance(raw, bytes) and holds_key(raw)):
            raise Unauthorized(
                FieldError(
                    "",
                    "the record contains a credential that every reader of the topic can use: revoke it",
                    f"no credential except {SIGNATURE_HEADER}, which is valid for this event only",
                )
            )
        if kind in {SIGNATURE_HEADER, JWT_HEADER}:
            if signature is not None or token is not None:
                problem = FieldError("", "the record has more than one signature or token", "one of them")
                raise Unauthorized(problem)
            if raw is None or len(raw) > _MOST_HEADER_BYTES:
                raise Unauthorized(FieldError("", f"the header {kind} cannot be read", _HOW))
            if kind == SIGNATURE_HEADER:
                signature = raw
            else:
                token = raw.decode("ascii", "replace") if isinstance(raw, bytes) else raw
    return signature, token


_REFUSED_HEADERS: Final = frozenset(
    {"authorization", "ce_authorization", "proxy-authorization", "x-api-key", "api-key"}
)


def _taken_at(record: Record, context: BatchContext) -> float:
    """Return when an event arrived: by the broker's clock if the topic uses it, which no publisher can set.

    The result does not depend on when or how often the event is read.
    """
    return record.timestamp_ms / 1000 if record.is_stamped else context.at


def _check_namespace(event: Event, admitted: Grant) -> None:
    """Check that the document names no namespace outside the event's grant.

    For a request that names only ids, the store checks the job or run itself.
    """
    data: Any = event.data
    if event.type == CANCEL_RUNS or event.type not in PERMISSIONS:
        return
    if "namespace" in data:
        named = data["namespace"]
    elif data.get("job_id") is not None and event.type != UPDATE:
        return
    else:
        named = admitted.namespace
    # A value that is not text is refused when the document is parsed.
    if isinstance(named, str) and admitted.within is not None and named not in admitted.within:
        places = ", ".join(sorted(admitted.within)[:20])
        raise Unauthorized(
            FieldError("/data/namespace", f"the event may not act in namespace {shown(named)}", places),
            admitted.principal,
        )


def _refuse_signature(why: str) -> NoReturn:
    raise Unauthorized(FieldError("", f"{SIGNATURE_HEADER}: {why}", _HOW)) from None


def _not_allowed(who: Principal, needed: Permission, place: str | None) -> Unauthorized:
    where = "any namespace" if place is None else f"namespace {place!r}"
    return Unauthorized(
        FieldError("", f"{who.name!r} may not do this in {where}", f"a credential with {needed}"), who
    )
