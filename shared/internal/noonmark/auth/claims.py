"""Converts the claims of an identity provider's token to a principal with its grants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from noonmark.auth.errors import AuthenticationError, AuthenticationReason
from noonmark.core.access.roles import EVERYWHERE, Principal, Role
from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN

PLATFORM: Final = "platform"
"""The value that grants the platform admin role."""

_MOST: Final = 1000
_LONGEST_SUBJECT: Final = 255
_LONGEST_NAME: Final = 100
_NAMES: Final = ("name", "preferred_username", "email")
_NAMESPACE: Final = re.compile(NAMESPACE_PATTERN)
_ROLES: Final = {role.label: role for role in Role}


def principal_of_claims(claims: Mapping[str, Any], roles_claim: str) -> Principal:
    """Return the principal of verified claims.

    The roles claim is an object from namespace to role, or a list of `namespace:role`. `*` means every
    namespace, and `platform` alone grants the platform admin role. Other values are ignored, because such
    claims often contain roles of other applications.

    Args:
        claims: claims of a token whose signature and times are verified.
        roles_claim: name of a claim, or a path of names with dots.

    Raises:
        AuthenticationError: there is no usable subject, or there are too many roles.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT or not subject.isprintable():
        raise _refused("its subject is missing or too long")
    given = _claim(claims, roles_claim)
    if isinstance(given, list | dict) and len(given) > _MOST:
        raise _refused(f"it names more than {_MOST} roles")
    platform, grants = False, dict[str, Role]()
    for place, role in _pairs(given):
        if role == PLATFORM and place == EVERYWHERE:
            platform = True
        elif role in _ROLES and (place == EVERYWHERE or _NAMESPACE.fullmatch(place)):
            grants[place] = max(_ROLES[role], grants.get(place, Role.VIEWER))
    return Principal(id=f"oidc:{subject}", name=_name(claims, subject), grants=grants, platform=platform)


def _pairs(given: object) -> Iterator[tuple[str, str]]:
    """Yield the namespaces and roles in a claim."""
    if isinstance(given, Mapping):
        for place, role in given.items():
            for one in role if isinstance(role, list) else [role]:
                yield str(place), str(one)
        return
    listed: Iterable[object] = given if isinstance(given, list) else [given]
    for item in listed:
        if not isinstance(item, str):
            continue
        place, colon, role = item.partition(":")
        if colon:
            yield place, role
        elif place == PLATFORM:
            yield EVERYWHERE, PLATFORM


def _claim(claims: Mapping[str, Any], path: str) -> object:
    if path in claims:
        return claims[path]
    found: object = claims
    for name in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found


def _name(claims: Mapping[str, Any], subject: str) -> str:
    names = (claims.get(name) for name in _NAMES)
    found = next((name for name in names if isinstance(name, str) and name.strip()), subject)
    return "".join(c if c.isprintable() else " " for c in found[:_LONGEST_NAME])


def _refused(why: str) -> AuthenticationError:
    return AuthenticationError(
        AuthenticationReason.TOKEN_REFUSED,
        f"the token is not accepted: {why}",
        "let the identity provider issue it as docs/security.md says",
    )
