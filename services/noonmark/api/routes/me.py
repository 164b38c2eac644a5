"""Route of the caller's own principal."""

from __future__ import annotations

from noonmark.api.requests.routing import Caller, needs, resource
from noonmark.core.access.roles import Permission
from noonmark.schemas.api.me import Me

router = resource("me")


@router.get("/me")
def read(caller: Caller = needs(None)) -> Me:
    """Read the principal of the credential, with its permissions."""
    principal = caller.principal
    rate = principal.rate_per_minute
    return Me(
        id=principal.id,
        name=principal.name,
        platform=principal.platform,
        grants={namespace: role.label for namespace, role in sorted(principal.grants.items())},
        scopes=None if principal.scopes is None else sorted(principal.scopes),
        permissions={
            namespace: [permission.value for permission in Permission if principal.may(permission, namespace)]
            for namespace in (["*"] if principal.platform else sorted(principal.grants))
        },
        home=principal.home,
        rate_per_minute=caller.parts.settings.api_rate_per_minute if rate is None else rate,
    )
