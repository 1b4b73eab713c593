"""What a Shoot's status says (gardener, docs/usage/shoot/shoot_status.md)."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from domain.errors import Code, TrellisError

__all__ = ["ShootStatus"]

_UNAUTHENTICATED = "ERR_INFRA_UNAUTHENTICATED"
_UNAUTHORIZED = "ERR_INFRA_UNAUTHORIZED"
_QUOTA = "ERR_INFRA_QUOTA_EXCEEDED"
_RATE_LIMITS = "ERR_INFRA_RATE_LIMITS_EXCEEDED"
_DEPLETED = "ERR_INFRA_RESOURCES_DEPLETED"
_IN_USE = frozenset({"ERR_INFRA_DEPENDENCIES", "ERR_RETRYABLE_INFRA_DEPENDENCIES", "ERR_CLEANUP_CLUSTER_RESOURCES"})
# Present in every shoot with workers; the observability's came later and is asked for where there is one.
_CONDITIONS = ("APIServerAvailable", "ControlPlaneHealthy", "EveryNodeReady", "SystemComponentsHealthy")
_OBSERVABILITY = "ObservabilityComponentsHealthy"
_RETRY_ANNOTATION = "gardener.cloud/operation"


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _LastOperation(_Part):
    type: str = ""
    state: str = ""
    progress: int = 0
    description: str = ""
    updated: str | None = Field(None, alias="lastUpdateTime")


class _LastError(_Part):
    description: str = ""
    codes: tuple[str, ...] = ()


class _Condition(_Part):
    type: str
    status: str
    message: str = ""


class _Meta(_Part):
    name: str
    generation: int = 0
    annotations: dict[str, str] = Field(default_factory=dict)
    deleted: str | None = Field(None, alias="deletionTimestamp")


class _Status(_Part):
    observed: int = Field(0, alias="observedGeneration")
    operation: _LastOperation = Field(default_factory=_LastOperation, alias="lastOperation")
    errors: tuple[_LastError, ...] = Field((), alias="lastErrors")
    conditions: tuple[_Condition, ...] = ()
    hibernated: bool = Field(False, alias="hibernated")


class ShootStatus(_Part):
    """A shoot as far as its state goes. Two that are equal tell the same moment of the same operation."""

    metadata: _Meta
    status: _Status = Field(default_factory=_Status)

    @classmethod
    def of(cls, shoot: dict[str, Any]) -> ShootStatus:
        """Read the object that the garden sent."""
        return cls.model_validate(shoot)

    @property
    def deleting(self) -> bool:
        """Whether its deletion was asked for."""
        return self.metadata.deleted is not None

    @property
    def moment(self) -> tuple[object, ...]:
        """What changes when an operation goes on, and stays the same while it is over."""
        return self.status.observed, self.status.operation, self.status.errors

    @property
    def current(self) -> bool:
        """Whether the status speaks of what was last asked for."""
        asked = self.metadata.annotations.get(_RETRY_ANNOTATION)
        return self.status.observed == self.metadata.generation and not asked

    @property
    def ready(self) -> bool:
        """Whether it is made as asked for, and healthy."""
        operation = self.status.operation
        done = operation.type in ("Create", "Reconcile") and operation.state == "Succeeded"
        return self.current and done and not self.deleting and not self.unhealthy

    @property
    def reachable(self) -> bool:
        """Whether its API server and nodes work, also while Gardener maintains it."""
        conditions = {condition.type: condition.status for condition in self.status.conditions}
        up = all(conditions.get(name) == "True" for name in ("APIServerAvailable", "EveryNodeReady"))
        return up and not self.deleting and not self.status.hibernated

    @property
    def unhealthy(self) -> list[str]:
        """The conditions that are missing or not true, each with its message."""
        conditions = {condition.type: condition for condition in self.status.conditions}
        wanted = [*_CONDITIONS, *([_OBSERVABILITY] if _OBSERVABILITY in conditions else [])]
        unknown = _Condition(type="", status="Unknown", message="unknown")
        found = [(name, conditions.get(name, unknown)) for name in wanted]
        return [f"{name}: {each.message or each.status}" for name, each in found if each.status != "True"]

    @property
    def progress(self) -> str:
        """One line for the UI, such as `42% Creating infrastructure`."""
        operation = self.status.operation
        if not operation.state:
            return "waiting for Gardener to begin"
        line = f"{operation.progress}% {operation.description}".strip()
        if operation.state == "Succeeded" and self.unhealthy:
            return f"{line}; not healthy yet: {'; '.join(self.unhealthy)}"
        return line if operation.state in ("Processing", "Succeeded") else f"{line} ({operation.state}){self._because}"

    @property
    def throttled(self) -> bool:
        """Whether Gardener gave up for nothing but the cloud's rate limit, which it does not retry by itself."""
        return self.status.operation.state == "Failed" and self._codes == {_RATE_LIMITS}

    @property
    def given_up(self) -> bool:
        """Whether Gardener will not try again until it is told to."""
        return self.status.operation.state == "Failed"

    @property
    def creation_failure(self) -> TrellisError | None:
        """Why it will not become ready, if it will not.

        A zone without machines is told at once: Gardener would try for half a day.
        """
        if not self.current or not (self.given_up or (self._erring and _DEPLETED in self._codes)):
            return None
        what = f"shoot {self.metadata.name}: Gardener reports{self._because}"
        if _DEPLETED in self._codes:
            hint = "try another zone or machine type; the block stays reserved until the cluster is removed"
            return TrellisError(Code.NO_CAPACITY, what, hint)
        return self._common_failure(what) or TrellisError(
            Code.SHOOT_FAILED, what, "mend what the message names, then retry, or delete the cluster"
        )

    @property
    def deletion_failure(self) -> TrellisError | None:
        """Why it is not going away, if it is not. `blocked`: something that Gardener did not make is in its way."""
        operation = self.status.operation
        if operation.type != "Delete" or not self.current or not (self.given_up or self._erring):
            return None
        what = f"deleting shoot {self.metadata.name}: Gardener reports{self._because}"
        if self._codes & _IN_USE:
            hint = "remove what the message names from the cluster's subnets; the deletion then goes on by itself"
            return TrellisError(Code.BLOCKED, what, hint)
        if not self.given_up:
            return None
        return self._common_failure(what) or TrellisError(Code.SHOOT_FAILED, what, "mend what the message names")

    def _common_failure(self, what: str) -> TrellisError | None:
        if self._codes & {_UNAUTHENTICATED, _UNAUTHORIZED}:
            hint = "check the secret behind the CredentialsBinding and its permissions in the cloud"
            return TrellisError(Code.FORBIDDEN, what, hint)
        if _QUOTA in self._codes:
            return TrellisError(Code.QUOTA, what, "raise the quota that the message names, or free some of it")
        return None

    @property
    def _erring(self) -> bool:
        return self.status.operation.state == "Error"

    @property
    def _codes(self) -> set[str]:
        return {code for error in self.status.errors for code in error.codes}

    @property
    def _because(self) -> str:
        texts = [
            error.description + (f" [{', '.join(error.codes)}]" if error.codes else "") for error in self.status.errors
        ]
        return f": {'; '.join(texts)}" if texts else f": {self.status.operation.description}"
