"""Tokens of a real Keycloak, set up as docs/security.md says, against a running API."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from tests.support.cluster import Cluster
from tests.support.doc_blocks import blocks_of
from tests.support.keycloak import Keycloak, running_keycloak
from tests.support.kube import eventually
from tests.support.stack import Postgres

from noonmark.auth.errors import AuthenticationError, AuthenticationReason
from noonmark.auth.oidc import TokenVerifier
from noonmark.core.access.roles import Role
from noonmark.settings import Settings

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(600)]

PAGE: Final = Path(__file__).parents[2] / "docs" / "security.md"
AUDIENCE: Final = "noonmark"
PASSWORD: Final = "correct horse battery"
SIGNED: Final = ("RS256", "PS256", "ES256", "EdDSA", "RS512", "ES384")
ACCEPTED: Final = SIGNED[:4]
LIVES_SECONDS: Final = 2
"""Life of the tokens of the client `brief`."""

SENDERS: Final = itertools.count()
ROLES: Final = {"*:viewer", "billing:editor"}


def documents(text: str) -> list[dict[str, Any]]:
    """The JSON blocks of the page that have a text."""
    return [json.loads(block.code) for block in blocks_of(PAGE, "json") if text in block.code]


@pytest.fixture(scope="module")
def keycloak(tmp_path_factory: pytest.TempPathFactory, report: list[str]) -> Iterator[Keycloak]:
    began = time.monotonic()
    with running_keycloak(tmp_path_factory.mktemp("keycloak")) as found:
        report.append(f"Keycloak: answered after {time.monotonic() - began:.0f} s")
        for realm in ("main", "other"):
            set_up(found, realm)
        yield found


def set_up(keycloak: Keycloak, realm: str) -> None:
    """Create a realm with what the page shows, and clients that do it wrong."""
    keycloak.admin("POST", "", {"realm": realm, "enabled": True})
    (shown,) = documents('"ifResourceExists"')
    keycloak.admin("POST", f"/{realm}/partialImport", shown)
    roles = shown["roles"]["client"][AUDIENCE]
    assert {"platform", *ROLES} == {role["name"] for role in roles}
    (mapper,) = documents('"oidc-audience-mapper"')

    job = keycloak.id_of_client(realm, "billing-ci")
    keycloak.change(realm, "clients", job, secret="billing-ci")
    for role in ROLES:
        keycloak.give_role(realm, "service-account-billing-ci", AUDIENCE, role)
    for name in SIGNED:
        attributes = {"access.token.signed.response.alg": name}
        keycloak.add_client(realm, name, attributes=attributes, protocolMappers=[mapper])
    life = {"access.token.lifespan": str(LIVES_SECONDS)}
    keycloak.add_client(realm, "brief", attributes=life, protocolMappers=[mapper])
    keycloak.add_client(realm, "without-audience")
    keycloak.add_client(realm, "terminal", publicClient=True, directAccessGrantsEnabled=True)
    person = {"username": "ada", "firstName": "Ada", "lastName": "Lovelace", "email": "ada@example.com"}
    secret = {"type": "password", "value": PASSWORD, "temporary": False}
    keycloak.admin("POST", f"/{realm}/users", {**person, "enabled": True, "credentials": [secret]})
    keycloak.give_role(realm, "ada", AUDIENCE, "platform")


@dataclass(frozen=True, slots=True)
class Api:
    """A running API that accepts tokens of the realm `main`."""

    url: str
    settings: Settings

    def ask(self, token: str, path: str = "/v1/me") -> httpx.Response:
        """Send a request with a token, each from another address: too many refusals of one are refused."""
        headers = {"authorization": f"Bearer {token}", "x-forwarded-for": f"198.51.100.{next(SENDERS) % 250}"}
        return httpx.get(f"{self.url}{path}", headers=headers, trust_env=False, timeout=30)

    def refusal(self, token: str) -> str:
        """Return what a refused token is answered with."""
        answer = self.ask(token)
        assert answer.status_code == 401, answer.text
        assert token not in answer.text
        return str(answer.json()["detail"])

    def principal(self, token: str) -> dict[str, Any]:
        """Return what the API says about a token that it accepts."""
        answer = self.ask(token)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


@pytest.fixture(scope="module")
def signed(keycloak: Keycloak) -> dict[str, str]:
    """A token for each algorithm: Keycloak creates a key at its first use, before the API fetches the keys."""
    return {name: keycloak.token("main", name, client_secret=name)["access_token"] for name in SIGNED}


@pytest.fixture(scope="module")
def api(
    keycloak: Keycloak,
    signed: dict[str, str],
    postgres_server: Postgres,
    template_database: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Api]:
    """An API without Kafka, which its answers here do not need."""
    name = "keycloak"
    postgres_server.copy(template_database, name)
    given = {"oidc_issuer": keycloak.issuer("main"), "oidc_audience": AUDIENCE}
    given["oidc_roles_claim"] = f"resource_access.{AUDIENCE}.roles"
    folder = tmp_path_factory.mktemp("api")
    running = Cluster(postgres_server.url_of(name), "127.0.0.1:1", "keycloak", folder)
    try:
        node = running.launch("api", api_port="0", api_trusted_proxies="127.0.0.0/8", **given)
        eventually("the API listens", lambda: node.logged("api_listening"), seconds=120)
        yield Api(node.api_url, Settings(**given))
    finally:
        running.close()
        postgres_server.drop(name)


@pytest.fixture(scope="module")
def short(keycloak: Keycloak, api: Api) -> str:
    """A token that expires while the other tests run."""
    return str(keycloak.token("main", "brief", client_secret="brief")["access_token"])


def service_token(keycloak: Keycloak, realm: str = "main") -> str:
    return str(keycloak.token(realm, "billing-ci", client_secret="billing-ci")["access_token"])


def user_token(keycloak: Keycloak, kind: str = "access_token") -> str:
    return str(keycloak.token("main", "terminal", username="ada", password=PASSWORD)[kind])


def test_a_token_is_accepted_in_its_life(api, short):
    assert api.principal(short)["name"] == "service-account-brief"


def test_a_service_gets_the_roles_of_the_client(keycloak, api):
    token = service_token(keycloak)
    found = api.principal(token)

    assert found["id"].startswith("oidc:")
    assert found["name"] == "service-account-billing-ci"
    assert (found["grants"], found["platform"]) == ({"*": "viewer", "billing": "editor"}, False)
    assert api.ask(token, "/v1/jobs?namespace=billing").status_code in {200, 404}
    assert api.ask(token, "/v1/keys").status_code == 403


def test_a_user_gets_them_with_the_name_of_a_person(keycloak, api):
    found = api.principal(user_token(keycloak))

    assert (found["name"], found["platform"], found["grants"]) == ("Ada Lovelace", True, {})


@pytest.mark.parametrize("name", ACCEPTED)
def test_signatures_that_the_page_names_are_accepted(api, signed, name):
    found = api.principal(signed[name])

    assert (found["name"], found["grants"]) == (f"service-account-{name.lower()}", {})


@pytest.mark.parametrize("name", sorted({*SIGNED} - {*ACCEPTED}))
def test_other_signatures_are_refused_with_those_that_are_accepted(api, signed, name):
    assert "it is not signed with ES256, EdDSA, PS256, RS256" in api.refusal(signed[name])


def test_a_refresh_token_is_no_access_token(keycloak, api):
    assert "is not accepted" in api.refusal(user_token(keycloak, "refresh_token"))


def test_the_token_of_another_realm_is_refused(keycloak, api):
    detail = api.refusal(service_token(keycloak, "other"))

    assert "it is from another issuer" in detail
    assert f"`iss` is {keycloak.issuer('main')} and whose `aud` contains {AUDIENCE}" in detail


def test_a_token_for_another_audience_is_refused(keycloak, api):
    token = keycloak.token("main", "without-audience", client_secret="without-audience")["access_token"]
    detail = api.refusal(token)

    assert "it is for another audience" in detail
    assert f"whose `aud` contains {AUDIENCE}" in detail


def test_roles_can_be_those_of_the_realm(keycloak, api):
    """As `realm_access.roles`, next to Keycloak's own."""
    keycloak.admin("POST", "/main/roles", {"name": "payroll:operator"})
    role = keycloak.admin("GET", "/main/roles/payroll:operator")
    (user,) = keycloak.admin("GET", "/main/users?exact=true&username=service-account-billing-ci")
    keycloak.admin("POST", f"/main/users/{user['id']}/role-mappings/realm", [role])
    verifier = TokenVerifier.of(api.settings.model_copy(update={"oidc_roles_claim": "realm_access.roles"}))

    assert dict(verifier.principal(service_token(keycloak)).grants) == {"payroll": Role.OPERATOR}


@pytest.mark.parametrize("kind", ["users", "clients"])
def test_who_is_disabled_gets_no_new_token_and_the_old_one_lives_to_its_end(keycloak, api, kind):
    if kind == "users":
        token = user_token(keycloak)
        (found,) = keycloak.admin("GET", "/main/users?exact=true&username=ada")
        key, asked = found["id"], {"client": "terminal", "username": "ada", "password": PASSWORD}
    else:
        token = service_token(keycloak)
        key = keycloak.id_of_client("main", "billing-ci")
        asked = {"client": "billing-ci", "client_secret": "billing-ci"}
    keycloak.change("main", kind, key, enabled=False)
    try:
        refused = keycloak.grant("main", **asked)
        assert refused.status_code in {400, 401}, refused.text
        assert api.ask(token).status_code == 200
    finally:
        keycloak.change("main", kind, key, enabled=True)


def test_an_expired_token_is_refused(api, short):
    def refused() -> httpx.Response | None:
        answer = api.ask(short)
        return answer if answer.status_code != 200 else None

    answer = eventually("the token expires", refused, seconds=60 + LIVES_SECONDS)
    assert answer.status_code == 401
    assert "the token has expired: get a new one" in answer.json()["detail"]


def test_new_keys_are_accepted_and_removed_ones_refused_without_a_restart(keycloak, api, report):
    old, unseen = service_token(keycloak), service_token(keycloak)
    assert api.ask(old).status_code == 200
    keycloak.rotate_keys("main")
    new = service_token(keycloak)
    began = time.monotonic()

    eventually("the new key is accepted", lambda: api.ask(new).status_code == 200, seconds=60)
    report.append(f"Keycloak: a new key was accepted after {time.monotonic() - began:.0f} s")
    assert "its issuer lists no key that could have signed it" in api.refusal(unseen)


def test_while_it_is_away_known_keys_are_enough(keycloak, api):
    token = service_token(keycloak)
    keycloak.stop()

    assert api.ask(token).status_code == 200
    with pytest.raises(
        AuthenticationError, match="the keys of the identity provider cannot be fetched"
    ) as caught:
        TokenVerifier.of(api.settings).principal(token)
    assert caught.value.reason is AuthenticationReason.ISSUER_AWAY
