from pathlib import Path
from types import SimpleNamespace

import pytest

from noonmark.devstack.processes import ports
from noonmark.devstack.processes.errors import DevStackError


def test_free_ports_lie_below_those_given_to_outgoing_connections() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = {ports.free_port() for _ in range(20)}
    assert all(10_240 <= port < lowest for port in found)
    assert len(found) > 1


def test_the_preferred_port_is_taken_while_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda port: port != 20_001)
    assert ports.free_port(20_000) == 20_000
    assert ports.free_port(20_001) != 20_001


def test_a_second_port_is_never_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter((20_000, 20_000, 20_001))
    monkeypatch.setattr(ports, "is_free", lambda _port: True)
    monkeypatch.setattr(ports, "_RANDOM", SimpleNamespace(randrange=lambda *_range: next(drawn)))
    assert ports.free_port(other_than=20_000) == 20_001


def test_a_chosen_port_that_is_taken_is_an_error_that_names_the_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ports, "is_free", lambda _port: False)
    with pytest.raises(
        DevStackError, match=r"Port 9092 on 127\.0\.0\.1, chosen for Kafka, is in use.*--kafka-port"
    ):
        ports.require_free(9092, name="Kafka", option="--kafka-port")
