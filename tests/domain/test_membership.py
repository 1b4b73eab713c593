"""The reference count of a VPC, fed with messages in every order."""

from __future__ import annotations

from datetime import UTC, datetime
from ipaddress import IPv4Network

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import Code, Failure
from domain.membership import Membership
from domain.messages import Join, Leave
from domain.networks import Network
from domain.specs import Provider, VpcSpec

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _spec(cidr: str = "10.0.0.0/16", **fields: object) -> VpcSpec:
    values = {"name": "shared", "provider": "aws", "region": "eu-central-1", "credentials": "aws", "cidrs": (cidr,)}
    return VpcSpec.model_validate(values | fields)


def _join(cluster: str, token: int = 1, block: str | None = None, vpc: VpcSpec | None = None) -> Join:
    return Join(cluster=cluster, token=token, vpc=vpc or _spec(), block=IPv4Network(block) if block else None)


def test_a_member_is_recorded_at_once_and_answered_when_the_network_is_ready() -> None:
    book = Membership(_spec())
    book.join(_join("alpha"), "cluster/default/alpha", _NOW)
    assert book.unanswered
    assert not book.letters
    book.grant(Network(id="vpc-1"))
    assert not book.unanswered
    (letter,) = book.letters
    assert letter.workflow_id == "cluster/default/alpha"
    assert letter.answer.grant is not None
    assert letter.answer.grant.block == IPv4Network("10.0.0.0/22")


def test_a_grant_tells_the_position_of_its_block() -> None:
    spec = _spec(cidrs=("10.0.0.0/20", "10.9.0.0/20"))
    book = Membership(spec)
    for i in range(6):
        book.join(_join(f"c{i}", vpc=spec), "w", _NOW)
    book.grant(Network(id="vpc-1"))
    assert [letter.answer.grant.slot for letter in book.letters if letter.answer.grant] == [0, 1, 2, 3, 4, 5]


def test_joining_again_is_answered_again_with_the_same_block() -> None:
    book = Membership(_spec())
    for token in (1, 1, 2):
        book.join(_join("alpha", token), "w", _NOW)
        book.grant(Network(id="vpc-1"))
    assert [letter.answer.grant.block for letter in book.letters if letter.answer.grant] == [
        IPv4Network("10.0.0.0/22")
    ] * 3
    assert len(book.members) == 1


def test_a_join_that_was_overtaken_by_its_leave_does_nothing() -> None:
    book = Membership(_spec())
    book.leave(Leave(cluster="alpha", token=5), "w")
    book.join(_join("alpha", 5), "w", _NOW)
    assert not book.members
    book.join(_join("alpha", 6), "w", _NOW)
    assert len(book.members) == 1


def test_the_leave_of_an_earlier_life_does_not_remove_the_later_one() -> None:
    book = Membership(_spec())
    book.join(_join("alpha", 5), "w", _NOW)
    book.leave(Leave(cluster="alpha", token=4), "w")
    assert len(book.members) == 1
    assert book.letters[0].answer.left, "whoever leaves is answered, so that it can end"


def test_a_sub_block_belongs_to_its_owner_whatever_is_used_of_it() -> None:
    book = Membership(_spec())
    book.join(_join("alpha", block="10.0.4.0/22"), "w", _NOW)
    book.join(_join("beta", block="10.0.6.0/23", vpc=_spec()), "w", _NOW)
    (refusal,) = [letter.answer.refused for letter in book.letters]
    assert refusal is not None
    assert refusal.code is Code.BLOCK_TAKEN
    assert "alpha" in refusal.message


def test_everything_is_carried_to_the_next_run() -> None:
    book = Membership(_spec())
    for i in range(10):
        book.join(_join(f"c{i}"), "w", _NOW)
    book.leave(Leave(cluster="c3", token=1), "w")
    again = Membership(_spec(), book.members, book.departed, book.foreign)
    again.join(_join("new"), "w", _NOW)
    member = again.get("new")
    assert member is not None
    assert member.block == IPv4Network("10.0.12.0/22")
    again.join(_join("c3"), "w", _NOW)
    assert again.get("c3") is None, "a late duplicate is known in the next run too"


def test_another_provider_is_a_mismatch_that_names_both() -> None:
    book = Membership(_spec())
    other = _spec(provider=Provider.GCP, region="europe-west3", credentials="gcp")
    book.join(_join("alpha", vpc=other), "w", _NOW)
    (letter,) = book.letters
    assert letter.answer.refused is not None
    assert letter.answer.refused.code is Code.VPC_MISMATCH
    assert "provider aws (asked for gcp)" in letter.answer.refused.message


_steps = st.lists(
    st.tuples(st.sampled_from(["join", "leave", "grant", "refuse", "avoid", "release"]), st.integers(0, 7)), max_size=60
)


@settings(max_examples=200, deadline=None)
@given(steps=_steps)
def test_live_blocks_are_disjoint_aligned_and_inside_after_any_messages(steps: list[tuple[str, int]]) -> None:
    spec = _spec("10.0.0.0/20")
    book = Membership(spec)
    for token, (what, number) in enumerate(steps, start=1):
        cluster = f"c{number}"
        if what == "join":
            book.join(_join(cluster, token, vpc=spec), cluster, _NOW)
        elif what == "leave":
            book.leave(Leave(cluster=cluster, token=token), cluster)
        elif what == "release":
            book.release(cluster)
        elif what == "grant":
            book.grant(Network(id="n"))
        elif what == "refuse":
            book.refuse_waiting(_failure())
        else:
            book.avoid([IPv4Network((IPv4Network("10.0.0.0/20")[number * 512 + 3], 32))])
        blocks = [member.block for member in book.members]
        assert all(block.subnet_of(spec.cidrs[0]) and block.prefixlen == 22 for block in blocks)
        assert all(not a.overlaps(b) for i, a in enumerate(blocks) for b in blocks[:i])
        assert not any(m.block.overlaps(f) for m in book.members for f in book.foreign)
        assert book.free().blocks + len(blocks) <= 4
    for member in book.members:
        book.release(member.cluster)
    book.avoid([])
    assert book.free_ranges() == [IPv4Network("10.0.0.0/20")]


@given(st.sets(st.integers(0, 15)), st.lists(st.tuples(st.integers(0, 2**15 - 1), st.integers(16, 32)), max_size=20))
def test_a_range_is_foreign_exactly_if_it_touches_no_granted_block(
    slots: set[int], ranges: list[tuple[int, int]]
) -> None:
    spec = _spec("10.0.0.0/18")
    book = Membership(spec)
    blocks = list(IPv4Network("10.0.0.0/18").subnets(new_prefix=22))
    for slot in slots:
        book.join(_join(f"c{slot}", 1, vpc=spec, block=str(blocks[slot])), f"c{slot}", _NOW)
    book.grant(Network(id="n"))
    base = int(IPv4Network("10.0.0.0/18").network_address)
    seen = [IPv4Network((base + offset, prefix), strict=False) for offset, prefix in ranges]
    book.avoid(seen)
    assert book.foreign == tuple(sorted(r for r in seen if not any(r.overlaps(blocks[slot]) for slot in slots)))


def _failure() -> Failure:
    return Failure(code=Code.QUOTA, message="no")
