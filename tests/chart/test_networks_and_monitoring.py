"""Who may reach what, and how the installation is watched."""

import json

import yaml
from tests.support import chart
from tests.support.chart import of_kind

RULES = sorted((chart.CHART / "files" / "rules").glob("*.yaml"))
DASHBOARDS = sorted((chart.CHART / "files" / "dashboards").glob("*.json"))


# Networks.


def ports(rules):
    return [sorted(port["port"] for port in rule.get("ports", [])) for rule in rules]


def test_everything_is_denied_that_no_policy_names():
    policies = [m for m in chart.rendered()["minimal"] if m["kind"] == "NetworkPolicy"]
    closed = [m["spec"] for m in policies if m["metadata"]["name"] == "test-noonmark"]
    labels = {"app.kubernetes.io/name": "noonmark", "app.kubernetes.io/instance": "test"}
    assert closed == [{"podSelector": {"matchLabels": labels}, "policyTypes": ["Ingress", "Egress"]}]
    assert {m["spec"]["podSelector"]["matchLabels"].get("app.kubernetes.io/component") for m in policies} == {
        *(None, "api", "intake", "trigger", "dispatcher", "worker", "observer", "migrate", "test")
    }


def test_services_reach_names_postgres_and_kafka_and_nothing_else():
    for name in ("api", "intake", "trigger", "dispatcher", "observer", "migrate"):
        assert ports(of_kind("minimal", "NetworkPolicy")[name]["spec"]["egress"]) == [
            [53, 53],
            [5432],
            [9092],
        ]


def test_those_who_check_tokens_reach_the_identity_provider():
    policies = of_kind("full", "NetworkPolicy")
    for name in ("api", "intake", "trigger", "dispatcher", "migrate"):
        further = ports(policies[name]["spec"]["egress"])[3:]
        assert further == [[4318], *([[443]] if name in ("api", "intake") else [])], name


def test_jobs_reach_the_public_internet_and_the_networks_that_are_allowed():
    rule = of_kind("minimal", "NetworkPolicy")["worker-default"]["spec"]["egress"][-1]
    assert ports([rule]) == [[80, 443]]
    public, public6 = (peer["ipBlock"] for peer in rule["to"])
    assert public["except"] == [
        *("10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16")
    ]
    assert public6["except"] == ["fc00::/7", "fe80::/10"]
    policy = of_kind("full", "NetworkPolicy")["worker-default"]
    allowed = [peer["ipBlock"]["cidr"] for peer in policy["spec"]["egress"][-1]["to"]]
    assert allowed == ["10.20.0.0/16", "10.30.0.1/32", "fd00::1/128"]


def test_what_is_named_is_all_that_is_open():
    policies = of_kind("network-locked", "NetworkPolicy")
    kafka = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "data"}}}
    for name, policy in policies.items():
        if name in {"test", "test-noonmark"}:
            continue
        dns, database, brokers, traces = policy["spec"]["egress"][:4]
        assert dns["to"][0]["podSelector"] == {"matchLabels": {"k8s-app": "kube-dns"}}
        assert (database["to"], ports([database])) == ([{"ipBlock": {"cidr": "10.1.2.3/32"}}], [[6432]])
        assert (brokers["to"], ports([brokers, traces])) == ([kafka], [[9093], [443]])
    assert ports(policies["observer"]["spec"]["egress"][4:]) == [[443], [9093]]
    assert ports(policies["watchdog"]["spec"]["egress"][4:]) == [[443]]
    assert policies["worker-default"]["spec"]["egress"][4:] == [
        {"to": [{"namespaceSelector": {"matchLabels": {"jobs": "true"}}}]}
    ]
    assert policies["migrate"]["spec"]["egress"][4:] == []


def test_the_api_and_the_metrics_are_open_to_those_who_are_named():
    calls, scrapes = of_kind("network-locked", "NetworkPolicy")["api"]["spec"]["ingress"]
    assert [peer.get("namespaceSelector") for peer in calls["from"]] == [
        {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}},
        None,  # the pod of `helm test`
    ]
    assert scrapes["from"][0] == {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
    }
    (only,) = of_kind("network-locked", "NetworkPolicy")["trigger"]["spec"]["ingress"]
    assert ports([only]) == [["metrics"]]


def test_policies_name_pods_that_exist():
    manifests = chart.rendered()["network-locked"]
    labels = [
        m["spec"]["template"]["metadata"]["labels"] for m in manifests if m["kind"] in {"Deployment", "Job"}
    ]
    labels += [m["metadata"]["labels"] for m in manifests if m["kind"] == "Pod"]
    for policy in of_kind("network-locked", "NetworkPolicy").values():
        selector = policy["spec"]["podSelector"]["matchLabels"].items()
        assert any(selector <= pod_labels.items() for pod_labels in labels)


# Monitoring.


def test_targets_have_the_job_that_rules_know_them_by():
    (monitor,) = of_kind("monitoring", "PodMonitor").values()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["relabelings"][0] == {
        "sourceLabels": ["__meta_kubernetes_pod_label_app_kubernetes_io_component"],
        "targetLabel": "job",
        "replacement": "noonmark-$1",
    }
    assert endpoint["relabelings"][1]["targetLabel"] == "cluster"
    api = of_kind("monitoring", "ServiceMonitor")["api"]
    assert api["spec"]["endpoints"][0]["relabelings"][0] == {
        "targetLabel": "job",
        "replacement": "noonmark-api",
    }
    assert api["metadata"]["labels"]["release"] == "prometheus"
    headless = of_kind("monitoring", "Service")["api-metrics"]
    assert headless["spec"]["clusterIP"] == "None"
    assert api["spec"]["selector"]["matchLabels"].items() <= headless["metadata"]["labels"].items()
    others = monitor["spec"]["selector"]["matchExpressions"][0]["values"]
    assert others == ["intake", "trigger", "dispatcher", "worker", "observer", "watchdog"]


def test_every_file_of_rules_becomes_an_object_with_the_same_rules():
    made = of_kind("monitoring", "PrometheusRule")
    assert set(made) == {path.stem.replace("_", "-") for path in RULES}
    assert made
    for path in RULES:
        rules = yaml.safe_load(path.read_text(encoding="utf-8"))
        manifest = made[path.stem.replace("_", "-")]
        assert manifest["spec"] == rules
        assert manifest["metadata"]["labels"]["release"] == "prometheus"


def test_rules_judge_by_the_objectives_that_the_services_have():
    groups = of_kind("keda", "PrometheusRule")["recording"]["spec"]["groups"]
    told = [rule for group in groups for rule in group["rules"] if rule["expr"].startswith("vector(")]
    objectives = {r["labels"]["lane"]: r["expr"] for r in told if r["record"].endswith("objective_seconds")}
    assert objectives == {"high": "vector(2.5)", "normal": "vector(30)", "low": "vector(600)"}
    assert len(told) == 6


def test_every_dashboard_becomes_a_config_map_that_grafana_finds():
    made = of_kind("monitoring", "ConfigMap")
    assert set(made) == {f"dashboard-{path.stem.replace('_', '-')}" for path in DASHBOARDS}
    for manifest in made.values():
        ((name, text),) = manifest["data"].items()
        assert json.loads(text)["title"], name
        assert manifest["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert manifest["metadata"]["annotations"] == {"grafana_folder": "noonmark"}
