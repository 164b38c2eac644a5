"""What the claims of a token grant."""

import pytest

from noonmark.auth.claims import principal_of_claims
from noonmark.auth.errors import AuthenticationError
from noonmark.core.access.roles import Role


def principal(roles, claim="noonmark_roles", **more):
    return principal_of_claims({"sub": "u1", "noonmark_roles": roles, **more}, claim)


@pytest.mark.parametrize(
    ("roles", "grants", "platform"),
    [
        ({"billing": "editor"}, {"billing": Role.EDITOR}, False),
        ({"billing": "editor", "*": "viewer"}, {"billing": Role.EDITOR, "*": Role.VIEWER}, False),
        ({"billing": ["viewer", "admin", "operator"]}, {"billing": Role.ADMIN}, False),
        (["billing:editor", "*:viewer"], {"billing": Role.EDITOR, "*": Role.VIEWER}, False),
        (["billing:viewer", "billing:admin", "billing:operator"], {"billing": Role.ADMIN}, False),
        (["platform"], {}, True),
        ("platform", {}, True),
        ("billing:viewer", {"billing": Role.VIEWER}, False),
        ({"*": "platform"}, {}, True),
        ({"billing": "platform"}, {}, False),
        (["billing:platform"], {}, False),
        (
            ["billing", "admin", "billing:owner", "Billing:viewer", "a b:viewer", ":viewer", 7, None, {}],
            {},
            False,
        ),
        ({"billing": "EDITOR"}, {}, False),
        ({"billing": None, "x": 3, "y": {"a": 1}}, {}, False),
        (None, {}, False),
        (7, {}, False),
        (True, {}, False),
    ],
)
def test_roles_are_read_and_what_cannot_be_read_grants_nothing(roles, grants, platform):
    found = principal(roles)

    assert dict(found.grants) == grants
    assert found.platform is platform
    assert found.scopes is None


def test_without_the_claim_nothing_is_granted():
    assert principal_of_claims({"sub": "u1"}, "noonmark_roles").grants == {}


def test_dots_lead_into_nested_claims_unless_a_claim_has_them_in_its_name():
    nested = {"sub": "u1", "resource_access": {"noonmark": {"roles": ["a:viewer"]}}}
    flat = {"sub": "u1", "https://example.com/roles": ["b:viewer"]}

    assert dict(principal_of_claims(nested, "resource_access.noonmark.roles").grants) == {"a": Role.VIEWER}
    assert dict(principal_of_claims(flat, "https://example.com/roles").grants) == {"b": Role.VIEWER}
    assert principal_of_claims(nested, "resource_access.other.roles").grants == {}
    assert principal_of_claims({"sub": "u", "resource_access": "x"}, "resource_access.noonmark").grants == {}


def test_a_principal_is_known_by_its_subject_and_called_by_its_name():
    assert principal([], name="Ada").id == "oidc:u1"
    assert principal([], name="Ada").name == "Ada"
    assert principal([], preferred_username="ada").name == "ada"
    assert principal([], name=" ", email="ada@example.com").name == "ada@example.com"
    assert principal([], name=7).name == "u1"
    assert principal([], name="a\x1b[31mb\n" + "x" * 500).name == ("a [31mb " + "x" * 92)


@pytest.mark.parametrize("subject", [None, "", 7, "x" * 256, "a\nb", ["u"]])
def test_a_subject_that_cannot_be_told_from_others_is_refused(subject):
    with pytest.raises(AuthenticationError, match="subject"):
        principal_of_claims({"sub": subject}, "noonmark_roles")


def test_far_too_many_roles_are_refused():
    assert len(principal([f"n{n}:viewer" for n in range(1000)]).grants) == 1000
    with pytest.raises(AuthenticationError, match="more than 1000"):
        principal([f"n{n}:viewer" for n in range(1001)])
