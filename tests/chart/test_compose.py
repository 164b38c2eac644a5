"""What docker-compose.yml promises, read as `docker compose` reads it; where an engine answers it is started too."""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.cli import command_of
from tests.support.deploy_tools import tool
from tests.support.doc_blocks import blocks_of
from tests.support.guarded_connections import connections

from noonmark.cli.main import app
from noonmark.devstack.kafka.config import DEFAULT_SETTINGS as KAFKA_SETTINGS
from noonmark.devstack.kafka.jars import kafka_version
from noonmark.devstack.postgres.server import DEFAULT_SETTINGS as POSTGRES_SETTINGS
from noonmark.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
PASSWORDS = {"POSTGRES_PASSWORD": "of-postgres", "GRAFANA_PASSWORD": "of-grafana"}
OURS = {"migrate", "api", "intake", "trigger", "dispatcher", "worker", "observer", "watchdog", "demo"}
ONE_SHOT = {"migrate", "demo"}
OTHERS = {"kafka", "postgres", "prometheus", "alertmanager", "grafana"}


def read(profiles: str, *overrides: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    outside = {name: value for name, value in os.environ.items() if name not in {*PASSWORDS, "COMPOSE_FILE"}}
    return subprocess.run(
        [tool("composecheck"), FILE, *overrides],
        check=False,
        capture_output=True,
        text=True,
        env={**outside, "COMPOSE_PROFILES": profiles, **variables},
    )


@cache
def services(profiles: str = "*") -> dict[str, Any]:
    done = read(profiles, **PASSWORDS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["services"]


def test_the_demo_is_a_profile_and_all_else_starts():
    assert services("").keys() == (OURS | OTHERS) - {"demo"}
    assert services("demo").keys() == OURS | OTHERS


@pytest.mark.parametrize("missing", PASSWORDS)
def test_a_password_that_is_missing_is_told_before_anything_starts(missing):
    done = read("", **{name: value for name, value in PASSWORDS.items() if name != missing})

    assert done.returncode == 1
    assert f"{missing} is missing a value: copy .env.example to .env and set it there" in done.stderr


def test_the_example_of_the_environment_names_what_can_be_set_and_holds_no_password():
    given = dict(re.findall(r"^#?([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE))

    assert given.keys() == set(re.findall(r"\$\{(\w+)", FILE.read_text()))
    assert set(given.values()) == {""}
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()


def test_every_image_is_pinned():
    images = {name: service["image"] for name, service in services().items()}

    assert {images[name] for name in OURS} == {f"noonmark:{services()['api']['image'].partition(':')[2]}"}
    assert [image for image in images.values() if not re.search(r":v?\d+\.\d+(\.\d+)?$", image)] == []
    assert images["kafka"] == f"apache/kafka:{kafka_version()}"


def test_our_image_is_built_once_and_never_looked_up_in_a_registry():
    """With `build` in each service, compose builds an image for each, and gives all of them the same name."""
    ours = {name: services()[name] for name in OURS}

    assert {name for name, service in ours.items() if "build" in service} == {"migrate"}
    assert {service["pull_policy"] for service in ours.values()} == {"never"}
    assert {name for name in OURS - {"migrate"} if not needed_by(name) & {"migrate"}} == set()


def needed_by(name: str) -> set[str]:
    """Names of all services that compose starts before one, and of those that these need."""
    direct = set(services()[name].get("depends_on", {}))
    return direct.union(*(needed_by(of) for of in direct))


def test_ports_are_on_the_loopback_only():
    published = {name: service["ports"] for name, service in services().items() if service.get("ports")}

    assert published.keys() == {"api", "kafka", "prometheus", "alertmanager", "grafana"}
    assert {port["host_ip"] for ports in published.values() for port in ports} == {"127.0.0.1"}


def test_no_container_can_do_more_than_it_needs():
    for name, service in services().items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service.get("read_only") or name == "kafka", name
        assert not {"privileged", "network_mode", "pid", "devices"} & service.keys(), name
        assert {"cpus", "memory", "pids"} <= service["deploy"]["resources"]["limits"].keys(), name
        assert service["logging"]["options"].keys() == {"max-size", "max-file"}, name
        assert bool(service.get("cap_add")) == (name == "postgres"), name


def test_what_runs_starts_again_and_says_how_it_is():
    for name, service in services().items():
        assert (service["restart"] == "unless-stopped") == (name not in ONE_SHOT), name
        # The check of our image is in the image.
        assert (service.get("healthcheck") == {"disable": True}) == (name in ONE_SHOT), name
        assert ("test" in service.get("healthcheck", {})) == (name in OTHERS), name


@pytest.mark.parametrize("name", ["kafka", "postgres"])
def test_a_server_that_recovers_from_a_crash_is_waited_for(name):
    """What others wait for is not unhealthy while it starts: compose then gives up and starts none of them."""
    assert services()[name]["healthcheck"]["start_period"] == "10m0s"
    assert {services()[other]["depends_on"][name]["condition"] for other in OURS - {"demo"}} == {
        "service_healthy"
    }


def test_the_check_of_the_broker_fits_beside_the_broker():
    kafka = services()["kafka"]
    broker = int(re.search(r"-Xmx(\d+)m", kafka["environment"]["KAFKA_HEAP_OPTS"])[1])
    (check,) = [int(found) for found in re.findall(r"-Xmx(\d+)m", " ".join(kafka["healthcheck"]["test"]))]
    limit = int(kafka["deploy"]["resources"]["limits"]["memory"]) / 2**20
    assert broker + check + 256 <= limit  # what a broker needs beside its heap


def overrides_of_the_page() -> list[str]:
    return [block.code for block in blocks_of(ROOT / "docs" / "docker.md", "yaml")]


def test_the_override_of_the_page_mounts_nothing_within_a_folder_that_is_read_only(tmp_path):
    override = tmp_path / "docker-compose.override.yml"
    override.write_text(overrides_of_the_page()[0])

    worker = json.loads(read("", override, **PASSWORDS).stdout)["services"]["worker"]

    assert [volume["target"] for volume in worker["volumes"]] == ["/srv/app"]
    assert worker["environment"].keys() > services()["worker"]["environment"].keys()


def test_with_servers_elsewhere_each_service_connects_as_its_own_user(tmp_path):
    names = OURS - {"demo"}
    for name in names:
        own = (f"DATABASE_URL=url of {name}", f"KAFKA_SASL_USERNAME={name}", f"KAFKA_SASL_PASSWORD=of {name}")
        (tmp_path / f"{name}.env").write_text("".join(f"NOONMARK_{line}\n" for line in own))
    override = tmp_path / "docker-compose.override.yml"
    override.write_text(overrides_of_the_page()[1].replace("./users", str(tmp_path)))

    done = read("", override, **PASSWORDS)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["services"]
    assert not {"kafka", "postgres"} & found.keys()
    for name in names:
        expected = connections(
            database_url=f"url of {name}",
            database_ca="/etc/noonmark/postgres-ca.crt",
            bootstrap="kafka.example.com:9093",
            topic_prefix="noonmark",
            kafka_user=name,
            kafka_password=f"of {name}",
            kafka_ca="/etc/noonmark/kafka-ca.crt",
        )
        # The prefix is the default one.
        del expected["NOONMARK_TOPIC_PREFIX"]
        told = found[name]["environment"]
        assert {key: told[key] for key in told if key.startswith("PG") or key in expected} == expected, name
        assert not {"kafka", "postgres"} & (found[name].get("depends_on") or {}).keys(), name
        # Nothing but certificates: no service can read the credentials of another one.
        mounted = {volume["target"]: volume["source"] for volume in found[name]["volumes"]}
        assert mounted["/etc/noonmark"] == str(ROOT / "certificates"), name


def test_a_service_waits_for_the_migration_and_the_servers():
    wanted = {
        "migrate": "service_completed_successfully",
        "kafka": "service_healthy",
        "postgres": "service_healthy",
    }
    for name in OURS - ONE_SHOT:
        waits = {of: entry["condition"] for of, entry in services()[name]["depends_on"].items()}
        assert waits == wanted, name


def test_a_stop_leaves_time_to_drain():
    drain = Settings.model_fields["drain_seconds"].default
    for name in OURS - ONE_SHOT:
        assert int(services()[name]["stop_grace_period"].removesuffix("s")) > drain + 4, name


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_command_is_one_of_noonmark(name):
    command, words = (
        command_of(app),
        [word.replace("/srv/app", str(ROOT)) for word in services()[name]["command"]],
    )
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]

    command.make_context(name, words, resilient_parsing=False)


def test_variables_of_ours_are_settings_with_values_that_are_taken(monkeypatch):
    for service in services().values():
        given = {n: v for n, v in (service.get("environment") or {}).items() if n.startswith(PREFIX)}
        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            monkeypatch.delenv(name)
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        assert Settings.examine()[1] == []


def test_the_database_password_stands_in_no_address():
    told = services()["api"]["environment"]
    assert "of-postgres" not in told["NOONMARK_DATABASE_URL"]
    assert told["PGPASSWORD"] == services()["postgres"]["environment"]["POSTGRES_PASSWORD"] == "of-postgres"


def test_every_file_that_is_mounted_exists():
    mounts = [mount for service in services().values() for mount in service.get("volumes", [])]
    bound = [mount for mount in mounts if mount["type"] == "bind"]

    assert [mount["source"] for mount in bound if not Path(mount["source"]).exists()] == []
    assert [mount["source"] for mount in bound if not mount.get("read_only")] == []
    assert {mount["type"] for mount in mounts} == {"bind", "volume"}


def test_the_handlers_and_jobs_that_commands_name_exist():
    inside = {
        mount["target"]: Path(mount["source"])
        for name in ("worker", "demo")
        for mount in services()[name]["volumes"]
    }
    assert inside == {"/srv/app/examples": ROOT / "examples"}
    files = [
        word.removeprefix("--file=") for word in services()["demo"]["command"] if word.startswith("--file=")
    ]

    assert files
    assert [file for file in files if not (ROOT / Path(file).relative_to("/srv/app")).exists()] == []


def test_the_broker_has_the_settings_of_the_development_stack_where_they_matter():
    broker = services()["kafka"]["environment"]
    durable = (
        "replication.factor",
        "min.isr",
        "min.insync",
        "num.partitions",
        "auto.create",
        "rebalance.delay",
    )
    wanted = {
        "KAFKA_" + name.upper().replace(".", "_"): value
        for name, value in KAFKA_SETTINGS.items()
        if any(part in name for part in durable) and name != "num.partitions"
    }

    assert len(wanted) > 8
    assert {name: broker.get(name) for name in wanted} == wanted
    assert broker["KAFKA_ADVERTISED_LISTENERS"] == "INSIDE://kafka:9092,HOST://127.0.0.1:29092"


def test_postgres_has_the_settings_that_operations_recommends():
    given = dict(word.removeprefix("-c").split("=") for word in services()["postgres"]["command"][1:])
    recommended = (ROOT / "docs/operations.md").read_text()

    assert given["max_wal_size"] == POSTGRES_SETTINGS["max_wal_size"]
    assert given.get("fsync", "on") == given.get("synchronous_commit", "on") == "on"
    for name in (
        "autovacuum_naptime",
        "idle_in_transaction_session_timeout",
        "max_wal_size",
        "wal_compression",
    ):
        assert f"`{name}`" in recommended
        assert name in given
    # The release of the volume's layout.
    assert services()["postgres"]["image"].startswith("postgres:18.")
    assert services()["postgres"]["volumes"][0]["target"] == "/var/lib/postgresql"


def test_prometheus_scrapes_every_service_and_nothing_else():
    config = yaml.safe_load((ROOT / "examples/monitoring/prometheus.yml").read_text())
    scraped = {
        target
        for job in config["scrape_configs"]
        for entry in job.get("static_configs", [])
        for target in entry["targets"]
        if job["job_name"].startswith("noonmark")
    }
    (alerting,) = config["alerting"]["alertmanagers"]

    assert scraped == {f"{name}:9090" for name in OURS - ONE_SHOT}
    assert alerting["static_configs"][0]["targets"] == ["alertmanager:9093"]


def test_prometheus_reads_the_rules_from_where_they_are_mounted():
    config = yaml.safe_load((ROOT / "examples/monitoring/prometheus.yml").read_text())
    mounted = {
        mount["target"]: Path(mount["source"])
        for mount in services()["prometheus"]["volumes"]
        if mount["type"] == "bind"
    }

    assert mounted["/etc/prometheus/prometheus.yml"] == ROOT / "examples/monitoring/prometheus.yml"
    (pattern,) = config["rule_files"]
    folder = Path("/etc/prometheus") / Path(pattern).parent
    assert list(mounted[str(folder)].glob(Path(pattern).name))


def test_grafana_finds_prometheus_and_the_dashboards():
    place = ROOT / "examples/monitoring/grafana"
    (source,) = yaml.safe_load((place / "datasources/prometheus.yaml").read_text())["datasources"]
    (provider,) = yaml.safe_load((place / "dashboards/noonmark.yaml").read_text())["providers"]
    mounted = {
        mount["target"]: Path(mount["source"])
        for mount in services()["grafana"]["volumes"]
        if mount["type"] == "bind"
    }

    assert mounted["/etc/grafana/provisioning"] == place
    assert (source["type"], source["url"], source["isDefault"]) == (
        "prometheus",
        "http://prometheus:9090",
        True,
    )
    assert list(mounted[provider["options"]["path"]].glob("*.json"))


def test_alertmanager_can_read_its_file_which_needs_no_secret():
    (file,) = [
        Path(mount["source"]) for mount in services()["alertmanager"]["volumes"] if mount["type"] == "bind"
    ]
    judged = subprocess.run(
        [tool("amtool"), "check-config", file], check=False, capture_output=True, text=True
    )

    assert judged.returncode == 0, judged.stderr
    assert "_file" not in file.read_text()


def test_alerts_reach_the_alertmanager():
    assert services()["observer"]["environment"]["NOONMARK_ALERTMANAGER_URL"] == "http://alertmanager:9093"
