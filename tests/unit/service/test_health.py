"""The health endpoints tell progress from mere existence."""

import http.client
import json
import socket

import pytest

from noonmark.service.health import Health, HealthServer, HealthServerError
from noonmark.telemetry.metrics import REGISTRY


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def health(clock):
    return Health(clock)


@pytest.fixture
def get(health):
    server = HealthServer(health, "127.0.0.1", 0, REGISTRY)

    def request(path, method="GET", accept="*/*"):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.request(method, path, headers={"Accept": accept})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response, body

    yield request
    server.close()


def test_livez_is_good_while_every_loop_makes_progress(health, get, clock):
    health.progress("claim", 5)
    clock.now += 4
    health.beat("claim")
    clock.now += 4
    response, body = get("/livez")
    assert response.status == 200
    assert json.loads(body) == {
        "status": "ok",
        "loops": {"claim": {"age_seconds": 4.0, "max_age_seconds": 5}},
    }


def test_livez_names_the_loop_that_is_stuck_and_recovers_with_it(health, get, clock):
    claim = health.progress("claim", 5)
    relay = health.progress("relay", 60)
    clock.now += 6
    response, body = get("/livez")
    assert response.status == 503
    assert json.loads(body)["stuck"] == {"claim": "no progress for 6.0 s; the limit is 5 s"}
    claim.beat()
    relay.beat()
    assert get("/livez")[0].status == 200


def test_a_loop_that_never_beats_is_stuck_after_its_first_max_age(health, clock):
    health.progress("claim", 5)
    assert health.live()[0]
    clock.now += 5.1
    assert not health.live()[0]


def test_a_dead_loop_is_never_live_again(health):
    claim = health.progress("claim", 5)
    health.fail("claim", "the loop has ended")
    claim.beat()
    alive, body = health.live()
    assert not alive
    assert body["stuck"] == {"claim": "the loop has ended"}


def test_readyz_waits_for_every_condition_and_says_which_is_missing(health, get):
    health.progress("poll", 5)
    health.require("assignment")
    health.require("database")
    health.set_ready("database", ready=True)
    response, body = get("/readyz")
    assert response.status == 503
    assert json.loads(body)["missing"] == {"assignment": "not yet"}
    assert get("/livez")[0].status == 200
    health.set_ready("assignment", ready=True)
    assert get("/readyz")[0].status == 200
    health.set_ready("database", ready=False, missing="no connection")
    assert json.loads(get("/readyz")[1])["missing"] == {"database": "no connection"}


def test_readyz_is_bad_while_a_loop_is_stuck(health, get, clock):
    health.progress("poll", 1)
    clock.now += 2
    assert get("/readyz")[0].status == 503


def test_metrics_show_the_age_and_rounds_of_the_loops(health, get, clock):
    before = REGISTRY.get_sample_value("noonmark_loop_iterations_total", {"loop": "spin"}) or 0
    loop = health.progress("spin", 5)
    for _ in range(3):
        loop.beat()
    first = get("/metrics")[1].decode()
    response, body = get("/metrics")
    assert f'noonmark_loop_iterations_total{{loop="spin"}} {before + 3}' in first
    assert f'noonmark_loop_iterations_total{{loop="spin"}} {before + 3}' in body.decode()
    assert "process_cpu_seconds_total" in first
    assert response.getheader("Content-Type").startswith("text/plain")


def test_metrics_are_served_as_openmetrics_on_request(get):
    response, body = get("/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert response.getheader("Content-Type").startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


def test_metrics_can_be_limited_to_names(health, get):
    health.progress("spin", 5)
    names = "name[]=process_cpu_seconds_total&name[]=noonmark_loop_iterations_total&name[]=unknown"
    lines = get(f"/metrics?{names}")[1].decode().splitlines()

    samples = {line.partition("{")[0].partition(" ")[0] for line in lines if not line.startswith("#")}
    assert samples == {"process_cpu_seconds_total", "noonmark_loop_iterations_total"}


def test_too_many_names_of_metrics_are_refused(get):
    response, body = get("/metrics?" + "&".join(["name[]=x"] * 101))

    assert (response.status, body) == (400, b"At most 100 names.\n")


@pytest.mark.parametrize("path", ["/", "/livez/", "/metrics/x", "/LIVEZ"])
def test_other_paths_do_not_exist(get, path):
    assert get(path)[0].status == 404


def test_only_reading_is_possible(get):
    assert get("/livez", method="POST")[0].status == 501
    response, body = get("/livez?verbose=1", method="HEAD")
    assert response.status == 200
    assert body == b""


def test_a_loop_name_is_taken_once(health):
    health.progress("claim", 5)
    with pytest.raises(ValueError, match="'claim' is registered already"):
        health.progress("claim", 5)


def test_a_taken_port_is_reported_in_a_sentence(health):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(HealthServerError, match=f"Port {port} on 127.0.0.1 is used by another process"):
            HealthServer(health, "127.0.0.1", port, REGISTRY)


def test_a_foreign_address_is_reported_in_a_sentence(health):
    with pytest.raises(HealthServerError, match="set NOONMARK_METRICS_HOST to an address of this machine"):
        HealthServer(health, "192.0.2.1", 0, REGISTRY)


def test_trouble_that_is_only_noted_is_shown_and_leaves_the_process_ready():
    health = Health()
    assert "notes" not in health.ready()[1]
    health.note("app_outbox_shop", "not relayed at present")
    health.note("app_outbox_crm")
    ready, body = health.ready()
    assert ready
    assert body["notes"] == {"app_outbox_shop": "not relayed at present", "app_outbox_crm": "ok"}


def test_a_loop_that_only_fails_is_alive_but_is_named_after_a_while(health, clock):
    loop = health.progress("claim", 15.0)
    for _ in range(8):
        loop.failed("canceling statement due to statement timeout")
        assert health.live()[0]
        clock.now += 10
    assert health.failing(90.0) == {}
    assert health.failing(60.0) == {
        "claim": "every pass has failed for 80 s, last with: canceling statement due to statement timeout"
    }
    loop.beat()  # in the middle of a pass, which may still fail
    assert health.failing(60.0)
    loop.passed()
    assert health.failing(0.0) == {}
