"""Rules, runbooks, dashboards and examples of monitoring: valid, of metrics that exist, and firing when they should."""

from __future__ import annotations

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
import typer.main
import yaml
from tests.chart.alert_rules import NOT_RECORDED, RECORDED, RECORDINGS, ROOT, RULES, read_series, rule_groups
from tests.support.alert_states.states import STATES
from tests.support.deploy_tools import tool
from tests.support.doc_blocks import blocks_of
from tests.support.promql import problems, selectors
from tests.support.recordings import input_series, judge

from noonmark.cli.main import app
from noonmark.telemetry.dashboards.files import files
from noonmark.telemetry.metrics import REGISTRY, TABLE

DASHBOARDS = ROOT / "helm/noonmark/files/dashboards"
RUNBOOKS = ROOT / "docs/runbooks"
EXAMPLES = ROOT / "examples/monitoring"
CASES = sorted((Path(__file__).parent / "promtool").glob("*.yaml"))
PARTS = ("## Meaning", "## Impact", "## Diagnosis", "## Mitigation", "## When to ignore")
RUNBOOK_URL = "https://github.com/noonmark/noonmark/blob/main/docs/runbooks/{}.md"


def run(*command: object) -> str:
    """Run a tool; fail with all that it says."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rules(kind: str) -> list[dict]:
    return [rule for group in rule_groups() for rule in group["rules"] if kind in rule]


@cache
def known() -> dict[str, frozenset[str]]:
    """The labels of every metric that a service shows and every series that is recorded."""
    labels = {row.name: frozenset(row.labels) for row in TABLE}
    labels |= {family.name: frozenset() for family in REGISTRY.collect() if family.name not in labels}
    labels |= {
        "process_cpu_seconds_total": frozenset(),
        "up": frozenset(),
        "ALERTS": frozenset({"alertname"}),
    }
    for rule in rules("record"):
        by = re.search(r"\bby \(([^)]*)\)", rule["expr"])
        summed = set(re.findall(r"\w+", by[1])) - {"le"} if by else set()
        labels[rule["record"]] = frozenset(summed | set(rule.get("labels", {})))
    return labels


HISTOGRAMS = frozenset(row.name for row in TABLE if row.kind == "histogram")


def wrong(expr: str) -> list[str]:
    return problems(expr, known(), HISTOGRAMS)


# Rules.


def test_promtool_finds_the_rules_right():
    said = run(tool("promtool"), "check", "rules", RULES / "recording.yaml", RULES / "alerting.yaml")
    assert said.count("SUCCESS") == 2


def test_rules_read_series_that_exist_by_labels_that_they_have():
    every = rules("record") + rules("alert")
    found = {rule.get("record") or rule["alert"]: wrong(rule["expr"]) for rule in every}
    assert {name: found[name] for name in found if found[name]} == {}


@pytest.mark.parametrize(
    ("expr", "problem"),
    [
        ("rate(noonmark_gone_total[5m])", "no series noonmark_gone_total"),
        ('noonmark_start_backlog{kind="http"}', "noonmark_start_backlog has no label kind"),
        ("sum by (kind) (noonmark_start_backlog)", "nothing here has the label kind"),
        ("noonmark_claim_seconds", "no series noonmark_claim_seconds"),
        ("noonmark_start_backlog_bucket", "no series noonmark_start_backlog_bucket"),
        ("sum by (le) (rate(noonmark_claim_seconds_count[5m]))", "nothing here has the label le"),
    ],
)
def test_a_wrong_expression_is_noticed(expr, problem):
    assert wrong(expr) == [problem]


def test_every_alert_says_how_bad_it_is_what_is_wrong_and_where_to_read_on():
    for rule in rules("alert"):
        name, notes = rule["alert"], rule["annotations"]
        assert rule["labels"].keys() == {"severity"}, name
        assert rule["labels"]["severity"] in {"critical", "warning", "info", "none"}, name
        assert notes.keys() == {"summary", "description", "runbook_url"}, name
        assert notes["runbook_url"] == RUNBOOK_URL.format(name)
        used = set(re.findall(r"\$labels\.(\w+)", notes["summary"] + notes["description"]))
        read = {label for one in selectors(rule["expr"]) for label in known().get(one.name, ())}
        assert used <= read | {"job", "instance", "lane", "route", "statement"}, name


def test_no_name_is_given_twice():
    names = [rule["alert"] for rule in rules("alert")] + [rule["record"] for rule in rules("record")]
    labelled = {"noonmark:start_objective_seconds", "noonmark:start_slo_error_budget"}
    assert len(set(names) - labelled) == len([name for name in names if name not in labelled])


def test_the_objectives_of_the_rules_are_those_of_the_settings():
    from noonmark.settings import Settings  # noqa: PLC0415

    recorded = {
        rule["labels"]["lane"]: float(re.fullmatch(r"vector\((.+)\)", rule["expr"])[1])
        for rule in rules("record")
        if rule["record"] == "noonmark:start_objective_seconds"
    }
    default = Settings.model_fields["start_objective_seconds"].default
    assert recorded == dict(zip(("high", "normal", "low"), default, strict=True))


def test_alerts_on_single_events_see_what_a_new_process_has_counted_already():
    """`increase` does not; see the head of alerting.yaml."""
    steady = {"NoonmarkWatchdogBeatsFail", "NoonmarkOwnershipFlaps"}  # they look for what goes on
    counting = {rule["alert"]: rule["expr"] for rule in rules("alert") if "(increase(" in rule["expr"]}
    blind = {name for name, expr in counting.items() if not re.search(r"unless|process_start", expr)}
    assert blind == steady


# Alerts that fire.


def needed(text: str) -> list[dict]:
    """The groups with the rules that a file of cases asks for, and what these read: the rest takes promtool long."""
    wanted = set(re.findall(r'alertname="(\w+)"', text))
    recorded = {rule["record"] for rule in rules("record")}
    while True:
        read = {
            one.name
            for group in rule_groups()
            for rule in group["rules"]
            if (rule.get("alert") or rule["record"]) in wanted
            for one in selectors(rule["expr"])
        }
        if (read & recorded) <= wanted:
            break
        wanted |= read & recorded
    return [
        {**group, "rules": kept}
        for group in rule_groups()
        if (kept := [rule for rule in group["rules"] if (rule.get("alert") or rule["record"]) in wanted])
    ]


def test_every_alert_fires_for_its_trouble_and_not_without_it(tmp_path):
    promtool = tool("promtool")

    def judge(case: Path) -> str:
        text = case.read_text()
        (tmp_path / f"rules-{case.name}").write_text(yaml.safe_dump({"groups": needed(text)}))
        cases = {**yaml.safe_load(text), "rule_files": [f"rules-{case.name}"]}
        (tmp_path / case.name).write_text(yaml.safe_dump(cases))
        return run(promtool, "test", "rules", tmp_path / case.name)

    with ThreadPoolExecutor(2) as threads:
        assert all("SUCCESS" in said for said in threads.map(judge, CASES))


def test_every_alert_has_a_case_that_fires_and_one_that_does_not():
    fires, quiet = set(), set()
    for case in CASES:
        for test in yaml.safe_load(case.read_text())["tests"]:
            for asked in test["promql_expr_test"]:
                name = re.search(r'alertname="(\w+)"', asked["expr"])[1]
                (fires if asked["exp_samples"] else quiet).add(name)
                # Installation b is there, and is not told of.
                if asked["exp_samples"] and any(
                    'namespace="b"' in one["series"] for one in test["input_series"]
                ):
                    quiet.add(name)
    alerts = {rule["alert"] for rule in rules("alert")}
    assert fires == alerts
    assert quiet == alerts - {"NoonmarkDeadMansSwitch"}


@pytest.mark.parametrize("state", RECORDED)
def test_on_what_real_services_showed_these_alerts_fire_and_no_others(state, tmp_path):
    text = (RECORDINGS / f"{state}.series").read_text()
    assert judge(tool("promtool"), rule_groups(), text, RECORDED[state], tmp_path) == ""


def test_recordings_have_the_series_that_rules_read_of_services_that_exist():
    """Of a release whose metrics have changed, record again: tests/acceptance/test_alert_recordings.py."""
    assert {path.stem for path in RECORDINGS.glob("*.series")} == set(RECORDED)
    metrics = {"up", "process_start_time_seconds", "process_cpu_seconds_total"}
    metrics |= {
        row.name + end
        for row in TABLE
        for end in (("_bucket", "_count") if row.kind == "histogram" else ("",))
    }
    for state in RECORDED:
        found = {
            re.match(r"\w+", one["series"])[0]
            for one in input_series((RECORDINGS / f"{state}.series").read_text())
        }
        assert found <= read_series(), state
        assert found <= metrics, state


def test_every_alert_fires_on_a_recording_or_says_why_not_and_is_quiet_on_one():
    alerts = {rule["alert"] for rule in rules("alert")}
    recorded = set().union(*RECORDED.values())
    assert alerts == recorded | NOT_RECORDED.keys()
    assert not recorded & NOT_RECORDED.keys()
    assert all(NOT_RECORDED.values())
    # A healthy installation fires nothing.
    assert RECORDED["healthy"] == set()


def test_every_recording_can_be_made_again():
    assert set(STATES) == set(RECORDED)


# Runbooks.


def test_every_alert_has_its_runbook_and_every_runbook_its_alert():
    assert {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"} == {
        rule["alert"] for rule in rules("alert")
    }


def test_runbooks_have_all_their_parts_and_ask_for_series_that_exist():
    for rule in rules("alert"):
        page = RUNBOOKS / f"{rule['alert']}.md"
        text = page.read_text()
        assert [line for line in text.splitlines() if line.startswith("## ")] == list(PARTS), page.name
        assert text.startswith(f"# {rule['alert']}\n"), page.name
        assert f"Severity `{rule['labels']['severity']}`" in text, page.name
        for block in blocks_of(page, "promql"):
            for line in block.code.splitlines():
                assert wrong(line) == [], f"{page.name}: {line}"
        for link in re.findall(r"\]\((\w+\.md)\)", text):
            assert (RUNBOOKS / link).exists(), f"{page.name}: {link}"


def test_runbooks_name_commands_and_options_that_exist():
    root = typer.main.get_command(app)
    for page in [*sorted(RUNBOOKS.glob("*.md")), ROOT / "docs/monitoring.md"]:
        for line in re.findall(r"(?:^|`)(noonmark [a-z][^`\n|]*)", page.read_text(), re.MULTILINE):
            assert unknown(root, line.split()[1:]) == "", f"{page.name}: {line}"


def unknown(command, words: list[str]) -> str:
    """The first word that the command line would not take."""
    while (commands := getattr(command, "commands", None)) and words and not words[0].startswith("-"):
        if words[0] not in commands:
            return words[0]
        command, words = commands[words[0]], words[1:]
    options = {name for parameter in command.params for name in [*parameter.opts, *parameter.secondary_opts]}
    return next((word for word in words if word.startswith("-") and word not in options), "")


# Dashboards.


def test_the_dashboards_are_what_the_module_writes():
    assert {path.name: path.read_text() for path in DASHBOARDS.glob("*.json")} == files(), (
        "run: python -m noonmark.telemetry.dashboards helm/noonmark/files/dashboards"
    )


def panels() -> list[tuple[str, dict]]:
    return [(name, panel) for name, text in files().items() for panel in json.loads(text)["panels"]]


def queries() -> list[tuple[str, str]]:
    """Every query, with what Grafana puts in for its variables."""
    return [
        (f"{name}: {panel['title']}", re.sub(r"\$__(rate_interval|range)\b", "5m", target["expr"]))
        for name, panel in panels()
        for target in panel.get("targets", ())
    ]


def test_panels_are_numbered_apart_described_and_do_not_overlap():
    assert len({json.loads(text)["uid"] for text in files().values()}) == 4
    for name, text in files().items():
        board = json.loads(text)
        numbers = [panel["id"] for panel in board["panels"]]
        assert len(set(numbers)) == len(numbers), name
        covered: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            grid = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(grid["x"], grid["x"] + grid["w"])
                for y in range(grid["y"], grid["y"] + grid["h"])
            }
            assert not cells & covered, f"{name}: {panel['title']}"
            assert max(x for x, _ in cells) < 24
            covered |= cells
            if panel["type"] not in ("row", "text"):
                assert panel["description"].endswith("."), f"{name}: {panel['title']}"
                assert panel["fieldConfig"]["defaults"]["unit"], f"{name}: {panel['title']}"
                assert panel["datasource"]["uid"] == "${datasource}"


def test_panels_use_the_variables_of_their_dashboard_only():
    for name, text in files().items():
        board = json.loads(text)
        variables = {variable["name"] for variable in board["templating"]["list"]}
        used = set(re.findall(r"\$\{?([a-z]\w*)", text)) - {"__rate_interval", "__range"}
        assert used == variables, name


def test_panels_read_series_that_exist_by_labels_that_they_have():
    assert [(where, wrong(expr)) for where, expr in queries() if wrong(expr)] == []


def test_promtool_understands_every_query_of_a_panel(tmp_path):
    made = {"groups": [{"name": "panels", "rules": []}]}
    for number, (where, expr) in enumerate(queries()):
        made["groups"][0]["rules"].append(
            {"record": f"panel:{number}", "expr": expr, "labels": {"panel": where}}
        )
    (tmp_path / "panels.yaml").write_text(yaml.safe_dump(made))
    assert f"{len(queries())} rules found" in run(
        tool("promtool"), "check", "rules", tmp_path / "panels.yaml"
    )


# Examples.


def test_promtool_and_amtool_find_the_examples_right():
    said = run(tool("promtool"), "check", "config", EXAMPLES / "prometheus.yml")
    assert "valid prometheus config" in said
    assert "SUCCESS" in run(tool("amtool"), "check-config", EXAMPLES / "alertmanager.yml")


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ("alertname=NoonmarkDeadMansSwitch severity=none", "dead-mans-switch"),
        ("alertname=NoonmarkTriggerDead severity=critical namespace=jobs", "pagerduty,slack"),
        ("alertname=NoonmarkStartSloBurnsFast severity=critical lane=high", "pagerduty,slack"),
        ("alertname=NoonmarkMessageForged severity=critical", "security"),
        ("alertname=NoonmarkOldestXminHeld severity=warning", "opsgenie,slack"),
        ("alertname=NoonmarkVersionsMixed severity=info", "nobody"),
        # Of the observer, which sends its alerts itself.
        ("alertname=NoonmarkLate severity=warning service=noonmark namespace=billing", "opsgenie,slack"),
        ("alertname=SomethingElse", "slack"),
    ],
)
def test_alerts_go_to_their_receivers(labels, receivers):
    config = EXAMPLES / "alertmanager.yml"
    said = run(tool("amtool"), "config", "routes", "test", f"--config.file={config}", *labels.split())
    assert said.split() == [receivers]


def test_alerts_that_silence_others_exist_and_so_do_those():
    alerts = {rule["alert"] for rule in rules("alert")}
    for rule in yaml.safe_load((EXAMPLES / "alertmanager.yml").read_text())["inhibit_rules"]:
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
            pattern = re.fullmatch(r'alertname =~? "?([^"]+)"?', matcher)[1]
            many = re.fullmatch(r"(\w+)\(([^()]*)\)", pattern)
            names = [many[1] + end for end in many[2].split("|")] if many else pattern.split("|")
            for name in names:
                assert any(re.fullmatch(name, alert) for alert in alerts), name
