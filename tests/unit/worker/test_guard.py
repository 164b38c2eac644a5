"""The outbound guard: every range, and every address inside another one."""

import ipaddress

import pytest

from noonmark.worker.http.address_guard import (
    METADATA,
    REFUSED,
    AddressRefusedError,
    Guard,
    NetworkListError,
    parse_networks,
    vet,
)

PUBLIC = (
    *("1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0"),
    *("169.253.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255", "198.17.255.255", "198.20.0.0"),
    *("223.255.255.255", "11.0.0.0", "9.255.255.255", "128.0.0.0", "126.255.255.255"),
    *("2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450::1", "2003::1", "2001:200::1"),
)

# The ranges that must be refused by default, apart from the module's own table.
RANGES = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
    *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32"),
    *("::/128", "::1/128", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/32", "2001:db8::/32"),
    *("2002::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "fd00:ec2::254/128"),
)


def ends(network):
    net = ipaddress.ip_network(network)
    return [net[0], net[-1], net[net.num_addresses // 2]]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_pass(address):
    assert vet(address) is None


@pytest.mark.parametrize("network", RANGES)
def test_both_ends_and_the_middle_of_every_forbidden_range_are_refused(network):
    for address in ends(network):
        assert vet(str(address)), address


@pytest.mark.parametrize("network", [str(network) for network, _ in REFUSED if network.version == 4])
def test_every_forbidden_ipv4_range_is_refused_inside_ipv6_too(network):
    for address in map(int, ends(network)):
        assert vet(ipaddress.IPv6Address(0xFFFF << 32 | address)), "mapped"
        assert vet(ipaddress.IPv6Address(address)), "compatible"
        assert vet(ipaddress.IPv6Address(0x64FF9B << 96 | address)), "NAT64"
        assert vet(ipaddress.IPv6Address(0x64FF9B0001 << 80 | address)), "local NAT64"
        assert vet(ipaddress.IPv6Address(0x2002 << 112 | address << 80)), "6to4"
        assert vet(ipaddress.IPv6Address(0x20010000 << 96 | (address ^ 0xFFFFFFFF))), "Teredo"


@pytest.mark.parametrize("address", sorted(METADATA, key=str), ids=str)
def test_metadata_addresses_are_refused_even_inside_an_allowed_network(address):
    around = ipaddress.ip_network((address, 16 if address.version == 4 else 32), strict=False)
    assert "metadata" in vet(address)
    assert "metadata" in vet(address, [around])
    assert vet(address, [ipaddress.ip_network(address)]) is None


def test_a_mapped_public_address_is_as_good_as_the_address():
    assert vet("::ffff:8.8.8.8") is None


def test_a_public_address_behind_nat64_or_6to4_is_refused_unless_the_prefix_is_allowed():
    for address, prefix in (("64:ff9b::808:808", "64:ff9b::/96"), ("2002:808:808::1", "2002::/16")):
        allowed = parse_networks([prefix])
        assert "leading to 8.8.8.8" in vet(address)
        assert vet(address, allowed) is None


def test_allowing_a_translating_prefix_does_not_open_what_lies_behind_it():
    allowed = parse_networks(["64:ff9b::/96", "2002::/16"])
    assert "leads to 127.0.0.1" in vet("64:ff9b::7f00:1", allowed)
    assert "leads to 10.0.0.1" in vet("2002:a00:1::", allowed)
    assert vet("64:ff9b::a00:1", (*allowed, *parse_networks(["10.0.0.0/8"]))) is None


@pytest.mark.parametrize("address", ["fe80::1%eth0", "fe80::1%1", "2606:4700::1%lo"])
def test_zone_ids_are_refused_even_where_the_network_is_allowed(address):
    assert "zone id" in vet(address, parse_networks(["fe80::/10"]))


@pytest.mark.parametrize("address", ["", "localhost", "127.1", "0177.0.0.1", "2130706433", "1.2.3.4/32"])
def test_what_is_no_address_is_refused(address):
    assert "is not an IP address" in vet(address)


@pytest.mark.parametrize("address", ["4000::1", "8000::1", "1::1", "5f00::1", "3fff::1", "::ffff:0:1.2.3.4"])
def test_ipv6_outside_global_unicast_is_refused(address):
    assert vet(address)


def test_the_reason_names_the_address_and_the_range():
    assert vet("127.0.0.1") == "127.0.0.1 is not public (loopback, 127.0.0.0/8)"
    assert vet("::ffff:10.0.0.1").endswith("10.0.0.1 is not public (private, 10.0.0.0/8)")


def test_an_allowed_network_opens_itself_and_nothing_beside_it():
    guard = Guard(["10.20.0.0/16", "fd12::/16"])
    assert guard.refusal("10.20.255.255", 443) is None
    assert guard.refusal("::ffff:10.20.0.1", 443) is None
    assert guard.refusal("fd12::1", 443) is None
    assert guard.refusal("10.21.0.0", 443)
    assert guard.refusal("fd13::1", 443)
    assert guard.refusal("127.0.0.1", 443)


def test_ports_are_free_inside_allowed_networks_and_few_outside():
    guard = Guard(["10.20.0.0/16"])
    for port in (80, 443, 8080, 8443):
        assert guard.refusal("8.8.8.8", port) is None
    for port in (22, 25, 5432, 6379, 9092, 8000):
        assert f"port {port} may not be called" in guard.refusal("8.8.8.8", port)
        assert guard.refusal("10.20.0.1", port) is None
        assert guard.refusal("::ffff:10.20.0.1", port) is None


def test_check_raises_what_refusal_says():
    with pytest.raises(AddressRefusedError, match="loopback"):
        Guard().check("127.0.0.1", 80)
    Guard(["127.0.0.0/8"]).check("127.0.0.1", 80)


@pytest.mark.parametrize("text", ["10.20.0.1/16", "ten", "", "10.0.0.0/33", "example.com"])
def test_a_network_that_cannot_be_read_is_named(text):
    with pytest.raises(NetworkListError, match=r"is not a network .* write for example"):
        Guard([text])
