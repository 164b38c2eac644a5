"""What every route begins with: who calls, what the route needs, and the transaction it works in.

A route states its permission with `needs`; a router that holds one without it is refused when it is made.
Acts on an object are authorised against the namespace of the object, not of the path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.responses import Response

from noonmark.api.backend.context import ApiContext
from noonmark.api.backend.database import Session
from noonmark.api.http.problems import ProblemError
from noonmark.core.access.roles import ROLE_FOR, Permission, Principal
from noonmark.schemas.api.common import Problem
from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN
from noonmark.schemas.problems.refusal import printable, suggestion
from noonmark.schemas.problems.screening import MAX_DEPTH, parse_json
from noonmark.schemas.problems.types import FORBIDDEN, MALFORMED, NOT_FOUND
from noonmark.store.access.audit import AuditEntry, Outcome, write_entries

DEFAULT_NAMESPACE: Final = "default"
_NAMESPACE: Final = re.compile(NAMESPACE_PATTERN)
LONGEST_KEY: Final = 200
"""Characters of an idempotency key."""

NamespaceParameter = Annotated[
    str | None,
    Query(
        alias="namespace",
        pattern=NAMESPACE_PATTERN,
        description="Default: the credential's only namespace, else `default`.",
    ),
]
IfMatch = Annotated[
    str | None, Header(max_length=1000, description="The change is made only if this is the object's ETag.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=LONGEST_KEY,
        description="The same key with the same request gets the same answer and changes nothing again.",
    ),
]


@dataclass(slots=True)
class AuditedChange:
    """One change: its transaction, and what its audit entry is to tell.

    Attributes:
        session: the transaction.
        object: what is changed, as `job:<id>`; may be set as soon as it is known.
        before: the object as it was; JSON values without secrets.
        after: as it is now.
        places: namespaces whose logs are told of it, where these are several.
    """

    session: Session
    object: str | None = None
    before: Any = None
    after: Any = None
    places: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls a route, and what for.

    Attributes:
        principal: who was authenticated.
        permission: what the route needs.
        action: name of the act in the audit log: the route's own, such as `job.pause`.
        request_id: told to the caller and kept in log and audit.
        address: where the request came from.
        parts: of the process.
    """

    principal: Principal
    permission: Permission | None
    action: str
    request_id: str
    address: str | None
    parts: ApiContext
    request: Request

    def namespace(self, named: str | None) -> str:
        """Return the namespace a request means, once it is sure that the caller may act in it.

        Raises:
            ProblemError: it may not.
        """
        namespace = named or self.principal.home or DEFAULT_NAMESPACE
        self.require(namespace)
        return namespace

    def require(self, namespace: str, permission: Permission | None = None) -> None:
        """Make sure that the caller may do this in a namespace.

        Args:
            namespace: of the object.
            permission: instead of the route's own.

        Raises:
            ProblemError: 404 for a stranger to the namespace, who is not to learn what is there; else 403.
        """
        wanted = permission or self.permission
        if wanted is None or self.principal.may(wanted, namespace):
            return
        self.request.scope["noonmark.namespace"] = namespace
        if self.principal.role_in(namespace) is None:
            raise ProblemError(NOT_FOUND, f"there is no namespace {namespace!r}")
        raise ProblemError(FORBIDDEN, _needed(wanted, namespace, self.principal))

    def may(self, permission: Permission, namespace: str) -> bool:
        """Tell whether the caller may do something else than the route is for."""
        return self.principal.may(permission, namespace)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Open a read-only transaction on all namespaces the caller has any role in."""
        with self.parts.database.reading(self.visible) as session:
            yield session

    @contextmanager
    def changing(self, namespace: str | None) -> Iterator[AuditedChange]:
        """Open the transaction of a change in a namespace; None: of the installation.

        The caller is authorised for it first. If the block ends well, its audit entry commits with the
        change; if it raises, all is rolled back, and the entry about the failure is written by itself.

        Raises:
            ProblemError: the caller may not act there.
        """
        if namespace is not None:
            self.require(namespace)
        self.request.scope["noonmark.namespace"] = namespace
        scope = None if namespace is None else (namespace,)
        with self.parts.database.changing(scope) as session:
            act = AuditedChange(session)
            try:
                yield act
            except BaseException:
                self.request.scope["noonmark.object"] = act.object
                raise
            places = act.places or (namespace,)
            write_entries(session.raw, [self.entry(place, Outcome.DONE, act=act) for place in places])
        self.request.scope["noonmark.audited"] = True

    def entry(
        self,
        namespace: str | None,
        outcome: Outcome,
        *,
        act: AuditedChange | None = None,
        reason: str | None = None,
    ) -> AuditEntry:
        """Make an audit entry of this request."""
        return AuditEntry(
            actor=self.principal.id,
            actor_name=self.principal.name,
            action=self.action,
            namespace=namespace,
            object=act.object if act else self.request.scope.get("noonmark.object"),
            outcome=outcome,
            reason=reason,
            before=act.before if act else None,
            after=act.after if act else None,
            request_id=self.request_id,
            address=self.address,
        )

    @property
    def visible(self) -> frozenset[str] | None:
        """Namespaces the caller has any role in; None: all."""
        return self.principal.visible


def named_namespace(document: Mapping[str, Any]) -> str | None:
    """Return the namespace that a job document names; None where it names none, or what cannot be one.

    Whoever reads the document refuses what cannot be one: before that it must not become part of anything.
    """
    named = document.get("namespace")
    return named if isinstance(named, str) and _NAMESPACE.fullmatch(named) else None


def _needed(permission: Permission, namespace: str, principal: Principal) -> str:
    if principal.scopes is not None and permission not in principal.scopes:
        return f"the credential's scopes do not include {permission}"
    least = ROLE_FOR.get(permission)
    if least is None:
        return "only a platform admin may do this"
    role = principal.role_in(namespace)
    has = role.label if role else "none"
    return f"{permission} in namespace {namespace!r} needs the role {least.label}; the credential has {has}"


class Needs:
    """The dependency by which a route states what it needs; tests read it off the routes.

    Attributes:
        permission: None: any valid credential.
        action: name of the act in the audit log; "" for routes that change nothing.
        reads: the route changes nothing, although its method is POST.
    """

    def __init__(self, permission: Permission | None, action: str, *, reads: bool) -> None:
        self.permission = permission
        self.action = action
        self.reads = reads

    async def __call__(self, request: Request) -> Caller:
        """Authorise the request as far as the path alone tells: in some namespace it must be allowed."""
        scope = request.scope
        known: Caller | None = scope.get("noonmark.caller")
        if known is not None:
            return known
        scope["noonmark.action"] = self.action
        principal: Principal = scope["noonmark.principal"]
        caller = Caller(
            principal,
            self.permission,
            self.action,
            scope["noonmark.request_id"],
            request.client.host if request.client else None,
            request.app.state.parts,
            request,
        )
        scope["noonmark.caller"] = caller
        if self.permission is not None and not principal.may(self.permission):
            scope["noonmark.namespace"] = principal.home
            place = principal.home or DEFAULT_NAMESPACE
            raise ProblemError(FORBIDDEN, _needed(self.permission, place, principal))
        # What the gate found unfit is told here: by now it is known whose change it is that failed.
        unfit: ProblemError | None = scope.get("noonmark.unfit")
        if unfit is not None:
            raise unfit
        return caller


def needs(permission: Permission | None, action: str = "", *, reads: bool = False) -> Any:
    """Declare the `Caller` of a route, as the default of its parameter.

    Args:
        permission: what the route needs; None: any valid credential.
        action: of a route that changes something: its name in the audit log, such as `job.pause`.
        reads: of a POST that changes nothing.
    """
    return Depends(Needs(permission, action, reads=reads))


def needs_of(route: APIRoute) -> Needs | None:
    """Return what a route states that it needs."""
    for dependency in route.dependant.dependencies:
        if isinstance(dependency.call, Needs):
            return dependency.call
    return None


_PROBLEM: Final[dict[str, Any]] = {
    "model": Problem,
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    "4XX": {**_PROBLEM, "description": "The request is at fault: a problem document."},
    "5XX": {**_PROBLEM, "description": "The server is at fault, or busy: a problem document."},
}
"""Answers of every route beside its own."""


class Route(APIRoute):
    """A route that cannot be made without stating what it needs."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        # First of all: who may not call the route is not told what is wrong with the body either.
        self.dependant.dependencies.sort(key=lambda needed: not isinstance(needed.call, Needs))
        found = needs_of(self)
        if found is None:
            raise TypeError(f"route {path} does not say what it needs: give it a parameter `needs(...)`")
        if bool(found.action) is (found.reads or set(self.methods or ()) <= {"GET", "HEAD"}):
            raise TypeError(f"route {path}: exactly the routes that change something name an action")

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what serves the route: the framework reads a body before it asks what the route needs."""
        serve, need = super().get_route_handler(), needs_of(self)
        assert need is not None
        known = sorted(_query_names(self.dependant))

        async def handle(request: Request) -> Response:
            await need(request)
            check_query(request, known)
            return await serve(_ScreenedRequest(request.scope, request.receive))

        return handle


def _query_names(dependant: Dependant) -> Iterator[str]:
    """Yield the query parameters of a route, those of its dependencies included."""
    yield from (field.alias for field in dependant.query_params)
    for needed in dependant.dependencies:
        yield from _query_names(needed)


def check_query(request: Request, known: Sequence[str] = ()) -> None:
    """Refuse a query parameter that a route does not take.

    A filter, namespace or `dry_run` that is misspelt or out of place must not be as if it were not there.

    Raises:
        ProblemError: there is one.
    """
    for name in request.query_params if request.scope["query_string"] else ():
        if name not in known:
            takes = ", ".join(known) or "none"
            told = f"there is no query parameter {printable(name[:100])!r}{suggestion(name, known)}"
            raise ProblemError(MALFORMED, f"{told}; this route takes {takes}")


class _ScreenedRequest(Request):
    """Gives the framework bodies that hold nothing unfit to store."""

    async def json(self) -> Any:
        """Read the body.

        Raises:
            Refused: with the pointer of what is unfit.
        """
        return parse_json(await self.body(), max_depth=MAX_DEPTH)


def resource(tag: str, *, prefix: str = "/v1") -> APIRouter:
    """Make the router of one resource."""
    return APIRouter(prefix=prefix, tags=[tag], route_class=Route, responses=PROBLEMS)
