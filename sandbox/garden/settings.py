"""How this garden behaves: from the command line, and changeable while it runs."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Operation = Literal["reconcile", "delete"]


class Failure(BaseModel):
    """Operations that fail on purpose, before the cloud is touched.

    Attributes:
        name_pattern: Which shoots, as a shell pattern.
        operation: Which operation.
        codes: Gardener's error codes; none for an error without code, which is retried.
        message: What `lastErrors` says.
        times: How many operations still fail.
    """

    model_config = ConfigDict(extra="forbid")

    name_pattern: str = "*"
    operation: Operation = "reconcile"
    codes: tuple[str, ...] = ()
    message: str = "an error that was asked for"
    times: Annotated[int, Field(ge=0)] = 1


class Settings(BaseModel):
    """What may be changed at any time with PUT /sandbox/settings; fields that are left out keep their value.

    Attributes:
        shoot_seconds: How long the machines of a shoot take to come or to go.
        retry_seconds: Pause before the first retry of an operation in state Error; it doubles, up to a minute.
        kubeconfig_max_seconds: Longer lives of a kubeconfig are cut to this, as Gardener does with its own maximum.
        fail: Operations that fail on purpose.
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    shoot_seconds: Annotated[float, Field(ge=0)] = 5.0
    retry_seconds: Annotated[float, Field(gt=0)] = 2.0
    kubeconfig_max_seconds: Annotated[float, Field(gt=0)] = 86_400.0
    fail: list[Failure] = []

    def failure(self, name: str, operation: Operation) -> Failure | None:
        """The failure that this operation is to have, which is counted."""
        for failure in self.fail:
            if failure.times and failure.operation == operation and fnmatchcase(name, failure.name_pattern):
                failure.times -= 1
                return failure
        return None
