"""A real Keycloak on the loopback, its data in memory, and its administration over REST."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from tests.support.deploy_tools import tool
from tests.support.kube import eventually

from noonmark.devstack.processes import processes
from noonmark.devstack.processes.ports import free_port

_ADMIN: Final = "admin"
_KEYS: Final = "org.keycloak.keys.KeyProvider"
_START_SECONDS: Final = 240.0


@dataclass(slots=True)
class Keycloak:
    """A Keycloak that answers.

    Attributes:
        url: without a realm.
        process: its start script; the server is in the same process group.
        password: of its admin.
        client: speaks to it.
    """

    url: str
    process: processes.Process
    password: str
    client: httpx.Client

    def issuer(self, realm: str) -> str:
        """Return the `iss` of a realm's tokens."""
        return f"{self.url}/realms/{realm}"

    def admin(self, method: str, path: str, json: Any = None) -> Any:
        """Call the administration below `/admin/realms`; return the document that it answers, if any."""
        for _ in range(2):
            answer = self.client.request(method, f"/admin/realms{path}", json=json)
            if answer.status_code != httpx.codes.UNAUTHORIZED:
                break
            # Its own tokens live for a minute.
            token = self.token("master", "admin-cli", username=_ADMIN, password=self.password)
            self.client.headers["authorization"] = f"Bearer {token['access_token']}"
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def grant(self, realm: str, client: str, **form: str) -> httpx.Response:
        """Ask for a token: with the secret of a client, or with the password of a user."""
        kind = "password" if "password" in form else "client_credentials"
        form = {"grant_type": kind, "client_id": client, **form}
        return self.client.post(f"/realms/{realm}/protocol/openid-connect/token", data=form)

    def token(self, realm: str, client: str, **form: str) -> dict[str, Any]:
        """Return what Keycloak gives: `access_token`, `expires_in`, …"""
        answer = self.grant(realm, client, **form)
        assert answer.is_success, answer.text
        return dict(answer.json())

    def id_of_client(self, realm: str, name: str) -> str:
        """Return the internal id of a client."""
        (found,) = self.admin("GET", f"/{realm}/clients?clientId={name}")
        return str(found["id"])

    def add_client(self, realm: str, name: str, **more: Any) -> None:
        """Create a client that gets tokens for itself with its secret, which is its name."""
        fields = {"clientId": name, "secret": name, "serviceAccountsEnabled": True, **more}
        self.admin("POST", f"/{realm}/clients", fields)

    def give_role(self, realm: str, user: str, client: str, role: str) -> None:
        """Give a user, by name, a role of a client."""
        (found,) = self.admin("GET", f"/{realm}/users?exact=true&username={user}")
        owner = self.id_of_client(realm, client)
        given = self.admin("GET", f"/{realm}/clients/{owner}/roles/{role}")
        self.admin("POST", f"/{realm}/users/{found['id']}/role-mappings/clients/{owner}", [given])

    def change(self, realm: str, kind: str, key: str, **fields: Any) -> None:
        """Change fields of a user or client, by its internal id."""
        now = self.admin("GET", f"/{realm}/{kind}/{key}")
        self.admin("PUT", f"/{realm}/{kind}/{key}", {**now, **fields})

    def rotate_keys(self, realm: str) -> None:
        """Add a key that signs from now on, and remove the one that did."""
        owner = self.admin("GET", f"/{realm}")["id"]
        listed = self.admin("GET", f"/{realm}/components?type={_KEYS}")
        config = {"priority": ["200"], "algorithm": ["RS256"], "keySize": ["2048"]}
        new = {"name": "new", "providerId": "rsa-generated", "providerType": _KEYS, "parentId": owner}
        self.admin("POST", f"/{realm}/components", {**new, "config": config})
        (old,) = (
            part["id"] for part in listed if part["providerId"] == "rsa-generated" and _signs_rs256(part)
        )
        self.admin("DELETE", f"/{realm}/components/{old}")

    def stop(self) -> None:
        """End it."""
        if not processes.has_ended(self.process):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)


def _signs_rs256(component: Mapping[str, Any]) -> bool:
    return component["config"].get("algorithm", ["RS256"]) == ["RS256"]


@contextmanager
def running_keycloak(folder: Path) -> Iterator[Keycloak]:
    """Start a Keycloak in a folder, wait until it answers, and end it."""
    port, password = free_port(), secrets.token_hex(12)
    # Its start writes into its own folder.
    home = shutil.copytree(tool("keycloak"), folder / "keycloak")
    process = processes.spawn(
        [
            *("sh", home / "bin" / "kc.sh", "start-dev", "--db=dev-mem"),
            *("--http-host=127.0.0.1", f"--http-port={port}"),
        ],
        log_file=folder / "keycloak.log",
        cwd=folder,
        env={
            **os.environ,
            "KC_BOOTSTRAP_ADMIN_USERNAME": _ADMIN,
            "KC_BOOTSTRAP_ADMIN_PASSWORD": password,
            # It lives for a minute: half of its start would go to compiling it well.
            "JAVA_OPTS_APPEND": "-XX:TieredStopAtLevel=1",
        },
    )
    url = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        found = Keycloak(url, process, password, client)

        def answers() -> bool:
            assert not processes.has_ended(process), processes.tail(folder / "keycloak.log")
            return client.get("/realms/master").is_success

        try:
            eventually("Keycloak answers", answers, seconds=_START_SECONDS)
            yield found
        finally:
            found.stop()
