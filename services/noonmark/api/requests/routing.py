"""The start of every route: the caller, the required permission, and the transaction.

A route declares its permission with `needs`; a route without it cannot be created. Actions on an object are
authorised against the namespace of the object, not of the path.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Annotated, Any, Final, get_origin

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.responses import Response

from noonmark.api.backend.context import ApiContext
from noonmark.api.backend.database import Session
from noonmark.api.backend.request_slots import TooManyRequestsError
from noonmark.api.http.parameter_errors import ParameterError
from noonmark.api.http.problems import ProblemError
from noonmark.core.access.roles import ROLE_FOR, Permission, Principal
from noonmark.schemas.api.common import Problem
from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN
from noonmark.schemas.problems.refusal import printable
from noonmark.schemas.problems.screening import MAX_DEPTH, parse_json
from noonmark.schemas.problems.suggestions import suggestion
from noonmark.schemas.problems.types import FORBIDDEN, NOT_FOUND, TOO_MANY_REQUESTS
from noonmark.store.access.audit import AuditEntry, Outcome, write_entries

DEFAULT_NAMESPACE: Final = "default"
_NO_PARAMETERS: Final[Mapping[str, bool]] = MappingProxyType({})
_NAMESPACE: Final = re.compile(NAMESPACE_PATTERN)
_RETRY_SECONDS: Final = "5"
LONGEST_KEY: Final = 200
"""Most characters of an idempotency key."""

NamespaceParameter = Annotated[
    str | None,
    Query(
        alias="namespace",
        pattern=NAMESPACE_PATTERN,
        description="Default: the credential's only namespace, otherwise `default`.",
    ),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=LONGEST_KEY,
        description="A repeat of the request with the same key gets the same response and changes nothing "
        "again.",
    ),
]


@dataclass(slots=True)
class AuditedChange:
    """One change: its transaction, and the content of its audit entry.

    Attributes:
        session: the transaction of the change.
        object: the changed object, such as `job:<id>`; can be set later.
        before: the object before the change; JSON values without secrets.
        after: the object after the change.
        namespaces: namespaces that get an audit entry each, if there are several.
    """

    session: Session
    object: str | None = None
    before: Any = None
    after: Any = None
    namespaces: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a route.

    Attributes:
        principal: the authenticated principal.
        permission: the permission that the route requires.
        action: name of the route's action in the audit log, such as `job.pause`.
        request_id: id of the request in the response, the logs and the audit log.
        address: address of the client.
        parts: shared parts of the process.
    """

    principal: Principal
    permission: Permission | None
    action: str
    request_id: str
    address: str | None
    parts: ApiContext
    request: Request

    def namespace(self, named: str | None) -> str:
        """Return the namespace of a request, after the caller is authorised for it.

        Raises:
            ProblemError: if the caller lacks the permission.
        """
        namespace = named or self.principal.home or DEFAULT_NAMESPACE
        self.require(namespace)
        return namespace

    def require(self, namespace: str, permission: Permission | None = None) -> None:
        """Check that the caller has a permission in a namespace.

        Args:
            namespace: namespace of the object.
            permission: the required permission; None: the one of the route.

        Raises:
            ProblemError: if the caller lacks it: 404 if it has no role in the namespace, so that it does not
                learn which objects exist there; otherwise 403.
        """
        if (problem := self.denial(namespace, permission)) is not None:
            self.request.scope["noonmark.namespace"] = namespace
            raise problem

    def denial(self, namespace: str, permission: Permission | None = None) -> ProblemError | None:
        """Return the problem that `require` raises; None if the caller has the permission."""
        wanted = permission or self.permission
        if wanted is None or self.principal.may(wanted, namespace):
            return None
        if self.principal.role_in(namespace) is None:
            return ProblemError(NOT_FOUND, f"there is no namespace {namespace!r}")
        return ProblemError(FORBIDDEN, _needed(wanted, namespace, self.principal))

    def may(self, permission: Permission, namespace: str) -> bool:
        """Return whether the caller has another permission in a namespace."""
        return self.principal.may(permission, namespace)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Open a read-only transaction on all namespaces in which the caller has a role."""
        with self.parts.database.reading(self.visible) as session:
            yield session

    @contextmanager
    def changing(self, namespace: str | None) -> Iterator[AuditedChange]:
        """Open the transaction of a change in a namespace; None: in the installation.

        The caller is authorised first. If the block succeeds, the audit entry commits with the change. If it
        raises, everything is rolled back, and the entry about the failure is written separately.

        Raises:
            ProblemError: if the caller lacks the permission.
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
            namespaces = act.namespaces or (namespace,)
            write_entries(session.raw, [self.entry(one, Outcome.DONE, act=act) for one in namespaces])
        self.request.scope["noonmark.audited"] = True

    def entry(
        self,
        namespace: str | None,
        outcome: Outcome,
        *,
        act: AuditedChange | None = None,
        reason: str | None = None,
    ) -> AuditEntry:
        """Create an audit entry of this request."""
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
        """Namespaces in which the caller has a role; None: all."""
        return self.principal.visible


def named_namespace(document: Mapping[str, Any]) -> str | None:
    """Return the namespace that a job document names; None if it names none, or an invalid one.

    The parser of the document refuses an invalid name later; until then it must not be used.
    """
    named = document.get("namespace")
    return named if isinstance(named, str) and _NAMESPACE.fullmatch(named) else None


def _needed(permission: Permission, namespace: str, principal: Principal) -> str:
    if principal.scopes is not None and permission not in principal.scopes:
        return f"the credential's scopes do not include {permission}"
    least = ROLE_FOR.get(permission)
    if least is None:
        return "only a platform admin can do this"
    role = principal.role_in(namespace)
    has = role.label if role else "none"
    return (
        f"{permission} in namespace {namespace!r} requires the role {least.label}; the credential has {has}"
    )


class Needs:
    """The dependency that declares what a route requires; tests read it from the routes.

    Attributes:
        permission: the required permission; None: any valid credential.
        action: name of the action in the audit log; "" for routes that change nothing.
        reads: True if the route changes nothing although its method is POST.
    """

    def __init__(self, permission: Permission | None, action: str, *, reads: bool) -> None:
        self.permission = permission
        self.action = action
        self.reads = reads

    async def __call__(self, request: Request) -> Caller:
        """Return the caller of a request, as a dependency."""
        return self.authorize(request)

    def authorize(self, request: Request) -> Caller:
        """Authorise the request as far as possible without the object: some namespace must allow it."""
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
            named = principal.home or DEFAULT_NAMESPACE
            raise ProblemError(FORBIDDEN, _needed(self.permission, named, principal))
        # Raise the problem that the guard found only here, where the caller of the failed change is known.
        unfit: ProblemError | None = scope.get("noonmark.unfit")
        if unfit is not None:
            raise unfit
        return caller


def needs(permission: Permission | None, action: str = "", *, reads: bool = False) -> Any:
    """Declare the caller parameter of a route, as its default value.

    Args:
        permission: the required permission; None: any valid credential.
        action: name in the audit log, such as `job.pause`; only for routes that change something.
        reads: True for a POST that changes nothing.
    """
    return Depends(Needs(permission, action, reads=reads))


def needs_of(route: APIRoute) -> Needs | None:
    """Return the declared requirement of a route."""
    for dependency in route.dependant.dependencies:
        if isinstance(dependency.call, Needs):
            return dependency.call
    return None


_PROBLEM: Final[dict[str, Any]] = {
    "model": Problem,
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    "4XX": {**_PROBLEM, "description": "Error of the request: a problem document."},
    "5XX": {**_PROBLEM, "description": "Error of the server, or it is busy: a problem document."},
}
"""Error responses of every route."""


class Route(APIRoute):
    """A route that must declare what it requires."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        # First: without permission, the caller must not learn what is wrong with the body.
        self.dependant.dependencies.sort(key=lambda needed: not isinstance(needed.call, Needs))
        found = needs_of(self)
        if found is None:
            raise TypeError(f"route {path} declares no permission: give it a parameter `needs(...)`")
        if bool(found.action) is (found.reads or set(self.methods or ()) <= {"GET", "HEAD"}):
            raise TypeError(
                f"route {path}: routes that change something need an action, others must have none"
            )

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the route, which authorises first; FastAPI would read the body first."""
        serve, need = super().get_route_handler(), needs_of(self)
        assert need is not None
        known = dict(sorted(_query_parameters(self.dependant)))
        uses_a_thread = not iscoroutinefunction(self.endpoint)

        async def handle(request: Request) -> Response:
            caller = await need(request)
            check_query(request, known)
            screened = _ScreenedRequest(request.scope, request.receive)
            if not uses_a_thread:
                return await serve(screened)
            async with _slot(caller):
                return await serve(screened)

        return handle


@asynccontextmanager
async def _slot(caller: Caller) -> AsyncIterator[None]:
    """Hold one of the credential's slots for threads and connections."""
    try:
        async with caller.parts.slots.slot(caller.principal.id):
            yield
    except TooManyRequestsError as error:
        # Like one that exceeds its rate, it is not audited: that would use up what it was refused for.
        caller.request.scope["noonmark.audited"] = True
        detail = f"{error}; wait {_RETRY_SECONDS} s"
        raise ProblemError(TOO_MANY_REQUESTS, detail, headers={"Retry-After": _RETRY_SECONDS}) from None


def _query_parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """Yield the query parameters of a route and of its dependencies, and whether each can be repeated."""
    for field in dependant.query_params:
        yield field.alias, get_origin(field.field_info.annotation) is list
    for needed in dependant.dependencies:
        yield from _query_parameters(needed)


def check_query(request: Request, known: Mapping[str, bool] = _NO_PARAMETERS) -> None:
    """Refuse query parameters that a route does not have, and several values where it takes one.

    A misspelt or misplaced filter, namespace or `dry_run` must not be ignored.

    Args:
        request: the request.
        known: the parameters of the route, and whether each can be repeated.

    Raises:
        ProblemError: if a parameter is unknown, or repeated.
    """
    given = (
        Counter(name for name, _ in request.query_params.multi_items())
        if request.scope["query_string"]
        else {}
    )
    for name, count in given.items():
        if count > 1 and known.get(name) is False:
            raise ProblemError.of_parameter(
                ParameterError("", f"query parameter {name} is given {count} times", "the parameter once")
            )
        if name not in known:
            expected = f"one of {', '.join(known)}" if known else "no query parameters"
            problem = f"unknown query parameter {printable(name[:100])!r}{suggestion(name, known)}"
            raise ProblemError.of_parameter(ParameterError("", problem, expected))


class _ScreenedRequest(Request):
    """Screens bodies before the framework reads them."""

    async def json(self) -> Any:
        """Read the body.

        Raises:
            Refused: if it contains a value that cannot be stored.
        """
        return parse_json(await self.body(), max_depth=MAX_DEPTH)


def resource(tag: str, *, prefix: str = "/v1") -> APIRouter:
    """Create the router of one resource."""
    return APIRouter(prefix=prefix, tags=[tag], route_class=Route, responses=PROBLEMS)
