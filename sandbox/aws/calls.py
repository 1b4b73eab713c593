"""One call to EC2 as a rule sees it, and the table of rules.

A rule is a function for one EC2 action. It may refuse (raise), do something before moto does (`call.proceed()`), after
it, or instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError

from .settings import Settings

__all__ = ["RULES", "Call", "ids_of", "refuse", "rule", "violated"]


@dataclass(frozen=True)
class Call:
    """A call that has passed what holds for every action (see `guard`)."""

    action: str
    cloud: Any
    """moto's EC2Backend of the caller's account and region."""
    parameters: dict[str, Any]
    """As in the API reference; changing one here changes what moto sees."""
    settings: Settings
    now: float
    """Seconds since 1970; when a call is replayed, the time it was first made."""
    proceed: Callable[[], ActionResult]
    """moto's own implementation."""

    def get(self, name: str, default: Any = None) -> Any:
        """A parameter, or the default where it was not given."""
        value = self.parameters.get(name)
        return default if value is None else value

    def tags(self) -> dict[str, str]:
        """The tags of the call's tag specifications."""
        specifications = self.get("TagSpecifications", [])
        return {tag["Key"]: tag.get("Value", "") for one in specifications for tag in one.get("Tags", [])}


Rule = Callable[[Call], ActionResult]
RULES: dict[str, Rule] = {}
"""The rule of each guarded action. Its page: docs.aws.amazon.com/AWSEC2/latest/APIReference/API_<action>.html."""


def rule(*actions: str) -> Callable[[Rule], Rule]:
    """Enter a function into the table for these EC2 actions."""

    def enter(function: Rule) -> Rule:
        for action in actions:
            if action in RULES:
                raise ValueError(f"two rules for {action}")
            RULES[action] = function
        return function

    return enter


def refuse(code: str, message: str) -> NoReturn:
    """Answer with EC2's error. Codes: docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html."""
    raise EC2ClientError(code, message)


def violated(kind: str, resource_id: str) -> NoReturn:
    """Answer that something still depends on the resource, in EC2's words."""
    refuse("DependencyViolation", f"The {kind} '{resource_id}' has dependencies and cannot be deleted.")


def ids_of(resources: Any) -> set[str]:
    """The ids of moto's resources."""
    return {resource.id for resource in resources}
