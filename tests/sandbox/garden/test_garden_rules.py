"""What a shoot may not be, and how the garden says so."""

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.garden.admission import ShootAdmission
from sandbox.garden.cidrs import Range, pairwise_problems
from sandbox.garden.kinds import GARDEN, shoots
from sandbox.garden.providers.aws import Aws
from sandbox.garden.providers.aws.codes import codes_of
from sandbox.garden.start import furnish
from sandbox.kube import Admission, Denied, Store
from tests.sandbox.garden.garden_server import manifest

Shoot = dict[str, Any]


@pytest.fixture(scope="module")
async def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    store = Store(tmp_path_factory.mktemp("rules") / "garden.db")
    furnish(store)
    yield store
    store.close()


@pytest.fixture(scope="module")
def admit(store: Store) -> Callable[..., Shoot]:
    hook = ShootAdmission(store, {"aws": Aws("http://127.0.0.1:1")})
    resource = shoots(hook, {})

    def admit(new: Shoot, old: Shoot | None = None, verb: Any = None) -> Shoot:
        new = deepcopy(new)
        hook(Admission(verb or ("update" if old else "create"), resource, GARDEN, new, deepcopy(old)))
        return new

    return admit


def put(shoot: Shoot, values: dict[str, Any]) -> None:
    """Sets values deep in a shoot, `spec.provider.workers.0.name` for instance; None takes one away."""
    for path, value in values.items():
        *way, last = path.split(".")
        place: Any = shoot
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
        if isinstance(place, list):
            place[int(last) :] = [value]
        elif value is None:
            place.pop(last, None)
        else:
            place[last] = value


CASES = yaml.safe_load((Path(__file__).parent / "refusals.yaml").read_text())


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["what"])
def test_a_shoot_is_refused_for(admit: Callable[..., Shoot], case: dict[str, Any]) -> None:
    shoot = manifest("fine", "vpc-1")
    admit(shoot)
    put(shoot, case["set"])
    with pytest.raises(Denied) as caught:
        admit(shoot)
    assert caught.value.code == case["code"], caught.value.message
    assert case["says"] in caught.value.message


def test_what_is_left_open_is_filled_in(admit: Callable[..., Shoot]) -> None:
    shoot = manifest("open", "vpc-1")
    shoot["spec"]["cloudProfileName"] = shoot["spec"].pop("cloudProfile")["name"]
    shoot["spec"]["kubernetes"]["version"] = "1.34"
    del shoot["spec"]["provider"]["workers"][0]["machine"]["image"]
    spec = admit(shoot)["spec"]
    assert spec["cloudProfile"] == {"name": "aws", "kind": "CloudProfile"}
    assert spec["kubernetes"]["version"] == "1.34.7"
    assert spec["provider"]["workers"][0]["machine"]["image"] == {"name": "gardenlinux", "version": "1877.14.0"}
    assert spec["networking"]["providerConfig"] == {"overlay": {"enabled": False}}
    assert spec["provider"]["controlPlaneConfig"]["cloudControllerManager"] == {"useCustomRouteController": True}
    del shoot["spec"]["kubernetes"]
    assert admit(shoot)["spec"]["kubernetes"]["version"] == "1.35.4", "the newest that is supported, no preview"


@pytest.mark.parametrize("case", CASES["fixed"], ids=lambda case: next(iter(case["set"])))
def test_what_is_once_set_stays(admit: Callable[..., Shoot], case: dict[str, Any]) -> None:
    old = admit(manifest("fixed", "vpc-1"))
    new = deepcopy(old)
    put(new, case["set"])
    with pytest.raises(Denied) as caught:
        admit(new, old)
    assert case["says"] in caught.value.message


def test_nodes_may_be_widened(admit: Callable[..., Shoot]) -> None:
    old = admit(manifest("wide", "vpc-1"))
    new = deepcopy(old)
    new["spec"]["networking"]["nodes"] = "10.0.0.0/16"
    assert admit(new, old)["spec"]["networking"]["nodes"] == "10.0.0.0/16"


def test_an_expired_image_may_stay_where_it_is(admit: Callable[..., Shoot]) -> None:
    old = admit(manifest("aged", "vpc-1"))
    old["spec"]["provider"]["workers"][0]["machine"]["image"]["version"] = "1592.15.0"
    new = deepcopy(old)
    new["spec"]["provider"]["workers"][0]["maximum"] = 9
    admit(new, old)


def test_a_spec_on_its_way_out_is_not_changed_any_more(admit: Callable[..., Shoot]) -> None:
    old = admit(manifest("leaving", "vpc-1"))
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    new = deepcopy(old)
    new["spec"]["provider"]["workers"][0]["maximum"] = 9
    with pytest.raises(Denied, match="cannot update shoot spec if deletion timestamp is set"):
        admit(new, old)


@pytest.mark.parametrize(
    ("message", "codes"),
    [
        ("api error InvalidSubnet.Conflict: it conflicts", {"ERR_INFRA_DEPENDENCIES", "ERR_CONFIGURATION_PROBLEM"}),
        ("api error DependencyViolation: in use", {"ERR_INFRA_DEPENDENCIES"}),
        ("api error RequestLimitExceeded: slow down", {"ERR_INFRA_RATE_LIMITS_EXCEEDED"}),
        ("api error NatGatewayLimitExceeded: too many", {"ERR_INFRA_QUOTA_EXCEEDED"}),
        ("api error AddressLimitExceeded: too many", {"ERR_INFRA_QUOTA_EXCEEDED"}),
        ("api error AuthFailure: who are you", {"ERR_INFRA_UNAUTHENTICATED"}),
        ("api error UnauthorizedOperation: you may not", {"ERR_INFRA_UNAUTHORIZED"}),
        ("api error InvalidVpcID.NotFound: where", {"ERR_CONFIGURATION_PROBLEM"}),
        ("api error InsufficientInstanceCapacity: none left", {"ERR_INFRA_RESOURCES_DEPLETED"}),
        ("something else", set()),
    ],
)
def test_errors_of_aws_have_gardeners_codes(message: str, codes: set[str]) -> None:
    assert set(codes_of(message)) == codes


@st.composite
def networks(draw: st.DrawFn) -> IPv4Network:
    prefix = draw(st.integers(0, 32))
    return IPv4Network((draw(st.integers(0, 2**32 - 1)), prefix), strict=False)


@given(st.lists(networks(), min_size=2, max_size=5))
def test_ranges_overlap_exactly_when_they_share_an_address(found: list[IPv4Network]) -> None:
    ranges = [Range(str(index), str(network)) for index, network in enumerate(found)]
    shared = [
        (one, other)
        for index, one in enumerate(found)
        for other in found[index + 1 :]
        if one.network_address <= other.broadcast_address and other.network_address <= one.broadcast_address
    ]
    assert len(pairwise_problems(ranges)) == len(shared)


@given(networks(), networks())
def test_a_subset_has_all_its_addresses_inside(one: IPv4Network, other: IPv4Network) -> None:
    inside = one.network_address <= other.network_address and other.broadcast_address <= one.broadcast_address
    assert (Range("", str(one)).subset_problems([Range("x", str(other))]) == []) is inside


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything in a spec."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(each for key, part in parts for each in _places(part, (*path, key)))] if path or parts else [path]


_SPEC = manifest("fuzz", "vpc-1")["spec"]
_JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.just(1.5), st.sampled_from(["", "x", "10.0.0.0/33", "::/0", "1.2"])
)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.sampled_from([each for each in _places(_SPEC) if each]),
    junk=_JUNK | st.lists(_JUNK, max_size=2) | st.dictionaries(st.sampled_from(["name", "x"]), _JUNK, max_size=2),
)
def test_whatever_is_written_anywhere_is_taken_or_refused(
    admit: Callable[..., Shoot], place: tuple[Any, ...], junk: Any
) -> None:
    shoot = deepcopy(manifest("fuzz", "vpc-1"))
    parent = shoot["spec"]
    for step in place[:-1]:
        parent = parent[step]
    parent[place[-1]] = junk
    with suppress(Denied):
        admit(shoot)
