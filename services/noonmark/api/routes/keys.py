"""Routes of API keys, for admins of the namespaces that the keys have access to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

from fastapi import Body, Header, Path, Query, Response

from noonmark.api.http.cursors import DEFAULT_LIMIT, CursorText, Limit
from noonmark.api.http.problems import ProblemError
from noonmark.api.requests.routing import Caller, NamespaceParameter, needs, resource
from noonmark.auth.key_issuing import issue_key
from noonmark.core.access.roles import EVERYWHERE, Permission, Role
from noonmark.schemas.api.common import Page
from noonmark.schemas.api.keys import Key, KeyRequest, NewKey
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.schemas.problems.types import CONFLICT, FORBIDDEN, INVALID, MALFORMED, NOT_FOUND
from noonmark.store.access import api_keys
from noonmark.store.access.api_keys import KeyNotAllowedError, KeyRequestError, KeyRow, check_may_end

router = resource("keys")

KeyId = Annotated[str, Path(pattern="^[a-z0-9]{12}$", description="Id of the key.")]
_LISTING: Final = "keys"

NoIdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        deprecated=True,
        description="Refused: the response contains secrets, which cannot be stored for a repeat.",
    ),
]


@router.post("/keys", status_code=201)
def create(
    response: Response,
    body: Annotated[KeyRequest, Body()],
    idempotency_key: NoIdempotencyKey = None,
    caller: Caller = needs(Permission.KEYS_WRITE, "key.create"),
) -> NewKey:
    """Create a key. Only this response contains its token and signing key."""
    if idempotency_key is not None:
        raise ProblemError(
            MALFORMED,
            "Idempotency-Key is not supported here: the response contains secrets, which are not stored. "
            "Send the request without it; if you got no response, list the keys and revoke the new one",
        )
    wanted = api_keys.NewKey(
        name=body.name,
        grants={namespace: Role.named(role) for namespace, role in body.grants.items()},
        platform=body.platform,
        scopes=None if body.scopes is None else frozenset(body.scopes),
        rate_per_minute=body.rate_per_minute,
        lives_seconds=body.expires_in_seconds,
        signs=body.signs,
    )
    namespace, several = _namespaces_of(body.grants)
    try:
        api_keys.check_new_key(wanted)
        caller.request.scope["noonmark.namespace"] = namespace
        api_keys.check_may_make(caller.principal, wanted)
        with caller.changing(namespace) as act:
            act.namespaces = several
            made = issue_key(act.session.raw, caller.principal, wanted)
            act.object = f"key:{made.row.key_id}"
            act.after = _shown(made.row)
    except KeyRequestError as error:
        refused = Refused([FieldError.from_text(error.pointer, str(error))])
        raise ProblemError.of_refused(refused, INVALID) from None
    except KeyNotAllowedError as error:
        raise ProblemError(FORBIDDEN, str(error)) from None
    response.headers["Location"] = f"/v1/keys/{made.row.key_id}"
    signing_key = made.signing_key
    return NewKey(
        **made.row._asdict(),
        token=str(made.token),
        signing_key=None if signing_key is None else signing_key.text,
    )


@router.get("/keys", name="list")
def list_(
    namespace: NamespaceParameter = None,
    ended: Annotated[bool, Query(description="Include revoked and expired keys.")] = False,
    limit: Limit = DEFAULT_LIMIT,
    cursor: CursorText = None,
    caller: Caller = needs(Permission.KEYS_WRITE),
) -> Page[Key]:
    """List the keys with access to namespaces that the caller administers, sorted by id."""
    if namespace is not None:
        caller.require(namespace)
    filters = {"namespace": namespace, "ended": ended}
    after = caller.parts.cursors.read(_LISTING, filters, cursor)
    with caller.parts.database.reading(caller.principal.namespaces(Permission.KEYS_WRITE)) as session:
        rows = api_keys.list_keys(session.raw, namespace=namespace, ended=ended, limit=limit + 1, after=after)
    more = len(rows) > limit
    return Page[Key](
        items=[Key.model_validate(row) for row in rows[:limit]],
        next_cursor=caller.parts.cursors.make(_LISTING, filters, rows[limit - 1].key_id) if more else None,
    )


@router.get("/keys/{key_id}")
def read(key_id: KeyId, caller: Caller = needs(Permission.KEYS_WRITE)) -> Key:
    """Read a key, without its secrets."""
    return Key.model_validate(_found(caller, key_id))


@router.delete("/keys/{key_id}", status_code=204)
def revoke(key_id: KeyId, caller: Caller = needs(Permission.KEYS_WRITE, "key.revoke")) -> Response:
    """Revoke a key permanently: every process refuses it within 5 s."""
    row = _found(caller, key_id)
    namespace, several = _namespaces_of(row.grants)
    caller.request.scope.update({"noonmark.namespace": namespace, "noonmark.object": f"key:{key_id}"})
    try:
        check_may_end(caller.principal, row.grants, platform=row.platform)
    except KeyNotAllowedError as error:
        raise ProblemError(FORBIDDEN, str(error)) from None
    with caller.changing(namespace) as act:
        act.namespaces = several
        act.object = f"key:{key_id}"
        act.before = _shown(row)
        if not api_keys.revoke_key(act.session.raw, key_id):
            raise ProblemError(CONFLICT, f"key {key_id} is revoked already")
    return Response(status_code=204)


def _found(caller: Caller, key_id: str) -> KeyRow:
    """Read a key in namespaces that the caller administers; other keys are reported as not found."""
    with caller.parts.database.reading(caller.principal.namespaces(Permission.KEYS_WRITE)) as session:
        row = api_keys.find_key(session.raw, key_id)
    if row is None:
        raise ProblemError(NOT_FOUND, f"there is no key {key_id}")
    return row


def _namespaces_of(grants: Iterable[str]) -> tuple[str | None, list[str]]:
    """Return the only namespace of a key, or its several namespaces; neither for the whole installation."""
    namespaces = sorted(grants)
    if not namespaces or EVERYWHERE in namespaces:
        return None, []
    return (namespaces[0], []) if len(namespaces) == 1 else (None, namespaces)


def _shown(row: KeyRow) -> dict[str, Any]:
    return Key.model_validate(row).model_dump(mode="json")
