"""CIDRs are read strictly, and every refusal says what to write instead."""

from ipaddress import IPv4Network, IPv6Network, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cidr import parse_cidr, parse_network


@given(st.integers(0, 2**32 - 1), st.integers(0, 32))
def test_what_a_network_prints_is_what_is_read(address: int, prefix: int) -> None:
    network = IPv4Network((address, prefix), strict=False)
    assert parse_cidr(str(network)) == network
    assert parse_cidr(f"  {network}\n") == network
    assert parse_cidr(network) is network


@given(st.ip_addresses(v=6), st.integers(0, 128))
def test_ipv6_is_read_where_it_is_wanted_and_refused_where_it_is_not(address: object, prefix: int) -> None:
    network = IPv6Network((int(address), prefix), strict=False)  # type: ignore[call-overload]
    assert parse_network(str(network)) == network
    with pytest.raises(ValueError, match=r"is IPv6 where IPv4 is wanted: write it like 10.0.0.0/16"):
        parse_cidr(str(network))


@given(st.integers(0, 2**32 - 1), st.integers(0, 31))
def test_host_bits_are_refused_with_the_networks_that_were_meant(address: int, prefix: int) -> None:
    network = IPv4Network((address, prefix), strict=False)
    if address == int(network.network_address):
        address += 1
    text = str(IPv4Network((address, 32)).network_address) + f"/{prefix}"
    with pytest.raises(ValueError) as caught:
        parse_cidr(text)
    message = str(caught.value)
    assert repr(text) in message
    assert "host bits" in message
    offered = message.rpartition(" is ")[2].split(" or ")
    assert offered[0] == str(network)
    for cidr in offered:
        assert parse_cidr(cidr).prefixlen == prefix
    assert (len(offered) == 1) is (int(network.broadcast_address) == 2**32 - 1)


def test_an_unaligned_block_names_its_neighbours() -> None:
    with pytest.raises(
        ValueError, match=r"'10.0.65.0/22' has host bits set: a /22 here is 10.0.64.0/22 or 10.0.68.0/22"
    ):
        parse_cidr("10.0.65.0/22")
    with pytest.raises(ValueError, match=r"a /48 here is fd00::/48 or fd00:0:1::/48"):
        parse_network("fd00::1/48")


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("10.0.0.0", "write 10.0.0.0/16 for a network, or 10.0.0.0/32 for one address"),
        ("10.20.30.40", "write 10.20.0.0/16 for a network, or 10.20.30.40/32 for one address"),
        ("fd00::1", "write fd00::/64 for a network, or fd00::1/128 for one address"),
    ],
)
def test_a_missing_prefix_length_is_pointed_out(text: str, fix: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_network(text)
    assert str(caught.value) == f"{text!r} has no prefix length: {fix}"


@pytest.mark.parametrize(
    "value",
    [
        "", "/", "/16", "10", "10/8", "10.0/16", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1",
        "10.0.0.0/+8", "10.0.0.0/08",
        "10.0.0.0/255.255.0.0", "10.0.0.0/16/16", "10.0.0.0 /16", "010.0.0.0/8", "0x0a.0.0.0/8", "256.0.0.0/8",
        "\uff110.0.0.0/16", "10.0.0.0/\uff116", "10.0.0.0/\u00b2", "fd00::/129", "fe80::%eth0/64",
        "host/16", "10.0.0.0/16,10.1.0.0/16",
        "x" * 300, 5, 5.0, None, True, b"10.0.0.0/16", ["10.0.0.0/16"], ("10.0.0.0", 16),
    ],
)  # fmt: skip
def test_garbage_is_refused_with_an_example(value: object) -> None:
    with pytest.raises(ValueError, match=r"is not a CIDR: .*10\.0\.0\.0/16") as caught:
        parse_cidr(value)
    assert len(str(caught.value)) < 200


@given(st.one_of(st.text(), st.text("0123456789abcdef.:/", max_size=24)))
def test_any_text_is_either_refused_or_a_network(text: str) -> None:
    try:
        network = parse_network(text)
    except ValueError:
        return
    assert network == ip_network(text.strip())
