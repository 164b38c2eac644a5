"""What the chart makes of every set of values: valid for Kubernetes, restricted, and without a secret in it."""

import json
from functools import cache
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
from pydantic import SecretStr
from tests.support import chart
from tests.support.pod_security import violations

from noonmark.settings import Settings

# It reads its schemas anew, megabytes of them, for every manifest.
kubernetes_validate.utils.schema_contents = cache(kubernetes_validate.utils.schema_contents)

KUBERNETES = "1.36"
TYPES = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in Path(__file__).parent.glob("types/*.json")
}
"""Types of the Prometheus operator and of KEDA: see types/README.md."""

SETS = [path.stem for path in chart.SETS]
SERVICES = {"api", "intake", "trigger", "dispatcher", "worker", "observer", "watchdog"}


@pytest.mark.parametrize("values", SETS)
def test_every_manifest_is_what_its_type_allows_and_nothing_else(values):
    for manifest in chart.rendered()[values]:
        if manifest["kind"] in TYPES:
            jsonschema.Draft202012Validator(TYPES[manifest["kind"]]).validate(manifest)
        else:
            kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_the_validators_find_a_wrong_field():
    deployment = chart.of_kind("minimal", "Deployment")["api"]
    scaled = chart.of_kind("keda", "ScaledObject")["worker-default"]
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**deployment, "spek": {}}, KUBERNETES, strict=True)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**scaled, "spec": {**scaled["spec"], "minReplicas": 1}}, TYPES["ScaledObject"])


@pytest.mark.parametrize("values", SETS)
def test_every_pod_is_restricted_writes_to_tmp_alone_and_has_no_token(values):
    for name, pod in chart.pods(chart.rendered()[values]):
        assert violations(pod) == [], name
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["enableServiceLinks"] is False, name
        chosen_by_the_cluster = values == "no-hooks"
        assert pod["securityContext"].get("runAsUser") == (None if chosen_by_the_cluster else 65532), name
        assert [volume["name"] for volume in pod["volumes"] if "emptyDir" in volume] == ["tmp"], name
        for container in chart.containers(pod):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True, name
            writable = [m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")]
            assert writable == ["/tmp"], name


def test_the_policy_check_finds_what_the_standard_forbids():
    pod = {
        "hostNetwork": True,
        "volumes": [{"name": "node", "hostPath": {"path": "/"}}],
        "containers": [
            {"name": "a", "securityContext": {"privileged": True, "capabilities": {"add": ["SYS_ADMIN"]}}}
        ],
    }
    assert len(violations(pod)) == 8


@pytest.mark.parametrize("values", SETS)
def test_every_variable_is_a_setting_and_secrets_are_references(values):
    secret = {
        f"NOONMARK_{n.upper()}" for n, info in Settings.model_fields.items() if info.annotation is SecretStr
    }
    secret |= {"NOONMARK_KAFKA_SASL_USERNAME", "NOONMARK_ALERT_WEBHOOK_URL"}
    known = {f"NOONMARK_{name.upper()}" for name in Settings.model_fields}
    for name, pod in chart.pods(chart.rendered()[values]):
        for container in chart.containers(pod):
            variables = container.get("env", [])
            told = [entry["name"] for entry in variables]
            assert len(told) == len(set(told)), name
            assert {variable for variable in told if variable.startswith("NOONMARK_")} <= known, name
            inline = {entry["name"] for entry in variables if "value" in entry}
            assert not inline & secret, name
    assert not [m for m in chart.rendered()[values] if m["kind"] == "Secret"]


@pytest.mark.parametrize("values", SETS)
def test_the_services_can_read_the_settings_that_they_are_given(values, monkeypatch):
    """Each environment is read by the class that the services read theirs with."""
    stand_ins = {
        "NOONMARK_DATABASE_URL": "postgresql://u:p@db/noonmark",
        "NOONMARK_ALERT_WEBHOOK_URL": "https://hooks.example.com/a",
        "NOONMARK_WATCHDOG_URL": "https://beat.example.com/a",
        "NOONMARK_APP_OUTBOXES": "shop=postgresql://u:p@shop/shop=default",
    }
    for name, pod in chart.pods(chart.rendered()[values]):
        for container in chart.containers(pod):
            told = {k: v for k, v in chart.environment(container).items() if k.startswith("NOONMARK_")}
            with monkeypatch.context() as patched:
                for key, value in told.items():
                    patched.setenv(key, stand_ins.get(key, value))
                _, problems = Settings.examine()
            assert problems == [], (name, container["name"])


@pytest.mark.parametrize("values", SETS)
def test_selectors_find_their_pods_and_hold_nothing_that_a_release_changes(values):
    manifests = chart.rendered()[values]
    for manifest in manifests:
        if manifest["kind"] != "Deployment":
            continue
        selector = manifest["spec"]["selector"]["matchLabels"]
        labels = manifest["spec"]["template"]["metadata"]["labels"]
        component = labels["app.kubernetes.io/component"]
        assert component in SERVICES
        assert set(selector) == {
            *(f"app.kubernetes.io/{name}" for name in ("name", "instance", "component")),
            *(["noonmark.io/pool"] if component == "worker" else []),
        }
        assert selector.items() <= labels.items()
    told = [json.dumps(m["spec"]["selector"], sort_keys=True) for m in manifests if m["kind"] == "Deployment"]
    assert len(told) == len(set(told))
    for manifest in manifests:
        assert len(manifest["metadata"]["name"]) <= 63
        assert manifest["metadata"]["namespace"] == chart.NAMESPACE


def test_nothing_is_made_of_what_is_off():
    made = {(m["kind"], m["metadata"]["name"]) for m in chart.rendered()["workers-only"]}
    assert made == {("Deployment", "test-noonmark-worker-default")}


@pytest.mark.parametrize("values", [name for name in SETS if name not in {"keda", "monitoring"}])
def test_types_that_a_cluster_may_lack_are_off_by_default(values):
    assert not [m["kind"] for m in chart.rendered()[values] if m["kind"] in TYPES]
