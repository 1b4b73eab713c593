"""What cannot be: refused before anything starts where the request tells, and with a code where only the state can."""

from __future__ import annotations

import asyncio

import pytest
from temporalio.client import Client

from tests.e2e.conftest import Shell

AWS = ("--provider", "aws", "--region", "eu-central-1")
IN_10_1 = (*AWS, "--vpc-cidr", "10.1.0.0/16", "--block")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("alpha", *AWS, "--vpc-cidr", "10.0.0.5/16"), ["vpc_cidr", "10.0.0.5/16", "10.0.0.0/16"]),
        (("alpha", *AWS, "--vpc-cidr", "10.0.0.0/8"), ["10.0.0.0/8", "/16"]),
        (("alpha", *AWS, "--vpc-cidr", "10.0.0.0/30"), ["10.0.0.0/30", "/28"]),
        (("alpha", *AWS, "--vpc-cidr", "fd00::/48"), ["vpc_cidr", "IPv4"]),
        (("alpha", *AWS, "--vpc-cidr", "10.0.0.0"), ["vpc_cidr", "10.0.0.0"]),
        (("alpha", *AWS, "--vpc-cidr", "nonsense"), ["vpc_cidr", "nonsense"]),
        (("alpha", *AWS, "--vpc-cidr", "10.96.0.0/16"), ["10.96.0.0/16", "pods"]),
        (("alpha", *AWS, "--vpc-cidr", "10.242.0.0/16"), ["10.242.0.0/16"]),
        (("alpha", *AWS, "--pods", "10.104.0.0/13"), ["pods", "services"]),
        (("alpha", *AWS, "--services", "241.0.0.0/16"), ["241.0.0.0"]),
        (("alpha", *IN_10_1, "10.2.0.0/22"), ["block", "10.2.0.0/22", "10.1.0.0/16"]),
        (("alpha", *IN_10_1, "10.1.1.0/22"), ["block", "10.1.1.0/22", "10.1.0.0/22"]),
        (("alpha", *AWS, "--vpc-cidr", "10.1.0.0/20", "--block", "10.1.0.0/16"), ["block", "10.1.0.0/16"]),
        (("alpha", *AWS, "--cluster-prefix", "15"), ["15"]),
        (("alpha", *AWS, "--cluster-prefix", "29"), ["29"]),
        (("alpha", "--provider", "azur", "--region", "x"), ["azur", "aws", "azure", "gcp", "alicloud", "openstack"]),
        (("alpha", "--provider", "aws", "--region", "mars-1"), ["mars-1", "eu-central-1"]),
        (("alpha", *AWS, "--zones", "eu-central-1z"), ["eu-central-1z", "eu-central-1a"]),
        (("alpha", *AWS, "--zones", "eu-central-1a,eu-central-1a"), ["zones", "twice"]),
        (("alpha", *AWS, "--machine-type", "m1.huge"), ["m1.huge", "m5.large"]),
        (("alpha", *AWS, "--kubernetes-version", "1.2"), ["1.2"]),
        (("alpha", *AWS, "--credentials", "nobody"), ["nobody"]),
        (("alpha", *AWS, "--nodes-min", "4", "--nodes-max", "2"), ["nodes_min", "4", "2"]),
        (("", *AWS), ["empty"]),
        (("Größe 1", *AWS), ["Größe 1", "lower-case"]),
        (("a--b", *AWS), ["a--b", "hyphen"]),
        (("1abc", *AWS), ["1abc", "begin with a letter"]),
        (("a" * 300, *AWS), ["300", "40"]),
        (("alpha", *AWS, "--vpc", "own--beta"), ["own--beta"]),
        (("alpha", *AWS, "--vpc", "x" * 300), ["300"]),
        (("alpha", *AWS, "--no-such-option"), ["no-such-option"]),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_bad_input_is_refused_before_anything_starts(
    trellis: Shell, arguments: tuple[str, ...], says: list[str]
) -> None:
    ran = trellis("cluster", "create", *arguments, status=2)
    said = " ".join(ran.err.replace("│", " ").split())
    for word in says:
        assert word in said, said
    assert "Traceback" not in ran.err
    assert not asyncio.run(_workflows(trellis)), "nothing was started"


async def _workflows(trellis: Shell) -> int:
    client = await Client.connect(trellis.sandbox.world.temporal.address)
    return (await client.count_workflows(f"TrellisTenant = '{trellis.tenant}'")).count


def test_what_only_the_state_can_tell_is_refused_with_a_code(trellis: Shell) -> None:
    trellis.create("alpha", "--vpc", "shared", "--block", "10.0.64.0/22")
    for more, code, words in [
        (("--block", "10.0.64.0/22"), "block-taken", ["alpha"]),
        (("--block", "10.1.0.0/22"), "invalid", ["10.1.0.0/22", "10.0.0.0/16"]),
        (("--credentials", "aws-other"), "vpc-mismatch", ["aws-other"]),
        (("--vpc-cidr", "10.9.0.0/16"), "vpc-mismatch", ["10.9.0.0/16", "10.0.0.0/16"]),
        (("--cluster-prefix", "24"), "vpc-mismatch", ["/24", "/22"]),
    ]:
        ran = trellis.create("beta", "--vpc", "shared", *more, status=1)
        assert ran.err.splitlines()[-2].startswith(f"error: {code}") or f"error: {code}" in ran.err, ran.err
        for word in words:
            assert word in ran.err
        assert "hint:" in ran.err
    elsewhere = trellis(
        "cluster", "create", "beta", "--provider", "aws", "--region", "eu-west-1", "--vpc", "shared", "--wait", status=1
    )
    assert "error: vpc-mismatch" in elsewhere.err
    assert "eu-central-1" in elsewhere.err
    assert [m["cluster"] for m in trellis("vpc", "show", "shared", "--output", "json").json["members"]] == ["alpha"]
    trellis.delete("alpha")


def test_a_vpc_that_is_held_is_not_deleted(trellis: Shell) -> None:
    trellis.create("alpha", "--vpc", "shared")
    assert "alpha" in trellis("vpc", "delete", "shared", status=1).err
    trellis("vpc", "retain", "shared", "--why", "more to come")
    trellis.delete("alpha")
    view = trellis("vpc", "show", "shared", "--output", "json").json
    assert view["members"] == []
    assert "more to come" in trellis("vpc", "explain", "shared").out
    trellis("vpc", "delete", "shared", "--why", "enough")
