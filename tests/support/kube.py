"""A real control plane on the loopback: etcd, API server, controllers, scheduler, and kwok, whose node runs nothing.

Pods on kwok's node become ready, and those of Jobs succeed, without a container. Everything else is what a cluster
does: admission, rollouts, owners, evictions.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import yaml
from tests.support.deploy_tools import tool

from noonmark.devstack.processes.ports import free_port

TOKEN: Final = "admin-of-a-cluster-of-this-test"
CONTROLLERS: Final = (
    "deployment-controller",
    "replicaset-controller",
    "job-controller",
    "serviceaccount-controller",
    "namespace-controller",
    "garbage-collector-controller",
    "disruption-controller",
    "endpointslice-controller",
    "ttl-after-finished-controller",
)
STAGES: Final = Path(__file__).parents[1] / "deploy" / "kwok_stages.yaml"
NODE: Final = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "fake",
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {"kubernetes.io/hostname": "fake", "kubernetes.io/os": "linux"},
    },
    "status": {
        "allocatable": {"cpu": "32", "memory": "256Gi", "pods": "110"},
        "capacity": {"cpu": "32", "memory": "256Gi", "pods": "110"},
    },
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A control plane that answers.

    Attributes:
        kubeconfig: for Helm.
        client: speaks to the API server as its admin.
        folder: of the logs.
    """

    kubeconfig: Path
    client: httpx.Client
    folder: Path

    def get(self, path: str) -> dict[str, Any]:
        """Read an object or a list."""
        answer = self.client.get(path)
        answer.raise_for_status()
        return dict(answer.json())

    def items(self, path: str) -> list[dict[str, Any]]:
        """Read the objects of a list."""
        return list(self.get(path)["items"])

    def create(self, path: str, manifest: dict[str, Any]) -> httpx.Response:
        """Create an object; the answer tells whether it was let in."""
        return self.client.post(path, json=manifest)

    def patch(self, path: str, change: dict[str, Any]) -> dict[str, Any]:
        """Merge a change into an object."""
        headers = {"Content-Type": "application/merge-patch+json"}
        answer = self.client.patch(path, content=json.dumps(change), headers=headers)
        answer.raise_for_status()
        return dict(answer.json())

    def helm(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Helm against this cluster."""
        own = {"KUBECONFIG": str(self.kubeconfig), "HELM_CACHE_HOME": str(self.folder)}
        environment = {**os.environ, **own}
        return subprocess.run(
            [str(tool("helm")), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
            env=environment,
        )


def eventually(what: str, check: Callable[[], Any], *, seconds: float = 60.0) -> Any:
    """Return the first true answer.

    Raises:
        AssertionError: there was none in time.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            found = check()
        except httpx.HTTPError:
            found = None
        if found:
            return found
        if time.monotonic() > until:
            raise AssertionError(f"{what}: not within {seconds:g} s")
        time.sleep(0.1)


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """Start a control plane with one node, wait until it schedules, and end it."""
    etcd, peer, port = free_port(), free_port(), free_port()
    _keys(folder)
    with ExitStack() as parts:

        def start(name: str, *arguments: str) -> None:
            parts.enter_context(_process(folder, name, arguments))

        start("etcd", *_etcd(folder, etcd, peer))
        start("kube-apiserver", *_api_server(folder, etcd, port))
        kubeconfig = _kubeconfig(folder, port)
        client = parts.enter_context(
            httpx.Client(
                base_url=f"https://127.0.0.1:{port}",
                headers={"Authorization": f"Bearer {TOKEN}"},
                verify=False,  # its certificate is made as it starts
                timeout=30,
                trust_env=False,
            )
        )
        eventually("the API server is ready", lambda: client.get("/readyz").status_code == 200)
        key = str(folder / "sa.key")
        start(
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--service-account-private-key-file={key}",
            f"--controllers={','.join(CONTROLLERS)}",
        )
        start("kube-scheduler", f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0")
        start("kwok", f"--kubeconfig={kubeconfig}", "--manage-all-nodes=true", f"--config={STAGES}")
        cluster = Cluster(kubeconfig, client, folder)
        assert cluster.create("/api/v1/nodes", NODE).status_code == 201
        eventually("the node is ready", lambda: _is_ready(cluster.get("/api/v1/nodes/fake")))
        # Taken away by a controller that would ask for heartbeats.
        cluster.patch("/api/v1/nodes/fake", {"spec": {"taints": None}})
        yield cluster


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


@contextmanager
def _process(folder: Path, name: str, arguments: tuple[str, ...]) -> Iterator[None]:
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(tool(name)), *arguments],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _etcd(folder: Path, port: int, peer: int) -> tuple[str, ...]:
    client, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    return (
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",
    )


def _api_server(folder: Path, etcd: int, port: int) -> tuple[str, ...]:
    (folder / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n", encoding="utf-8")
    return (
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'certs'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.96.0.0/16",
        # Debian's etcd cannot say how far a watch has come, which the cache asks it.
        "--watch-cache=false",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={folder / 'sa.key'}",
        f"--service-account-key-file={folder / 'sa.pub'}",
    )


def _keys(folder: Path) -> None:
    """Make the pair that tokens of service accounts are signed with."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (folder / "sa.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    (folder / "sa.pub").write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def _kubeconfig(folder: Path, port: int) -> Path:
    path = folder / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [
                    {
                        "name": "test",
                        "cluster": {
                            "server": f"https://127.0.0.1:{port}",
                            "insecure-skip-tls-verify": True,
                        },
                    }
                ],
                "users": [{"name": "admin", "user": {"token": TOKEN}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            }
        ),
        encoding="utf-8",
    )
    return path
