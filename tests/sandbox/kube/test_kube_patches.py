"""Patches, and who owns what after them."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.kube import Denied, Object
from sandbox.kube.ownership import applied, updated
from sandbox.kube.patches import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, patched

_KEYS = st.sampled_from("abc")
_LEAVES = st.one_of(st.integers(0, 2), st.text("xy", max_size=1), st.lists(st.integers(0, 2), max_size=2))
_SPECS = st.dictionaries(
    _KEYS, st.recursive(_LEAVES, lambda inner: st.dictionaries(_KEYS, inner, min_size=1, max_size=3), max_leaves=5)
)


def body(spec: Object, **meta: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", **meta}, "spec": spec}


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [  # RFC 7386, appendix A, where both are objects
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_does_what_its_rfc_says(before: Object, patch: Object, after: Object) -> None:
    kept = copy.deepcopy(before)
    assert patched(MERGE_PATCH, before, patch) == after
    assert before == kept


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        (
            {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]},
            {"containers": [{"name": "b", "image": "2"}, {"name": "c"}]},
            {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c"}]},
        ),
        (
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"$patch": "delete", "name": "a"}]},
            {"containers": [{"name": "b"}]},
        ),
        (
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
            {"containers": [{"name": "b"}, {"name": "a"}]},
        ),
        ({"containers": [{"name": "a"}]}, {"containers": [{"$patch": "replace"}]}, {"containers": []}),
        (
            {"conditions": [{"type": "Ready", "status": "False", "reason": "x"}]},
            {"conditions": [{"type": "Ready", "status": "True"}]},
            {"conditions": [{"type": "Ready", "status": "True", "reason": "x"}]},
        ),
        ({"finalizers": ["a"]}, {"finalizers": ["b", "a"]}, {"finalizers": ["a", "b"]}),
        ({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}, {"finalizers": ["b"]}),
        ({"args": ["a"]}, {"args": ["b"]}, {"args": ["b"]}),
        (
            {"strategy": {"type": "x", "rolling": {}}},
            {"strategy": {"$retainKeys": ["type"], "type": "y"}},
            {"strategy": {"type": "y"}},
        ),
        ({"data": {"a": 1}}, {"data": {"$patch": "replace", "b": 2}}, {"data": {"b": 2}}),
        ({"data": {"a": 1, "b": 2}}, {"data": {"a": None}}, {"data": {"b": 2}}),
    ],
)
def test_a_strategic_patch_knows_lists_and_directives(before: Object, patch: Object, after: Object) -> None:
    assert patched(STRATEGIC_PATCH, before, patch) == after


def test_a_json_patch_fits_wholly_or_not_at_all() -> None:
    before = body({"x": 1})
    steps = [{"op": "replace", "path": "/spec/x", "value": 2}, {"op": "test", "path": "/spec/x", "value": 3}]
    with pytest.raises(Denied, match="cannot be applied"):
        patched(JSON_PATCH, before, steps)
    assert before == body({"x": 1})
    with pytest.raises(Denied, match="error decoding patch"):
        patched(JSON_PATCH, before, [{"op": "jump", "path": "/spec"}])
    with pytest.raises(Denied, match="leaves no object"):
        patched(JSON_PATCH, before, [{"op": "replace", "path": "", "value": 1}])


@given(_SPECS, _SPECS)
def test_an_only_applier_gets_exactly_what_it_applies(first: Object, second: Object) -> None:
    once = applied(None, body(first), "m", force=False)
    assert once["spec"] == first
    assert applied(once, body(first), "m", force=False) == once
    twice = applied(once, body(second), "m", force=False)
    assert twice["spec"] == second


@given(_SPECS, _SPECS)
def test_a_forced_apply_wins_and_outlasts_the_others(mine: Object, theirs: Object) -> None:
    thing = applied(None, body(theirs), "them", force=False)
    thing = applied(thing, body(mine), "me", force=True)
    merged = patched(MERGE_PATCH, {"spec": thing["spec"]}, {"spec": mine})
    assert merged["spec"] == thing["spec"]
    # What they hold goes with them, what I applied stays.
    left = applied(thing, body({}), "them", force=False)
    assert patched(MERGE_PATCH, left, {"spec": mine})["spec"] == left["spec"]
    assert applied(left, body({}), "me", force=False)["spec"] == {}


def test_a_field_goes_when_its_last_owner_lets_go() -> None:
    thing = applied(None, body({"x": 1, "y": {"z": 1}}), "one", force=False)
    thing = applied(thing, body({"x": 1}), "two", force=False)
    thing = applied(thing, body({}), "one", force=False)
    assert thing["spec"] == {"x": 1}
    thing = applied(thing, body({}), "two", force=False)
    assert thing["spec"] == {}
    assert "x" not in str(thing["metadata"].get("managedFields"))


def test_a_writer_takes_fields_from_an_applier() -> None:
    thing = applied(None, body({"x": 1, "y": 2}), "tool", force=False)
    written = copy.deepcopy(thing)
    written["spec"]["x"] = 5
    updated(thing, written, "hand")
    with pytest.raises(Denied, match=r'Apply failed with 1 conflict: conflict with "hand" using v1: \.spec\.x'):
        applied(written, body({"x": 1, "y": 2}), "tool", force=False)
    forced = applied(written, body({"x": 1, "y": 2}), "tool", force=True)
    assert forced["spec"] == {"x": 1, "y": 2}
    assert [entry["manager"] for entry in forced["metadata"]["managedFields"]] == ["tool"]
