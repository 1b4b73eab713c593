from typing import Any

import pytest

from activities.gardener.status import ShootStatus
from domain.errors import Code
from tests.activities.gardener.byhand import HEALTHY


def shoot(state: str = "Succeeded", kind: str = "Create", *codes: str, text: str = "", **changes: Any) -> ShootStatus:
    status: dict[str, Any] = {
        "observedGeneration": changes.pop("observed", 2),
        "lastOperation": {"type": kind, "state": state, "progress": 42, "description": "Creating infrastructure"},
        "conditions": [{"type": each, "status": "True"} for each in changes.pop("healthy", HEALTHY)],
    }
    if codes or text:
        status["lastErrors"] = [{"description": text, "codes": list(codes)}]
    return ShootStatus.of({"metadata": {"name": "t234567890", "generation": 2, **changes}, "status": status})


def test_ready_means_that_the_last_wish_was_fulfilled_and_everything_is_healthy() -> None:
    assert shoot().ready
    assert shoot(kind="Reconcile").ready
    assert not shoot(observed=1).ready
    assert not shoot("Processing").ready
    assert not shoot(kind="Delete").ready
    assert not shoot(deletionTimestamp="2026-01-01T00:00:00Z").ready
    assert not shoot(annotations={"gardener.cloud/operation": "retry"}).ready


@pytest.mark.parametrize("missing", HEALTHY)
def test_a_condition_that_is_not_true_is_waited_for_and_named(missing: str) -> None:
    others = [each for each in HEALTHY if each != missing]
    late = shoot(healthy=others)
    if missing == "ObservabilityComponentsHealthy":
        assert late.ready  # older landscapes do not have it
    else:
        assert not late.ready
        assert missing in late.progress


def test_a_shoot_that_gardener_has_not_seen_yet_has_no_failure() -> None:
    fresh = ShootStatus.of({"metadata": {"name": "t234567890", "generation": 1}})
    assert not fresh.ready
    assert fresh.creation_failure is None
    assert fresh.progress == "waiting for Gardener to begin"


def test_progress_reads_well() -> None:
    assert shoot("Processing").progress == "42% Creating infrastructure"
    assert "(Error): no route" in shoot("Error", "Create", text="no route").progress


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ERR_INFRA_UNAUTHENTICATED", Code.FORBIDDEN),
        ("ERR_INFRA_UNAUTHORIZED", Code.FORBIDDEN),
        ("ERR_INFRA_QUOTA_EXCEEDED", Code.QUOTA),
        ("ERR_INFRA_RESOURCES_DEPLETED", Code.NO_CAPACITY),
        ("ERR_INFRA_DEPENDENCIES", Code.SHOOT_FAILED),
        ("ERR_CONFIGURATION_PROBLEM", Code.SHOOT_FAILED),
    ],
)
def test_a_creation_that_gardener_gave_up_fails_with_gardeners_words(code: str, expected: Code) -> None:
    failure = shoot("Failed", "Create", code, text="no more VPCs for you").creation_failure
    assert failure
    assert failure.failure.code is expected
    assert "no more VPCs for you" in failure.failure.message
    assert code in failure.failure.message
    assert failure.failure.hint


def test_an_error_that_gardener_retries_is_no_failure_unless_the_zone_has_no_machines() -> None:
    assert shoot("Error", "Create", "ERR_RETRYABLE_INFRA_DEPENDENCIES").creation_failure is None
    depleted = shoot("Error", "Create", "ERR_INFRA_RESOURCES_DEPLETED").creation_failure
    assert depleted
    assert depleted.failure.code is Code.NO_CAPACITY


def test_a_failure_of_the_wish_before_the_last_does_not_count() -> None:
    assert shoot("Failed", "Create", "ERR_INFRA_QUOTA_EXCEEDED", observed=1).creation_failure is None


def test_only_the_rate_limit_alone_is_worth_an_unasked_retry() -> None:
    assert shoot("Failed", "Create", "ERR_INFRA_RATE_LIMITS_EXCEEDED").throttled
    both = shoot("Failed", "Create", "ERR_INFRA_RATE_LIMITS_EXCEEDED", "ERR_INFRA_QUOTA_EXCEEDED")
    assert not both.throttled


@pytest.mark.parametrize(
    ("state", "code", "expected"),
    [
        ("Failed", "ERR_INFRA_DEPENDENCIES", Code.BLOCKED),
        ("Error", "ERR_CLEANUP_CLUSTER_RESOURCES", Code.BLOCKED),
        ("Failed", "ERR_INFRA_UNAUTHORIZED", Code.FORBIDDEN),
        ("Failed", "ERR_CONFIGURATION_PROBLEM", Code.SHOOT_FAILED),
        ("Error", "ERR_CONFIGURATION_PROBLEM", None),
        ("Processing", "ERR_INFRA_DEPENDENCIES", None),
    ],
)
def test_a_deletion_that_does_not_go_on_tells_why(state: str, code: str, expected: Code | None) -> None:
    failure = shoot(state, "Delete", code, text="eni-1 of my database").deletion_failure
    assert (failure and failure.failure.code) is expected
    assert failure is None or "eni-1 of my database" in failure.failure.message


def test_a_creation_that_failed_before_does_not_fail_the_deletion() -> None:
    assert shoot("Failed", "Create", "ERR_INFRA_DEPENDENCIES").deletion_failure is None
