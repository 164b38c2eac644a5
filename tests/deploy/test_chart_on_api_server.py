"""The chart on a real API server: install, upgrade, rollback and uninstall where only restricted pods are let in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.chart import CHART
from tests.support.kube import Cluster, eventually, running_cluster

pytestmark = pytest.mark.timeout(600)

TYPES = Path(__file__).parents[1] / "chart" / "types"
CUSTOM = {
    "ScaledObject": ("keda.sh", "v1alpha1", "scaledobjects"),
    "ServiceMonitor": ("monitoring.coreos.com", "v1", "servicemonitors"),
    "PodMonitor": ("monitoring.coreos.com", "v1", "podmonitors"),
    "PrometheusRule": ("monitoring.coreos.com", "v1", "prometheusrules"),
}
VALUES = """
database: {existingSecret: noonmark-database}
kafka: {bootstrap: "kafka:9092", partitions: 12}
defaults: {resources: {requests: {cpu: 10m, memory: 16Mi}}}
api: {autoscaling: {enabled: true}}
watchdog: {enabled: true, beatUrl: {existingSecret: beat}}
worker:
  autoscaling: {type: keda, maxReplicas: 12, prometheus: {serverAddress: "http://prometheus:9090"}}
  pools:
    default: {}
    reports: {autoscaling: {type: none}, replicaCount: 3}
metrics:
  serviceMonitor: {enabled: true}
  podMonitor: {enabled: true}
  prometheusRule: {enabled: true}
  dashboards: {enabled: true}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane that knows the types of KEDA and of the Prometheus operator."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as made:
        for kind in CUSTOM:
            answer = made.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(kind))
            assert answer.status_code == 201, answer.text
        for kind, (group, version, plural) in CUSTOM.items():
            path = f"/apis/{group}/{version}/{plural}"
            eventually(f"{kind} is served", lambda path=path: made.client.get(path).status_code == 200)
        yield made


def definition(kind: str) -> dict[str, Any]:
    group, version, plural = CUSTOM[kind]
    listed = json.loads((TYPES / f"{kind}.json").read_text(encoding="utf-8"))["properties"]["spec"]
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    schema = {"type": "object", "properties": {"spec": structural(listed)}}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [served]},
    }


def structural(listed: dict[str, Any]) -> dict[str, Any]:
    """Turn a list of properties into what a definition takes: unknown fields are refused, open parts kept."""
    kind = listed.get("type")
    if kind == "array":
        return {"type": "array", "items": structural(listed.get("items", {}))}
    if kind == "object" and "properties" in listed:
        properties = {name: structural(part) for name, part in listed["properties"].items()}
        return {"type": "object", "properties": properties}
    if kind == "object" and isinstance(listed.get("additionalProperties"), dict):
        return {"type": "object", "additionalProperties": structural(listed["additionalProperties"])}
    if kind in {"string", "number", "boolean"}:
        return {"type": kind}
    return {"x-kubernetes-preserve-unknown-fields": True}


def namespace(cluster: Cluster, name: str, *secrets: str) -> str:
    """Make a namespace that lets in restricted pods alone, with Secrets."""
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    assert cluster.create("/api/v1/namespaces", made).status_code == 201
    core = f"/api/v1/namespaces/{name}"
    eventually("the namespace has its account", lambda: cluster.get(f"{core}/serviceaccounts/default"))
    for secret in secrets:
        held = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret},
            "stringData": {"url": "x"},
        }
        assert cluster.create(f"{core}/secrets", held).status_code == 201
    return core


def helm(cluster: Cluster, *arguments: str) -> str:
    done = cluster.helm(*arguments)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "would violate PodSecurity" not in done.stderr
    return done.stdout


def left_of(cluster: Cluster, name: str) -> list[str]:
    """Name every object of a namespace that is of the release: made by it, or by what it made."""
    found = []
    core = [("", resource) for resource in cluster.get("/api/v1")["resources"]]
    groups = (
        "apps/v1",
        "batch/v1",
        "policy/v1",
        "autoscaling/v2",
        "networking.k8s.io/v1",
        "discovery.k8s.io/v1",
    )
    groups += ("keda.sh/v1alpha1", "monitoring.coreos.com/v1")
    listed = core + [
        (group, resource) for group in groups for resource in cluster.get(f"/apis/{group}")["resources"]
    ]
    for group, resource in listed:
        if not resource["namespaced"] or "list" not in resource["verbs"] or resource["name"] == "events":
            continue
        base = f"/apis/{group}" if group else "/api/v1"
        found += [
            f"{resource['name']}/{item['metadata']['name']}"
            for item in cluster.items(f"{base}/namespaces/{name}/{resource['name']}")
            if "noonmark" in json.dumps(item["metadata"].get("labels", {})) or "helm" in item.get("type", "")
        ]
    return found


def deployments(cluster: Cluster, name: str) -> dict[str, dict[str, Any]]:
    items = cluster.items(f"/apis/apps/v1/namespaces/{name}/deployments")
    return {item["metadata"]["name"].partition("noonmark-")[2]: item for item in items}


def image_of(deployment: dict[str, Any]) -> str:
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


def test_the_chart_is_installed_upgraded_rolled_back_and_removed(
    cluster: Cluster, tmp_path: Path, report: list[str]
) -> None:
    core = namespace(cluster, "scheduling", "noonmark-database", "beat")
    values = tmp_path / "values.yaml"
    values.write_text(VALUES, encoding="utf-8")
    common = ("noonmark", "--namespace", "scheduling")
    chart = (str(CHART), "--values", str(values), "--wait", "--timeout", "90s")

    # The namespace means what it says.
    open_pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "open"}}
    refused = cluster.create(
        f"{core}/pods", {**open_pod, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    )
    assert refused.status_code == 403
    assert "restricted" in refused.text

    told = helm(cluster, "install", *common, *chart)
    assert "noonmark admin bootstrap" in told
    installed = deployments(cluster, "scheduling")
    assert set(installed) == {
        *(
            "api",
            "intake",
            "trigger",
            "dispatcher",
            "observer",
            "watchdog",
            "worker-default",
            "worker-reports",
        )
    }
    for name, deployment in installed.items():
        assert deployment["status"]["availableReplicas"] == deployment["spec"]["replicas"], name
    assert cluster.items("/apis/batch/v1/namespaces/scheduling/jobs") == []  # the hook went after its success
    budgets = {
        item["metadata"]["name"]: item["status"]
        for item in cluster.items("/apis/policy/v1/namespaces/scheduling/poddisruptionbudgets")
    }
    assert budgets["noonmark-worker-reports"]["expectedPods"] == 3
    assert budgets["noonmark-worker-reports"]["disruptionsAllowed"] == 1
    made = left_of(cluster, "scheduling")
    for kind, (_, _, plural) in CUSTOM.items():
        assert any(item.startswith(f"{plural}/") for item in made), kind

    # What an autoscaler decided, an upgrade leaves alone.
    scaled = "/apis/apps/v1/namespaces/scheduling/deployments/noonmark-worker-default/scale"
    cluster.patch(scaled, {"spec": {"replicas": 5}})
    before = {name: image_of(item) for name, item in installed.items()}
    helm(cluster, "upgrade", *common, *chart, "--set", "image.tag=0.3.0", "--set", "config.drain_seconds=45")
    upgraded = deployments(cluster, "scheduling")
    assert {image_of(item) for item in upgraded.values()} == {"ghcr.io/noonmark/noonmark:0.3.0"}
    assert upgraded["worker-default"]["spec"]["replicas"] == 5
    assert upgraded["trigger"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 51
    for name, deployment in upgraded.items():
        assert deployment["status"]["updatedReplicas"] == deployment["spec"]["replicas"], name
        assert deployment["metadata"]["uid"] == installed[name]["metadata"]["uid"], name

    helm(cluster, "rollback", *common, "1", "--wait", "--timeout", "90s")
    back = deployments(cluster, "scheduling")
    assert {name: image_of(item) for name, item in back.items()} == before
    assert back["worker-default"]["spec"]["replicas"] == 5
    revisions = json.loads(helm(cluster, "history", *common, "--output", "json"))
    assert [revision["status"] for revision in revisions] == ["superseded", "superseded", "deployed"]

    # A Secret that was changed reaches the pods with the next upgrade.
    secret = f"{core}/secrets/noonmark-database"
    cluster.patch(secret, {"stringData": {"url": "another"}})
    helm(cluster, "upgrade", *common, *chart)
    rotated = deployments(cluster, "scheduling")["trigger"]["spec"]["template"]["metadata"]["annotations"]
    first = back["trigger"]["spec"]["template"]["metadata"]["annotations"]
    assert rotated["checksum/secrets"] != first["checksum/secrets"]
    assert rotated["checksum/config"] == first["checksum/config"]

    helm(cluster, "uninstall", *common, "--wait", "--timeout", "90s")
    eventually("nothing is left", lambda: not left_of(cluster, "scheduling"))
    assert {item["metadata"]["name"] for item in cluster.items(f"{core}/secrets")} == {
        "noonmark-database",
        "beat",
    }
    report.append(
        f"chart: {len(made)} objects installed, upgraded, rolled back and removed on a real API server"
    )


def test_without_hooks_each_revision_has_its_job(cluster: Cluster) -> None:
    namespace(cluster, "plain", "noonmark-database")
    common = ("noonmark", str(CHART), "--namespace", "plain", "--wait", "--timeout", "90s")
    given = ("--set", "migrations.useHelmHooks=false", "--set", "database.existingSecret=noonmark-database")
    given += ("--set", "kafka.bootstrap=kafka:9092")

    def jobs() -> list[str]:
        items = cluster.items("/apis/batch/v1/namespaces/plain/jobs")
        return [item["metadata"]["name"] for item in items if item.get("status", {}).get("succeeded")]

    helm(cluster, "install", *common, *given)
    eventually("the first has succeeded", lambda: jobs() == ["noonmark-migrate-1"])
    helm(cluster, "upgrade", *common, *given)
    eventually("the second has succeeded", lambda: jobs() == ["noonmark-migrate-2"])
    helm(cluster, "uninstall", "noonmark", "--namespace", "plain", "--wait")
    eventually("nothing is left", lambda: not left_of(cluster, "plain"))


def test_a_secret_that_is_missing_or_lacks_its_key_is_told_at_once(cluster: Cluster) -> None:
    namespace(cluster, "missing", "noonmark-database")
    common = (
        "install",
        "noonmark",
        str(CHART),
        "--namespace",
        "missing",
        "--set",
        "kafka.bootstrap=kafka:9092",
    )
    absent = cluster.helm(*common, "--set", "database.existingSecret=nowhere")
    assert absent.returncode != 0
    assert (
        "the Secret nowhere (database.existingSecret) does not exist in namespace missing: create it first"
        in absent.stderr
    )
    keyless = cluster.helm(
        *common, "--set", "database.existingSecret=noonmark-database", "--set", "database.key=dsn"
    )
    assert keyless.returncode != 0
    assert "the Secret noonmark-database has no key dsn" in keyless.stderr
    assert left_of(cluster, "missing") == []
