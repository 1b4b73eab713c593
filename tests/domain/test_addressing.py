"""Blocks are disjoint, aligned and inside, whatever is asked in whatever order."""

import random
from collections import defaultdict
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from itertools import islice, pairwise
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from domain.addressing import Allocator, Holding
from domain.errors import Code, TrellisError


def net(text: str) -> IPv4Network:
    return IPv4Network(text)


def space(*cidrs: str) -> Allocator[IPv4Network]:
    return Allocator([net(cidr) for cidr in cidrs])


def refused(code: Code, call: object, *arguments: object) -> str:
    with pytest.raises(TrellisError) as caught:
        call(*arguments)  # type: ignore[operator]
    assert caught.value.failure.code is code
    return str(caught.value)


class TestAllocating:
    def test_a_vpc_of_the_default_size_has_64_blocks_and_the_65th_is_refused(self) -> None:
        vpc = space("10.0.0.0/16")
        blocks = [vpc.allocate(22, f"c{n}") for n in range(64)]
        assert blocks == list(net("10.0.0.0/16").subnets(new_prefix=22))
        before = vpc.blocks
        message = refused(Code.VPC_FULL, vpc.allocate, 22, "c64")
        assert message.startswith("no /22 for c64 is left in 10.0.0.0/16: nothing at all is free (delete a cluster")
        assert vpc.blocks == before

    def test_exhaustion_names_the_largest_free_block_and_what_still_fits(self) -> None:
        vpc = space("10.0.0.0/20")
        for block in ("10.0.0.0/22", "10.0.4.0/24", "10.0.8.0/25", "10.0.12.0/22"):
            vpc.allocate_exact(net(block), "a")
        message = refused(Code.VPC_FULL, vpc.allocate, 22, "b")
        assert "the largest free block is 10.0.6.0/23" in message
        assert "ask for a block of /23 or longer" in message
        assert vpc.allocate(23, "b") == net("10.0.6.0/23")

    def test_with_two_blocks_left_two_askers_both_get_one(self) -> None:
        vpc = space("10.0.0.0/16")
        for number in range(62):
            vpc.allocate(22, f"c{number}")
        assert vpc.count_free(22) == 2
        assert {vpc.allocate(22, "x"), vpc.allocate(22, "y")} == {net("10.0.248.0/22"), net("10.0.252.0/22")}

    def test_the_smallest_range_that_fits_is_used_first(self) -> None:
        vpc = space("10.0.0.0/16")
        vpc.allocate_exact(net("10.0.128.0/24"), "a")
        assert vpc.allocate(24, "b") == net("10.0.129.0/24")
        assert vpc.allocate(23, "b") == net("10.0.130.0/23")
        assert vpc.allocate(17, "b") == net("10.0.0.0/17")

    def test_free_blocks_have_the_length_that_was_asked_for(self) -> None:
        vpc = Allocator([IPv6Network("fd00:1::/48")])
        for number in range(4):
            vpc.allocate_exact(IPv6Network(f"fd00:1:0:{number}::/64"), "a")
        first = list(islice(vpc.free_blocks(64), 3))
        assert [str(block) for block in first] == ["fd00:1:0:4::/64", "fd00:1:0:5::/64", "fd00:1:0:6::/64"]
        assert vpc.allocate(64, "b") == first[0]

    def test_one_small_block_out_of_a_huge_space_comes_at_once(self) -> None:
        started = perf_counter()
        vpc = Allocator([IPv6Network("fd00::/32")])
        assert vpc.allocate(64, "a") == IPv6Network("fd00::/64")
        assert vpc.count_free(64) == 2**32 - 1
        assert vpc.count_free(128) == 2**96 - 2**64
        assert perf_counter() - started < 1

    def test_any_hole_is_used_and_nothing_outside(self) -> None:
        vpc = space("10.0.0.0/8")
        vpc.exclude(net("10.250.0.0/22"), "a pool")
        blocks = [vpc.allocate(22, "c") for _ in range(10_000)]
        assert all(block.subnet_of(net("10.0.0.0/8")) for block in blocks)
        assert net("10.250.0.0/22") not in blocks
        assert len(set(blocks)) == 10_000

    def test_every_aligned_hole_counts_once(self) -> None:
        vpc = space("10.0.0.0/8")
        vpc.exclude(net("10.250.0.0/22"), "a pool")
        assert vpc.count_free(22) == 2**14 - 1
        assert vpc.count_free(8) == 0
        assert vpc.count_free(7) == 0

    @pytest.mark.parametrize("prefix", [-1, 33, 128])
    def test_a_prefix_length_that_does_not_exist_is_refused(self, prefix: int) -> None:
        vpc = space("10.0.0.0/16")
        for call in (vpc.count_free, lambda p: next(vpc.free_blocks(p)), lambda p: vpc.allocate(p, "a")):
            assert f"there is no /{prefix}" in refused(Code.INVALID, call, prefix)

    def test_a_block_larger_than_the_space_is_invalid_and_not_a_lack_of_room(self) -> None:
        assert "a /8 is larger than 10.0.0.0/16 (ask for /16 or longer)" in refused(
            Code.INVALID, space("10.0.0.0/16").allocate, 8, "a"
        )

    @pytest.mark.parametrize(("prefix", "count"), [(31, 8), (32, 16)])
    def test_the_smallest_networks_are_networks(self, prefix: int, count: int) -> None:
        vpc = space("10.0.0.0/28")
        assert vpc.count_free(prefix) == count
        assert [vpc.allocate(prefix, "a") for _ in range(count)] == list(net("10.0.0.0/28").subnets(new_prefix=prefix))


class TestExactBlocks:
    def test_an_exact_block_is_given_once(self) -> None:
        vpc = space("10.0.0.0/16")
        assert vpc.allocate_exact("10.0.64.0/22", "a") == net("10.0.64.0/22")
        message = refused(Code.BLOCK_TAKEN, vpc.allocate_exact, "10.0.64.0/22", "b")
        assert message == "10.0.64.0/22 for b overlaps 10.0.64.0/22 of a (10.0.68.0/22 is free)"

    def test_an_unaligned_block_names_the_aligned_candidates(self) -> None:
        message = refused(Code.INVALID, space("10.0.0.0/16").allocate_exact, "10.0.65.0/22", "b")
        assert "'10.0.65.0/22' has host bits set: a /22 here is 10.0.64.0/22 or 10.0.68.0/22" in message

    def test_a_block_above_or_below_a_taken_one_names_its_owner(self) -> None:
        vpc = space("10.0.0.0/16")
        vpc.allocate_exact(net("10.0.64.0/22"), "a", "asked for by a person")
        for cidr in ("10.0.65.0/24", "10.0.64.0/18"):
            message = refused(Code.BLOCK_TAKEN, vpc.allocate_exact, cidr, "b")
            assert "10.0.64.0/22 of a (asked for by a person)" in message

    def test_many_holders_are_counted_and_only_some_are_named(self) -> None:
        vpc = space("10.0.0.0/16")
        for number in range(8):
            vpc.allocate(24, f"c{number}")
        assert "of c4 and 3 more (no /16 is free: the largest free block is 10.0.128.0/17)" in refused(
            Code.BLOCK_TAKEN, vpc.allocate_exact, "10.0.0.0/16", "b"
        )

    @pytest.mark.parametrize(
        ("cidr", "message"),
        [
            ("10.1.0.0/22", "10.1.0.0/22 is outside 10.0.0.0/16 (10.0.0.0/22 is free)"),
            ("10.0.0.0/8", "a /8 is larger than 10.0.0.0/16 (ask for /16 or longer)"),
            ("fd00::/64", "fd00::/64 is IPv6; 10.0.0.0/16 is not"),
            ("nonsense", "'nonsense' is not a CIDR"),
        ],
    )
    def test_a_block_that_cannot_be_here_is_invalid(self, cidr: str, message: str) -> None:
        assert message in refused(Code.INVALID, space("10.0.0.0/16").allocate_exact, cidr, "a")

    def test_reserving_again_at_the_next_start_changes_nothing(self) -> None:
        vpc = space("192.168.0.0/16")
        for _ in range(2):
            assert vpc.allocate_exact(net("192.168.0.0/20"), "trellis", "reserved by the configuration")
        assert vpc.blocks == (Holding(net("192.168.0.0/20"), "trellis", "reserved by the configuration"),)

    def test_the_unused_half_of_a_block_belongs_to_its_owner(self) -> None:
        vpc = space("10.0.0.0/16")
        vpc.allocate_exact(net("10.0.4.0/22"), "a")
        assert vpc.owner_of(net("10.0.6.0/23")) == "a"
        assert vpc.owner_of(net("10.0.0.0/20")) is None
        assert net("10.0.6.0/23") not in vpc.free_blocks(23)


class TestForeignRanges:
    def test_the_first_block_keeps_clear_of_a_subnet_that_was_there_before(self) -> None:
        vpc = space("10.0.0.0/16")
        vpc.exclude(net("10.0.0.0/24"), "subnet-1", "found in the cloud")
        assert vpc.allocate(22, "a") == net("10.0.4.0/22")
        assert "overlaps 10.0.0.0/24 of subnet-1 (found in the cloud)" in refused(
            Code.BLOCK_TAKEN, vpc.allocate_exact, "10.0.0.0/22", "b"
        )

    def test_foreign_ranges_may_nest_and_reach_beyond_the_space(self) -> None:
        vpc = space("10.0.0.0/16", "10.2.0.0/16")
        for cidr in ("10.0.0.64/26", "10.0.0.0/25", "10.0.0.77/32", "10.2.0.0/15", "192.168.0.0/16", "10.0.255.0/24"):
            vpc.exclude(net(cidr), "x")
        assert vpc.count_free(22) == 62
        assert not any(block.subnet_of(net("10.2.0.0/15")) for block in vpc.free_ranges())
        assert len(vpc.foreign) == 6
        assert [holding.cidr for holding in vpc.overlapping(net("10.0.0.77/32"))] == [
            net("10.0.0.0/25"), net("10.0.0.64/26"), net("10.0.0.77/32"),
        ]  # fmt: skip

    def test_a_range_that_two_reserve_is_free_when_both_are_gone(self) -> None:
        plan = space("10.0.0.0/8")
        backing = net("10.100.0.0/16")
        for owner in ("a", "b", "b"):
            plan.exclude(backing, owner)
        plan.include(backing, "a")
        plan.include(backing, "a")
        assert "of b" in refused(Code.BLOCK_TAKEN, plan.allocate_exact, backing, "c")
        plan.include(backing, "b")
        assert plan.free_ranges() == (net("10.0.0.0/8"),)

    def test_a_foreign_range_inside_a_block_outlives_the_block(self) -> None:
        vpc = space("10.0.0.0/16")
        block = vpc.allocate(22, "a")
        vpc.exclude(net("10.0.1.0/24"), "subnet-1")
        assert vpc.owner_of(block) == "a"
        vpc.release(block)
        assert vpc.allocate(22, "b") == net("10.0.4.0/22")
        assert net("10.0.0.0/24") in vpc.free_ranges()

    def test_a_foreign_range_that_goes_leaves_the_block_around_it_alone(self) -> None:
        vpc = space("10.0.0.0/16")
        block = vpc.allocate(22, "a")
        vpc.exclude(net("10.0.1.0/24"), "subnet-1")
        vpc.include(net("10.0.1.0/24"), "subnet-1")
        assert not any(cidr.overlaps(block) for cidr in vpc.free_ranges())
        vpc.release(block)
        assert vpc.free_ranges() == (net("10.0.0.0/16"),)

    def test_what_is_foreign_stays_out_when_the_space_grows_over_it(self) -> None:
        vpc = space("10.0.0.0/16")
        vpc.exclude(net("10.1.0.0/17"), "a peer")
        vpc.add_cidr(net("10.1.0.0/16"))
        assert vpc.free_ranges() == (net("10.0.0.0/16"), net("10.1.128.0/17"))


class TestSpaces:
    def test_a_further_range_makes_room_and_is_added_once(self) -> None:
        vpc = space("10.0.0.0/22")
        vpc.allocate(22, "a")
        for _ in range(2):
            vpc.add_cidr(net("10.9.0.0/20"))
        assert vpc.cidrs == (net("10.0.0.0/22"), net("10.9.0.0/20"))
        assert vpc.count_free(22) == 4
        assert vpc.allocate(22, "b") == net("10.9.0.0/22")

    def test_neighbouring_ranges_are_not_joined(self) -> None:
        vpc = space("10.0.0.0/16", "10.1.0.0/16")
        blocks = [vpc.allocate(16, owner) for owner in "ab"]
        for block in blocks:
            vpc.release(block)
        assert vpc.free_ranges() == (net("10.0.0.0/16"), net("10.1.0.0/16"))

    def test_ranges_that_overlap_or_mix_families_are_refused(self) -> None:
        assert "10.0.0.0/20 overlaps 10.0.0.0/16" in refused(
            Code.INVALID, space("10.0.0.0/16").add_cidr, net("10.0.0.0/20")
        )
        assert "is IPv6" in refused(Code.INVALID, Allocator, [net("10.0.0.0/16"), IPv6Network("fd00::/48")])
        assert "is IPv6" in refused(Code.INVALID, space("10.0.0.0/16").exclude, IPv6Network("fd00::/48"))
        assert "needs a range" in refused(Code.INVALID, Allocator, [])

    def test_two_spaces_may_use_the_same_addresses(self) -> None:
        assert space("10.0.0.0/16").allocate(22, "a") == space("10.0.0.0/16").allocate(22, "b")

    def test_only_what_was_allocated_can_be_released(self) -> None:
        vpc = space("10.0.0.0/16")
        block = vpc.allocate(22, "a")
        for cidr in (net("10.0.0.0/23"), net("10.0.0.0/21"), net("10.0.4.0/22")):
            assert f"{cidr} is not a block" in refused(Code.INVALID, vpc.release, cidr)
        assert vpc.release(block) == Holding(block, "a")
        assert "is not a block" in refused(Code.INVALID, vpc.release, block)


PREFIXES = st.integers(16, 32)
ORDERS = st.randoms(use_true_random=False)


@given(st.lists(PREFIXES, max_size=40), ORDERS)
def test_allocating_and_releasing_in_any_order_returns_to_the_start(prefixes: list[int], order: random.Random) -> None:
    vpc = space("10.0.0.0/18", "10.0.64.0/20")
    live: list[IPv4Network] = []
    for prefix in prefixes:
        try:
            live.append(vpc.allocate(prefix, "a"))
        except TrellisError:
            if live:
                vpc.release(live.pop(order.randrange(len(live))))
    order.shuffle(live)
    for block in live:
        vpc.release(block)
    assert vpc.free_ranges() == vpc.cidrs
    assert vpc.blocks == ()


@given(st.lists(st.tuples(PREFIXES, st.sampled_from("abc")), max_size=30), ORDERS)
def test_what_comes_next_depends_on_what_is_held_and_not_on_how_it_came_about(
    asked: list[tuple[int, str]], order: random.Random
) -> None:
    vpc = space("10.0.0.0/16")
    for prefix, owner in asked:
        try:
            vpc.allocate(prefix, owner)
        except TrellisError:
            continue
    held = list(vpc.blocks)
    order.shuffle(held)
    again = space("10.0.0.0/16")
    for holding in held:
        again.allocate_exact(holding.cidr, holding.owner, holding.reason)
    assert again.blocks == vpc.blocks
    assert again.free_ranges() == vpc.free_ranges()
    for prefix in range(16, 33):
        assert list(islice(again.free_blocks(prefix), 20)) == list(islice(vpc.free_blocks(prefix), 20))


@given(st.lists(PREFIXES, max_size=20), PREFIXES)
def test_the_free_blocks_are_what_allocate_gives_in_that_order(prefixes: list[int], prefix: int) -> None:
    vpc = space("10.0.0.0/18", "10.0.80.0/22")
    for other in prefixes:
        if vpc.count_free(other):
            vpc.allocate(other, "a")
    announced = list(islice(vpc.free_blocks(prefix), 30))
    assert len(announced) == min(30, vpc.count_free(prefix))
    assert [vpc.allocate(prefix, "b") for _ in announced] == announced


class AnySpace(RuleBasedStateMachine):
    """Every operation in any order, against a set of single addresses."""

    held: Bundle[IPv4Network] = Bundle("held")
    CIDRS = st.builds(
        lambda address, prefix: IPv4Network((address, prefix), strict=False),
        st.integers(int(net("10.0.0.0/22").network_address), int(net("10.0.7.0/24").broadcast_address)),
        st.integers(20, 32),
    )

    @initialize()
    def begin(self) -> None:
        self.space = space("10.0.1.0/24", "10.0.4.0/25")
        self.inside = _addresses(*self.space.cidrs)
        self.blocks: dict[IPv4Network, str] = {}
        self.foreign: dict[IPv4Network, set[str]] = defaultdict(set)

    @property
    def free(self) -> set[int]:
        return self.inside - _addresses(*self.blocks, *self.foreign)

    @rule(target=held, prefix=st.integers(24, 32), owner=st.sampled_from("abc"))
    def allocate(self, prefix: int, owner: str) -> object:
        candidates = [c for root in self.space.cidrs for c in root.subnets(new_prefix=max(prefix, root.prefixlen))]
        fits = any(_addresses(c) <= self.free for c in candidates if c.prefixlen == prefix)
        if not fits:
            refused(Code.VPC_FULL, self.space.allocate, prefix, owner)
            return multiple()
        block = self.space.allocate(prefix, owner)
        assert _addresses(block) <= self.free
        self.blocks[block] = owner
        return block

    @rule(target=held, cidr=CIDRS, owner=st.sampled_from("abc"))
    def allocate_exact(self, cidr: IPv4Network, owner: str) -> object:
        again = self.blocks.get(cidr) == owner and not any(cidr.overlaps(other) for other in self.foreign)
        outside = not any(cidr.subnet_of(root) for root in self.space.cidrs)  # so is what spans two neighbours
        if again or (not outside and _addresses(cidr) <= self.free):
            assert self.space.allocate_exact(cidr, owner) == cidr
            self.blocks[cidr] = owner
            return multiple() if again else cidr
        refused(Code.INVALID if outside else Code.BLOCK_TAKEN, self.space.allocate_exact, cidr, owner)
        return multiple()

    @rule(block=consumes(held))
    def release(self, block: IPv4Network) -> None:
        assert self.space.release(block).owner == self.blocks.pop(block)

    @rule(cidr=st.one_of(CIDRS, held), owner=st.sampled_from("xy"))
    def exclude(self, cidr: IPv4Network, owner: str) -> None:
        self.space.exclude(cidr, owner)
        self.foreign[cidr].add(owner)

    @precondition(lambda self: self.foreign)
    @rule(data=st.data(), owner=st.sampled_from("xy"))
    def include(self, data: st.DataObject, owner: str) -> None:
        cidr = data.draw(st.sampled_from(sorted(self.foreign)))
        self.space.include(cidr, owner)
        self.foreign[cidr].discard(owner)
        if not self.foreign[cidr]:
            del self.foreign[cidr]

    @rule()
    def grow(self) -> None:
        self.space.add_cidr(net("10.0.4.128/25"))
        self.inside |= _addresses(net("10.0.4.128/25"))

    @invariant()
    def the_free_ranges_are_exactly_what_nobody_holds(self) -> None:
        ranges = self.space.free_ranges()
        assert _addresses(*ranges) == self.free
        for root in self.space.cidrs:
            inside = [cidr for cidr in ranges if cidr.subnet_of(root)]
            assert inside == list(collapse_addresses(inside))

    @invariant()
    def live_blocks_are_disjoint_and_inside(self) -> None:
        blocks = [holding.cidr for holding in self.space.blocks]
        assert {holding.cidr: holding.owner for holding in self.space.blocks} == self.blocks
        assert all(any(block.subnet_of(root) for root in self.space.cidrs) for block in blocks)
        assert not any(lower.overlaps(upper) for lower, upper in pairwise(blocks))


def _addresses(*cidrs: IPv4Network) -> set[int]:
    return {a for c in cidrs for a in range(int(c.network_address), int(c.broadcast_address) + 1)}


AnySpace.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestAnySpace = AnySpace.TestCase


def test_the_cost_of_a_block_grows_with_the_logarithm_of_what_is_held() -> None:
    vpc = space("10.0.0.0/8")

    def cost(count: int) -> float:
        started = perf_counter()
        for _ in range(count):
            vpc.allocate(24, "a")
        return (perf_counter() - started) / count

    few = min(cost(500) for _ in range(4))
    for _ in range(58_000):
        vpc.allocate(24, "a")
    many = min(cost(500) for _ in range(4))
    assert len(vpc.blocks) == 62_000
    assert many < 10 * few  # in proportion to what is held it would be 60
