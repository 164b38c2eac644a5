"""What values the chart takes, and what it says of those it refuses."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml
from helm import reference
from pydantic import SecretStr
from tests.support import chart
from tests.support.doc_blocks import blocks_of

from noonmark.service.runner import FAILURE_GRACE_SECONDS
from noonmark.settings import Settings

VALUES = (chart.CHART / "values.yaml").read_text(encoding="utf-8")
MINIMAL = chart.ROOT / "tests" / "chart" / "values" / "minimal.yaml"
SCHEMA = json.loads((chart.CHART / "values.schema.json").read_text(encoding="utf-8"))

MISFITS = """
database: {tls: {mode: verify-full}}
kafka: {bootstrap: "", securityProtocol: SASL_PLAINTEXT, partitions: 2, tls: {caSecret: {name: ca}}}
config: {drain_seconds: 30, beat_seconds: 6}
watchdog: {enabled: true}
api:
  ingress: {enabled: true}
  autoscaling: {enabled: true, minReplicas: 7}
  terminationGracePeriodSeconds: 40
intake:
  extraEnv: [{name: NOONMARK_LEASE_SECONDS, value: "1"}, {name: PGSSLMODE, value: disable}]
trigger:
  extraEnv: [{name: PGPASSWORD, value: hunter2}]
worker:
  jobSecrets: [{namespace: billing, existingSecret: one}, {namespace: billing, existingSecret: two}]
  extraEnv: [{name: NOONMARK_SECRET_A__B, value: hunter2}]
  pools:
    a-b: {terminationGracePeriodSeconds: 40}
    a_b: {}
    keda: {autoscaling: {type: keda, maxReplicas: 7, cooldownSeconds: 20}}
"""

TOLD = (
    "database.existingSecret is missing: create a Secret",
    "kubectl --namespace scheduling create secret generic noonmark-database",
    "database.tls.mode verify-full requires the CA of the server: set database.tls.caSecret.name",
    "kafka.bootstrap is missing: set it to host:port",
    "kafka.securityProtocol SASL_PLAINTEXT requires kafka.sasl.mechanism and kafka.sasl.existingSecret",
    "kafka.tls is set, but kafka.securityProtocol is SASL_PLAINTEXT: use SSL or SASL_SSL",
    "watchdog.enabled requires watchdog.beatUrl.existingSecret",
    "api.ingress.enabled requires api.ingress.hosts",
    "worker.pools: a-b and a_b have the same name test-noonmark-worker-a-b in Kubernetes; rename one",
    "api: terminationGracePeriodSeconds 40 is less than the 41 s that the drain needs",
    "worker pool a-b: terminationGracePeriodSeconds 40 is less than the 41 s that the drain needs",
    "api: config.beat_seconds 6 is too long for config.lease_seconds 15",
    "api: autoscaling.minReplicas 7 is above autoscaling.maxReplicas 6",
    "api: scaling on CPU requires resources.requests.cpu",
    "intake: extraEnv sets NOONMARK_LEASE_SECONDS; set it in config as lease_seconds",
    "intake: extraEnv sets PGSSLMODE; use database.tls instead",
    "trigger: extraEnv contains the value of PGPASSWORD; reference a Secret",
    "worker pool a-b: jobSecrets has two entries for namespace billing (one and two); put all its secrets in one",
    "worker pool a-b: extraEnv contains the value of NOONMARK_SECRET_A__B; reference a Secret",
    "worker pool keda: autoscaling.maxReplicas 7 is above 6, the total number of partitions of its three lanes",
    "worker pool keda: autoscaling.cooldownSeconds 20 is below config.drain_seconds 30",
    "worker pool keda: autoscaling.type keda requires autoscaling.prometheus.serverAddress",
)

REFUSED = (
    ("kafka: {bootstrapp: a:1}", "additional properties 'bootstrapp' not allowed"),
    ("config: {leese_seconds: 1}", "additional properties 'leese_seconds' not allowed"),
    ("config: {database_url: postgresql://u:p@h/d}", "additional properties 'database_url' not allowed"),
    ("config: {http_allow_networks: ['10.0.0.0/8,fd00::/8']}", "'/config/http_allow_networks/0'"),
    ("config: {start_objective_seconds: [5]}", "'/config/start_objective_seconds'"),
    ("config: {lease_seconds: 1}", "'/config/lease_seconds'"),
    ("kafka: {securityProtocol: SSL_SASL}", "'/kafka/securityProtocol'"),
    ("nameOverride: Foo_Bar", "'/nameOverride'"),
    ("fullnameOverride: 1-noonmark", "'/fullnameOverride'"),
    ("listenAddress: localhost", "'/listenAddress'"),
    ("api: {replicas: 2}", "additional properties 'replicas' not allowed"),
    ("worker: {pools: {Reports: {}}}", "additional properties 'Reports' not allowed"),
    ("worker: {pools: {reports: {slotts: 2}}}", "additional properties 'slotts' not allowed"),
    ("worker: {autoscaling: {minReplicas: 0}}", "'/worker/autoscaling/minReplicas'"),
    ("database: {url: postgresql://u:p@h/d}", "additional properties 'url' not allowed"),
)


def test_readme_and_schema_are_what_values_and_settings_say():
    readme = (chart.CHART / "README.md").read_text(encoding="utf-8")
    schema = (chart.CHART / "values.schema.json").read_text(encoding="utf-8")
    told = "run: python helm/reference.py"
    assert readme == reference.readme(readme, VALUES), told
    assert schema == reference.schema(schema), told


def test_every_value_is_documented_and_in_the_schema():
    documented = {value.path for value in reference.documented(VALUES)}
    missing, unknown = [], []

    def walk(values, shape, path):
        while "$ref" in shape:
            shape = SCHEMA["definitions"][shape["$ref"].rpartition("/")[2]]
        properties = shape.get("properties", {})
        for key, value in values.items():
            place = f"{path}.{key}".lstrip(".")
            if key not in properties:
                unknown.append(place)
            elif isinstance(value, dict) and value and place not in documented:
                walk(value, properties[key], place)
            elif place not in documented:
                missing.append(place)

    walk(yaml.safe_load(VALUES), SCHEMA, "")
    assert (missing, unknown) == ([], [])


def test_the_schema_lets_no_unknown_key_through():
    def objects(shape, place):
        if isinstance(shape, dict):
            if "properties" in shape:
                yield place, shape
            for key, part in shape.items():
                yield from objects(part, f"{place}/{key}")

    open_ones = [
        place for place, shape in objects(SCHEMA, "") if shape.get("additionalProperties") is not False
    ]
    assert open_ones == []


def test_config_takes_no_secret_and_every_other_setting_that_is_not_the_charts_own():
    config = set(SCHEMA["definitions"]["config"]["properties"])
    secret = {name for name, info in Settings.model_fields.items() if info.annotation is SecretStr}
    assert {
        "database_url",
        "kafka_sasl_password",
        "alert_webhook_secret",
        "watchdog_url",
        "app_outboxes",
    } <= secret
    assert not config & secret
    assert config | secret | reference.OWN == set(Settings.model_fields)


def test_defaults_that_the_templates_reckon_with_are_those_of_the_settings():
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(chart.CHART.rglob("templates/**/*.*")))
    for name in ("drain_seconds", "kill_grace_seconds", "lease_seconds", "beat_seconds"):
        default = Settings.model_fields[name].default
        assert f'dig "{name}" {default:g} ' in text, name
    assert f"add $drain {FAILURE_GRACE_SECONDS:g} 2" in text


def test_everything_that_does_not_fit_is_told_at_once_with_its_remedy():
    done = chart.template(MISFITS)
    assert done.returncode != 0
    assert [told for told in TOLD if told not in done.stderr] == []
    assert "hunter2" not in done.stderr


def test_values_that_the_schema_does_not_know_are_refused():
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda case: chart.template(case[0]), REFUSED))
    for (values, told), done in zip(REFUSED, answers, strict=True):
        assert done.returncode != 0, values
        assert told in done.stderr, values


def test_values_that_the_pages_show_are_taken():
    shown = [block.code for block in blocks_of(chart.ROOT / "docs/kubernetes.md", "yaml")]
    assert len(shown) == 3
    for values in shown:
        needed = {"database": {"existingSecret": "a"}, "kafka": {"bootstrap": "kafka:9092"}}
        done = chart.template(yaml.safe_dump({**needed, **yaml.safe_load(values)}))
        assert done.returncode == 0, done.stderr


def test_every_set_of_values_passes_a_strict_lint():
    def lint(path):
        arguments = ("lint", "--strict", str(chart.CHART), "--namespace", "scheduling", "--values", str(path))
        return path.name, chart.helm(*arguments)

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lint, chart.SETS))
    assert [(name, done.stdout) for name, done in answers if done.returncode] == []


@pytest.mark.parametrize("is_enabled", [True, False])
def test_a_chart_that_depends_on_this_one_turns_it_off_by_its_condition(tmp_path, is_enabled):
    shutil.copytree(chart.CHART, tmp_path / "charts" / "noonmark")
    told = yaml.safe_load((chart.CHART / "Chart.yaml").read_text(encoding="utf-8"))
    dependency = {"name": "noonmark", "version": told["version"], "condition": "noonmark.enabled"}
    parent = {"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": [dependency]}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(parent), encoding="utf-8")
    minimal = yaml.safe_load(MINIMAL.read_text(encoding="utf-8"))
    (tmp_path / "values.yaml").write_text(
        yaml.safe_dump({"noonmark": {**minimal, "enabled": is_enabled}}), encoding="utf-8"
    )

    done = chart.helm("template", chart.RELEASE, str(tmp_path), "--namespace", chart.NAMESPACE)

    assert done.returncode == 0, done.stderr
    found = [(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(done.stdout) if one]
    alone = [(one["kind"], one["metadata"]["name"]) for one in chart.rendered()["minimal"]]
    assert sorted(found) == (sorted(alone) if is_enabled else [])


@pytest.mark.parametrize("name", ["version", "appVersion"])
def test_chart_and_package_have_one_version(name):
    project = (chart.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    told = yaml.safe_load((chart.CHART / "Chart.yaml").read_text(encoding="utf-8"))[name]
    assert f'version = "{told}"' in project


def test_what_helm_prints_says_how_to_go_on_and_warns_of_what_is_unsafe():
    def notes(name):
        values = str(chart.ROOT / "tests" / "chart" / "values" / f"{name}.yaml")
        arguments = ("install", "one", str(chart.CHART), "--namespace", "n", "--values", values)
        done = chart.helm(*arguments, "--dry-run=client")
        assert done.returncode == 0, done.stderr
        return done.stdout.partition("\nNOTES:\n")[2]

    unsafe, safe = notes("single-replica"), notes("tls-sasl-mtls")
    for told in (
        "kubectl --namespace n exec deploy/scheduler-api -- noonmark admin bootstrap",
        "kubectl --namespace n port-forward svc/scheduler-api 8080:8080",
        "helm --namespace n test one",
        "kafka.securityProtocol is PLAINTEXT",
        "kafka.replication is 1",
        "networkPolicy.enabled is false",
        "trigger.replicaCount is 1",
        "worker pool default has no resources",
        "observer.alertWebhook and config.alertmanager_url are not set",
    ):
        assert told in unsafe, told
    for told in ("PLAINTEXT", "database.tls.mode", "replicaCount", "networkPolicy"):
        assert told not in safe, told
    assert "export NOONMARK_API_URL=https://scheduler.example.com" in notes("full")
