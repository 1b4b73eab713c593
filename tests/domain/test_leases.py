"""Parts of a network are lent to one cluster at a time, in the order of asking."""

from __future__ import annotations

from domain.leases import Leases
from domain.messages import Claim


def _claim(cluster: str, part: str = "router-0") -> Claim:
    return Claim(cluster=cluster, token=1, part=part)


def test_the_first_is_answered_at_once_and_the_next_when_the_first_gives_back() -> None:
    leases = Leases("default")
    assert [letter.workflow_id for letter in leases.claim(_claim("alpha"))] == ["cluster/default/alpha"]
    assert leases.claim(_claim("beta")) == []
    (letter,) = leases.give_back(_claim("alpha"))
    assert letter.workflow_id == "cluster/default/beta"
    assert letter.answer.lent == "router-0"


def test_whoever_holds_a_part_is_answered_again_and_counts_once() -> None:
    leases = Leases("default")
    assert len(leases.claim(_claim("alpha"))) == len(leases.claim(_claim("alpha"))) == 1
    leases.give_back(_claim("alpha"))
    assert leases.holder("router-0") is None


def test_parts_are_lent_independently() -> None:
    leases = Leases("default")
    assert leases.claim(_claim("alpha"))
    assert leases.claim(_claim("beta", "router-1"))


def test_a_cluster_that_leaves_gives_everything_back_and_waits_for_nothing() -> None:
    leases = Leases("default")
    for cluster in ("alpha", "beta", "gamma"):
        leases.claim(_claim(cluster))
    assert leases.drop("beta") == []
    assert [letter.workflow_id for letter in leases.drop("alpha")] == ["cluster/default/gamma"]


def test_a_late_give_back_takes_nothing_from_anybody() -> None:
    leases = Leases("default")
    leases.claim(_claim("alpha"))
    assert leases.give_back(_claim("beta")) == []
    assert leases.holder("router-0") == _claim("alpha")


def test_the_queue_is_carried_to_the_next_run() -> None:
    leases = Leases("default")
    for cluster in ("alpha", "beta"):
        leases.claim(_claim(cluster))
    again = Leases("default", leases.claims)
    assert [letter.workflow_id for letter in again.give_back(_claim("alpha"))] == ["cluster/default/beta"]
