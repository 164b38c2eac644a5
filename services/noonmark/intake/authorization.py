"""Who publishes an event and where it may act, decided before anything it asks for is looked at.

An event is let in by the signature of a publisher's key, by a token of the identity provider, or by its
topic, where Kafka decides who may write. A bad signature or token is never made up for by the topic.
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
)
from noonmark.intake.key_masking import holds_key
from noonmark.kafka.consumers.records import Headers, Record
from noonmark.schemas.events.envelope import Event
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
"""What each submission needs, as its route of the API does. A report on a run brings its own token."""

_HOW: Final = (
    f"a header {SIGNATURE_HEADER} made with a publisher's key, a header {JWT_HEADER}, or a topic that"
    " NOONMARK_BOUND_TOPICS binds to a namespace"
)
_MOST_HEADER_BYTES: Final = 16 * 1024


class Unauthorized(Refused):
    """The event may not do what it asks for. `principal` is who asked, where that is certain."""

    def __init__(self, problem: FieldError, principal: Principal | None = None) -> None:
        super().__init__([problem])
        self.principal = principal


class Grant(NamedTuple):
    """How far an event may go.

    Attributes:
        namespace: the one that its document means where it names none.
        within: the only namespaces that it may act in; None: all of them.
        scope: what its source and id are unique in; "" for events that may act everywhere.
        principal: who signed it; None where its topic or its token lets it in.
    """

    namespace: str
    within: frozenset[str] | None
    scope: str
    principal: Principal | None = None


@dataclass(frozen=True, slots=True)
class BatchContext:
    """How a batch was first read. It stays when the batch is checked again: time must not turn it bad.

    Attributes:
        at: Unix seconds, by the database's clock.
        tokens: whom the tokens name that were found valid.
    """

    at: float
    tokens: dict[str, Principal] = field(default_factory=dict, repr=False)


class CredentialStore(Protocol):
    """Knows keys and tokens, and remembers what it knows for less than 5 s: `noonmark.auth.Authenticator`."""

    def principal_of_key(self, key_id: str) -> Publisher | None:
        """Return whose key it is; None where it is no valid key that may sign."""

    def authenticate_jwt(self, token: str) -> Principal:
        """Return whom a token names, if it is valid now."""


_EVERYWHERE: Final = Grant("default", None, "")


class Authorizer:
    """Lets events in. Several threads may use it."""

    def __init__(self, bound: Mapping[str, str], authority: CredentialStore) -> None:
        """Make it.

        Args:
            bound: namespace of each topic whose events need no signature; `*` for all.
            authority: asked about keys and tokens.
        """
        self._bound = {
            topic: _EVERYWHERE if place == EVERYWHERE else Grant(place, frozenset({place}), place)
            for topic, place in bound.items()
        }
        self._authority = authority

    def authorize(self, record: Record, event: Event, context: BatchContext) -> Grant:
        """Let an event in.

        Args:
            record: as it was read.
            event: what it holds.
            context: of its batch.

        Raises:
            Unauthorised: it may not do what it asks for.
            psycopg.OperationalError: its key is not known and the database is away.
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
                raise Unauthorized(FieldError("", "nobody vouches for the event", _HOW))
            admitted = bound
        if admitted.within is not None:
            _check_namespace(event, admitted)
        return admitted

    def _signed(self, record: Record, event: Event, header: object, at: float) -> Grant:
        try:
            signature = Signature.read(header if isinstance(header, bytes | str) else None)
            publisher = self._authority.principal_of_key(signature.key_id)
            if publisher is None:
                _refuse_signature("its key is unknown, revoked, expired or no publisher's")
            signed = SignedEvent(event.source, event.id, event.type, event.sequence, record.value)
            if not signature.fits(publisher.signing_secret, signed):
                _refuse_signature("it does not fit: made with another key, or the event was altered since")
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
    """Return what an event needs. To say what a run sends, and where to, is to write a job."""
    if event.type == TRIGGER and isinstance(event.data, dict) and "payload" in event.data:
        return Permission.JOBS_WRITE
    return PERMISSIONS.get(event.type)


def _credentials(headers: Headers) -> tuple[bytes | str | None, str | None]:
    """Return the signature and the token of a record.

    Raises:
        Unauthorised: it has both or one twice, or carries a secret that has no place on Kafka.
    """
    signature: bytes | str | None = None
    token: str | None = None
    for name, raw in headers:
        if name == "content-type":
            continue
        kind = name.lower()
        if kind in _REFUSED_HEADERS or (isinstance(raw, bytes) and holds_key(raw)):
            raise Unauthorized(
                FieldError(
                    "",
                    "the record carries a credential that everybody who reads the topic can use: revoke it",
                    f"no credential but {SIGNATURE_HEADER}, which is worthless for any other event",
                )
            )
        if kind in {SIGNATURE_HEADER, JWT_HEADER}:
            if signature is not None or token is not None:
                raise Unauthorized(FieldError("", "the record has more than one signature or token", "one"))
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
    """Return when an event came: by the broker's clock where the topic has it, which no publisher can set.

    However long nothing reads the topic, and however often the event is read, that stays the same.
    """
    return record.timestamp_ms / 1000 if record.is_stamped else context.at


def _check_namespace(event: Event, admitted: Grant) -> None:
    """See that the document names no other namespace than the event may act in.

    Of an order by ids the store asks the job or run itself.
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
    # What is no text is refused by whoever reads the document.
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
