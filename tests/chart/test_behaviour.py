"""What the chart promises: draining, scaling, pools, migrations, secrets."""

import json

import pytest
import yaml
from tests.support import chart
from tests.support.chart import environment, of_kind
from tests.support.cli import call

from noonmark.core.states import Lane
from noonmark.telemetry.metrics import REGISTRY


def pod(values, name):
    return of_kind(values, "Deployment")[name]["spec"]["template"]["spec"]


def told(values, name):
    return environment(pod(values, name)["containers"][0])


# Draining.


@pytest.mark.parametrize(
    ("values", "name", "seconds"),
    [
        ("minimal", "worker-default", 41),  # drain 30, end 4, margin 2, children 5
        ("minimal", "trigger", 36),
        ("minimal", "api", 41),  # and 5 before SIGTERM
        ("many-pools", "worker-reports", 11),  # drain 0
        ("many-pools", "worker-scripts-1", 49),  # children 12.5, rounded up
        ("keda", "worker-bulk", 611),
    ],
)
def test_the_time_to_end_follows_the_settings(values, name, seconds):
    assert pod(values, name)["terminationGracePeriodSeconds"] == seconds


def test_a_part_of_a_second_of_the_drain_is_rounded_up():
    spec = pod("full", "worker-default")
    assert environment(spec["containers"][0])["NOONMARK_DRAIN_SECONDS"] == "60.5"
    assert spec["terminationGracePeriodSeconds"] == 72


def test_only_the_api_waits_until_no_balancer_sends_to_it():
    for name, manifest in of_kind("minimal", "Deployment").items():
        (container,) = manifest["spec"]["template"]["spec"]["containers"]
        expected = {"preStop": {"sleep": {"seconds": 5}}} if name == "api" else None
        assert container.get("lifecycle") == expected, name


def test_a_new_pod_works_before_an_old_one_ends():
    for manifest in of_kind("minimal", "Deployment").values():
        assert manifest["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_probes_ask_for_progress_and_never_restart_what_only_waits():
    for manifest in of_kind("minimal", "Deployment").values():
        (container,) = manifest["spec"]["template"]["spec"]["containers"]
        asked = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
        live, ready = {"path": "/livez", "port": "metrics"}, {"path": "/readyz", "port": "metrics"}
        assert asked == {"startup": live, "liveness": live, "readiness": ready}
        assert {"name": "metrics", "containerPort": 9090} in container["ports"]
        assert environment(container)["NOONMARK_METRICS_PORT"] == "9090"


# Scaling.


@pytest.mark.parametrize(
    ("values", "name"),
    [("keda", "worker-default"), ("keda", "worker-bulk"), ("hpa", "api"), ("hpa", "worker-default")],
)
def test_replicas_are_left_out_where_an_autoscaler_owns_them(values, name):
    assert "replicas" not in of_kind(values, "Deployment")[name]["spec"]


def test_replicas_are_set_everywhere_else():
    assert of_kind("keda", "Deployment")["worker-fixed"]["spec"]["replicas"] == 1
    assert {n: m["spec"]["replicas"] for n, m in of_kind("minimal", "Deployment").items()} == {
        **dict.fromkeys(("api", "intake", "trigger", "dispatcher", "worker-default"), 2),
        "observer": 1,
    }


def test_keda_scales_on_the_age_of_the_backlog_of_each_lane_and_on_slots_in_use():
    spec = of_kind("keda", "ScaledObject")["worker-default"]["spec"]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (1, 12)
    stabilised = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
    assert stabilised == {"stabilizationWindowSeconds": 300}
    triggers = {trigger["name"]: trigger for trigger in spec["triggers"]}
    assert list(triggers) == [*(f"backlog-{lane.label}" for lane in Lane), "busy"]
    assert triggers["backlog-high"]["metadata"] == {
        "serverAddress": "http://prometheus.monitoring:9090",
        "query": 'max(noonmark_start_backlog_seconds{pool="default",namespace="scheduling",lane="high"})',
        "threshold": "5",
        "ignoreNullValues": "false",
    }
    assert {trigger["metricType"] for trigger in spec["triggers"]} == {"Value"}


def test_a_pool_scales_by_its_own_words_where_it_has_any():
    spec = of_kind("keda", "ScaledObject")["worker-bulk"]["spec"]
    assert (spec["maxReplicaCount"], spec["cooldownPeriod"]) == (36, 600)
    thresholds = {trigger["name"]: trigger["metadata"]["threshold"] for trigger in spec["triggers"]}
    assert thresholds == {"backlog-high": "5", "backlog-normal": "30", "backlog-low": "1800"}
    first = spec["triggers"][0]
    assert (
        first["metadata"]["query"]
        == 'max(noonmark_start_backlog_seconds{pool="bulk",cluster="a",lane="high"})'
    )
    assert (first["authenticationRef"], first["metadata"]["authModes"]) == ({"name": "prometheus"}, "bearer")
    assert "worker-fixed" not in of_kind("keda", "ScaledObject")


def test_keda_asks_for_series_that_exist():
    series = {metric.name for metric in REGISTRY.collect()}
    for name in ("noonmark_start_backlog_seconds", "noonmark_pool_slots"):
        assert name in series


def test_budgets_stand_only_where_there_can_be_more_than_one_pod():
    assert of_kind("single-replica", "PodDisruptionBudget") == {}
    assert set(of_kind("keda", "PodDisruptionBudget")) == {
        *("api", "intake", "trigger", "dispatcher", "worker-default", "worker-bulk")
    }
    for budget in of_kind("minimal", "PodDisruptionBudget").values():
        assert budget["spec"]["maxUnavailable"] == 1
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_pods_of_a_service_are_spread():
    constraints = pod("many-pools", "worker-reports")["topologySpreadConstraints"]
    assert [c["topologyKey"] for c in constraints] == [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    ]
    for constraint in constraints:
        assert constraint["labelSelector"]["matchLabels"]["noonmark.io/pool"] == "reports"


# Pools.


def test_each_pool_has_its_own_image_handlers_slots_and_settings():
    (container,) = pod("many-pools", "worker-reports")["containers"]
    assert container["image"] == "registry.example.com/reports:7"
    assert container["args"] == ["worker", "--path", "/srv/handlers"]
    assert (
        told("many-pools", "worker-reports").items()
        >= {
            "NOONMARK_POOL": "reports",
            "NOONMARK_HANDLERS": "reports.jobs,reports.mails",
            "NOONMARK_WORKER_SLOTS": "4",
            "NOONMARK_WORKER_PROCESSES": "2",
            "NOONMARK_DRAIN_SECONDS": "0",
        }.items()
    )
    assert {"name": "handlers", "mountPath": "/srv/handlers", "readOnly": True} in container["volumeMounts"]


def test_a_pool_takes_from_worker_what_it_does_not_say():
    assert (
        told("many-pools", "worker-scripts-1").items()
        >= {
            "NOONMARK_POOL": "scripts_1",
            "NOONMARK_HANDLERS": "jobs.common",
            "NOONMARK_WORKER_SLOTS": "32",
            "NOONMARK_SCRIPTS": "/opt/jobs,/usr/bin/true",
            "NOONMARK_SECRETS_DIR": "/etc/noonmark/secrets",
        }.items()
    )
    longest = [name for name in of_kind("many-pools", "Deployment") if "as-long-as" in name]
    assert "NOONMARK_HANDLERS" not in told("many-pools", longest[0])


def test_secrets_of_jobs_are_files_of_their_namespace():
    spec = pod("full", "worker-default")
    mounts = {m["mountPath"]: m["name"] for m in spec["containers"][0]["volumeMounts"]}
    volumes = {v["name"]: v for v in spec["volumes"]}
    mounted = volumes[mounts["/etc/noonmark/secrets/team-a"]]["secret"]
    assert mounted == {"secretName": "team-a-jobs", "defaultMode": 0o440}


# Migrations.


def test_the_hook_uses_nothing_that_the_chart_makes():
    job = of_kind("full", "Job")["migrate"]
    assert job["metadata"]["annotations"] == {
        "helm.sh/hook": "pre-install,pre-upgrade",
        "helm.sh/hook-weight": "0",
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    }
    spec = job["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == "default"
    made = {m["metadata"]["name"] for m in chart.rendered()["full"] if m["kind"] in {"ConfigMap", "Secret"}}
    assert not any(f'"{name}"' in json.dumps(spec) for name in made)
    assert environment(spec["containers"][0])["NOONMARK_DATABASE_URL"] == "noonmark-owner/dsn"


def test_the_migration_makes_schema_and_topics_and_then_the_pools():
    spec = of_kind("many-pools", "Job")["migrate"]["spec"]["template"]["spec"]
    steps = [container["args"] for container in chart.containers(spec)]
    assert steps[0] == ["db", "migrate", "--shards", "4"]
    assert sorted(steps[1:]) == [
        ["pool", "create", "a-pool-whose-name-is-as-long-as-a-name-may-be-48"],
        ["pool", "create", "reports"],
        ["pool", "create", "scripts_1"],
    ]
    (only,) = chart.containers(of_kind("minimal", "Job")["migrate"]["spec"]["template"]["spec"])
    assert only["args"] == steps[0]


def test_topics_get_partitions_and_replicas_from_the_values():
    job = of_kind("full", "Job")["migrate"]
    for container in chart.containers(job["spec"]["template"]["spec"]):
        settings = environment(container)
        assert (settings["NOONMARK_KAFKA_PARTITIONS"], settings["NOONMARK_KAFKA_REPLICATION"]) == ("12", "3")


def test_without_hooks_the_job_has_the_name_of_the_revision():
    job = of_kind("no-hooks", "Job")["migrate-1"]
    assert "annotations" not in job["metadata"]
    assert job["spec"]["ttlSecondsAfterFinished"] == 86400
    spec = job["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == "existing"
    assert spec["containers"][0]["args"] == ["db", "migrate", "--shards", "4", "--skip-topics"]


# The check of promises.


def test_the_check_is_off_by_default():
    assert of_kind("minimal", "CronJob") == {}
    assert "verify" not in of_kind("minimal", "NetworkPolicy")


def test_the_check_runs_the_command_with_the_values_and_is_not_repeated():
    cron = of_kind("full", "CronJob")["verify"]["spec"]
    assert (cron["schedule"], cron["timeZone"], cron["concurrencyPolicy"]) == (
        "5 * * * *",
        "Europe/Berlin",
        "Forbid",
    )
    job = cron["jobTemplate"]["spec"]
    assert (job["backoffLimit"], job["template"]["spec"]["restartPolicy"]) == (0, "Never")
    (container,) = job["template"]["spec"]["containers"]
    assert container["args"] == [
        *("verify", "--since", "3h", "--rate", "0.1"),
        *("--namespace", "billing", "--namespace", "shop", "--events"),
        *("--metrics-gateway", "http://pushgateway.monitoring:9091"),
        *("--metrics-label", "namespace=scheduling", "--period", "1h"),
    ]
    assert environment(container)["NOONMARK_DATABASE_URL"] == "noonmark-reader/dsn"
    assert container["resources"] == {"requests": {"cpu": "50m", "memory": "128Mi"}}


def test_the_command_accepts_what_the_check_passes(monkeypatch):
    """Only the database is missing here, so options and settings are right."""
    (container,) = of_kind("full", "CronJob")["verify"]["spec"]["jobTemplate"]["spec"]["template"]["spec"][
        "containers"
    ]
    monkeypatch.setenv("NOONMARK_DATABASE_URL", "postgresql://x@127.0.0.1:1/none")

    assert "cannot connect to the database" in call(*container["args"], code=3).stderr


def test_the_check_reaches_names_postgres_and_what_its_values_name_and_nothing_else():
    policy = of_kind("full", "NetworkPolicy")["verify"]["spec"]
    ports = [sorted(port["port"] for port in rule["ports"]) for rule in policy["egress"]]
    assert ports == [[53, 53], [5432], [9092, 9093, 9094], [9091]]
    pod = of_kind("full", "CronJob")["verify"]["spec"]["jobTemplate"]["spec"]["template"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_the_check_has_a_name_that_kubernetes_accepts_whatever_the_release_is_called():
    (minimal,) = (path for path in chart.SETS if path.stem == "minimal")
    more = f"\nfullnameOverride: {'n' * 48}\nverify: {{enabled: true}}\n"
    done = chart.template(minimal.read_text() + more)
    assert done.returncode == 0, done.stderr
    (cron,) = [m for m in yaml.safe_load_all(done.stdout) if m and m["kind"] == "CronJob"]
    assert len(cron["metadata"]["name"]) <= 52


# Kafka and Postgres.


def test_certificates_are_files_and_credentials_are_references():
    settings = told("tls-sasl-mtls", "worker-default")
    assert (
        settings.items()
        >= {
            "PGSSLMODE": "verify-full",
            "PGSSLROOTCERT": "/etc/noonmark/postgres/ca.crt",
            "PGSSLCERT": "/etc/noonmark/postgres/tls.crt",
            "PGSSLKEY": "/etc/noonmark/postgres/tls.key",
            "NOONMARK_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "NOONMARK_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
            "NOONMARK_KAFKA_SASL_USERNAME": "kafka-user/username",
            "NOONMARK_KAFKA_SASL_PASSWORD": "kafka-user/password",
            "NOONMARK_KAFKA_SSL_CA_LOCATION": "/etc/noonmark/kafka/ca.crt",
            "NOONMARK_KAFKA_SSL_CERTIFICATE_LOCATION": "/etc/noonmark/kafka/tls.crt",
            "NOONMARK_KAFKA_SSL_KEY_LOCATION": "/etc/noonmark/kafka/tls.key",
        }.items()
    )
    spec = pod("tls-sasl-mtls", "worker-default")
    (kafka,) = [v["projected"] for v in spec["volumes"] if v["name"] == "kafka-tls"]
    # libpq and librdkafka run as 65532: its group may read, nobody else.
    assert kafka["defaultMode"] == 0o440
    assert [source["secret"] for source in kafka["sources"]] == [
        {"name": "cluster-ca-cert", "items": [{"key": "ca.crt", "path": "ca.crt"}]},
        {
            "name": "kafka-user-tls",
            "items": [{"key": "user.crt", "path": "tls.crt"}, {"key": "user.key", "path": "tls.key"}],
        },
    ]
    (job,) = of_kind("tls-sasl-mtls", "Job").values()
    for container in chart.containers(job["spec"]["template"]["spec"]):
        assert environment(container).items() >= {"PGSSLKEY": "/etc/noonmark/postgres/tls.key"}.items()


def test_large_numbers_and_lists_are_written_as_settings_read_them():
    settings = told("full", "api")
    assert settings["NOONMARK_MAX_SUBMISSION_BYTES"] == "1048576"
    assert settings["NOONMARK_API_TRUSTED_PROXIES"] == "10.0.0.0/8,fd00::/8"
    assert settings["NOONMARK_START_OBJECTIVE_SECONDS"] == "2.5,30,86400"
    assert settings["NOONMARK_API_CONNECTIONS"] == "32"


# The rest.


def test_who_a_pod_runs_as_can_be_left_to_the_cluster():
    for name, spec in chart.pods(chart.rendered()["no-hooks"]):
        told = spec["securityContext"]
        assert told.keys() == {"runAsNonRoot", "fsGroupChangePolicy", "seccompProfile"}, name


def test_services_listen_where_they_are_told():
    assert told("minimal", "api")["NOONMARK_API_HOST"] == "0.0.0.0"
    for name in ("api", "trigger", "worker-default"):
        assert told("no-hooks", name)["NOONMARK_METRICS_HOST"] == "::"
    assert told("no-hooks", "api")["NOONMARK_API_HOST"] == "::"


def test_pods_that_only_come_and_go_fit_into_a_namespace_with_rules_too():
    """Quotas, required labels, taints, and a service mesh whose sidecar would keep a Job from ending."""
    job = of_kind("full", "Job")["migrate"]["spec"]["template"]
    test = of_kind("full", "Pod")["test"]
    mesh = {"sidecar.istio.io/inject": "false"}
    assert job["metadata"]["labels"].items() >= {"example.com/team": "platform", **mesh}.items()
    assert test["metadata"]["labels"]["example.com/team"] == "platform"
    for spec in (job["spec"], test["spec"]):
        assert spec["nodeSelector"] == {"kubernetes.io/os": "linux"}
        assert spec["tolerations"][0]["key"] == "batch"
        assert all(container["resources"]["requests"] for container in chart.containers(spec))


def test_the_migration_takes_what_is_set_for_all_pods():
    job = of_kind("full", "Job")["migrate"]["spec"]["template"]
    assert job["metadata"]["annotations"]["example.com/owner"] == "platform"
    assert job["spec"]["affinity"].keys() == {"nodeAffinity"}
    assert job["spec"]["volumes"][-1] == {"name": "zones", "configMap": {"name": "zones"}}
    for container in chart.containers(job["spec"]):
        assert environment(container)["TZ"] == "UTC"
        assert container["envFrom"] == [{"configMapRef": {"name": "proxies"}}]
        assert container["volumeMounts"][-1] == {"name": "zones", "mountPath": "/zones", "readOnly": True}


def test_images_come_by_digest_where_one_is_given():
    for _, spec in chart.pods(chart.rendered()["full"]):
        for container in chart.containers(spec):
            assert container["image"].startswith("registry.example.com/noonmark:0.3.0@sha256:0123")
            assert container["imagePullPolicy"] == "Always"
        assert spec["imagePullSecrets"] == [{"name": "registry"}]


def test_a_name_of_the_users_own_is_used_everywhere():
    names = {m["metadata"]["name"] for m in chart.rendered()["single-replica"]}
    assert all(name == "scheduler" or name.startswith("scheduler-") for name in names)


def test_the_ingress_leads_to_the_api():
    ingress = of_kind("full", "Ingress")["api"]
    (rule,) = ingress["spec"]["rules"]
    assert rule["host"] == "scheduler.example.com"
    backend = rule["http"]["paths"][0]["backend"]["service"]
    service = of_kind("full", "Service")["api"]
    assert backend == {
        "name": service["metadata"]["name"],
        "port": {"name": service["spec"]["ports"][0]["name"]},
    }


def test_helm_test_asks_the_api_with_the_command_line():
    test = of_kind("full", "Pod")["test"]
    ready, call = test["spec"]["containers"]
    assert ready["args"] == [
        "healthcheck",
        "--ready",
        "--host",
        "test-noonmark-api-metrics",
        "--port",
        "9090",
    ]
    assert call["args"] == ["namespace", "list"]
    assert environment(call) == {
        "NOONMARK_API_URL": "http://test-noonmark-api:8080",
        "NOONMARK_API_KEY": "test-key/key",
    }


def test_a_changed_setting_changes_the_pod():
    annotations = [
        of_kind(values, "Deployment")["api"]["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        for values in ("minimal", "network-locked")
    ]
    assert annotations[0] != annotations[1]
