"""Between the caller and moto: what EC2 checks for every action, then the action's rule, then moto."""

from __future__ import annotations

import hashlib
import json
from typing import Any, ClassVar, Protocol

from botocore.model import OperationNotFoundError
from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult
from moto.core.utils import camelcase_to_underscores, get_service_model
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response
from moto.servicequotas.responses import ServiceQuotasResponse

from .agenda import settle
from .calls import Call, refuse
from .limits import applied_quota, applied_quotas
from .lookups import check_filters, check_ids
from .rules import RULES
from .settings import Settings
from .tagging import check_tags, forget_tags

__all__ = ["GuardedEC2", "GuardedQuotas", "Surroundings", "is_reading"]

_READING = ("Describe", "Get", "List", "Search")
# EC2 forgets a client token after a day or so; here the oldest goes.
_TOKENS = 5000

Answer = tuple[int, dict[str, str], str]


class Surroundings(Protocol):
    """What the guard needs to know of the world around it."""

    now: float
    settings: Settings
    tokens: dict[str, tuple[str, Answer]]


def is_reading(action: str) -> bool:
    """Whether an EC2 action changes nothing."""
    return action.startswith(_READING)


class GuardedEC2(EC2Response):  # type: ignore[misc]  # moto has no types
    """EC2's front door. `surroundings` is set once, before the first call."""

    surroundings: ClassVar[Surroundings]

    def parse_parameters(self, request: Any) -> None:
        """Parse; an action that does not exist has no parameters, and is refused later."""
        try:
            super().parse_parameters(request)
        except OperationNotFoundError:
            self.params: dict[str, Any] = {}

    def call_action(self) -> Answer:
        """Answer one call; errors go out in EC2's own shape."""
        try:
            if known := self._known_token():
                return known
            result = self._result()
        except ServiceException as error:
            return self._out(ActionResult(error))
        except NotImplementedError as error:
            return self._out(ActionResult(EC2ClientError("UnsupportedOperation", f"Not in this sandbox: {error}")))
        answer = self._out(result)
        if token := self._token():
            tokens = self.surroundings.tokens
            tokens[token] = (self._fingerprint(), answer)
            if len(tokens) > _TOKENS:
                tokens.pop(next(iter(tokens)))
        return answer

    def _result(self) -> ActionResult:
        action = self._get_action()
        method = getattr(self, camelcase_to_underscores(action), None)
        if action not in get_service_model("ec2").operation_names:
            refuse("InvalidAction", f"The action {action} is not valid for this web service.")
        if method is None:
            raise NotImplementedError(f"the action {action}")
        call = Call(action, self._cloud(), self.params, self.surroundings.settings, self.surroundings.now, method)
        settle(call.cloud, call.now)
        check_filters(call)
        check_tags(call)
        # docs.aws.amazon.com/AWSEC2/latest/APIReference/CommonParameters.html
        if call.get("DryRun"):
            refuse("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
        check_ids(call)
        rule = RULES.get(action)
        result = rule(call) if rule else method()
        forget_tags(call)
        return result

    def _cloud(self) -> Any:
        try:
            return self.ec2_backend
        except KeyError:
            refuse("AuthFailure", f"Credential should be scoped to a valid region; '{self.region}' is none.")

    def _out(self, result: ActionResult) -> Answer:
        status, headers, body = self.serialized(result)
        headers, body = self._enrich_response(headers, body)
        return status, headers, body

    # docs.aws.amazon.com/AWSEC2/latest/APIReference/Run_Instance_Idempotency.html
    def _known_token(self) -> Answer | None:
        stored = self.surroundings.tokens.get(self._token() or "")
        if stored is None:
            return None
        if stored[0] != self._fingerprint():
            refuse("IdempotentParameterMismatch", "The client token has been used before with different parameters.")
        return stored[1]

    def _token(self) -> str | None:
        token = self.params.get("ClientToken")
        action = self._get_action()
        if not token or is_reading(action) or self.params.get("DryRun"):
            return None
        return f"{self.current_account}/{self.region}/{action}/{token}"

    def _fingerprint(self) -> str:
        given = {key: value for key, value in self.querystring.items() if key != "ClientToken"}
        return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()


class GuardedQuotas(ServiceQuotasResponse):  # type: ignore[misc]  # moto has no types
    """Service Quotas, showing the limits that are in force here."""

    def get_service_quota(self) -> str:
        """One applied quota."""
        asked = json.loads(self.body)
        service, code = str(asked.get("ServiceCode")), str(asked.get("QuotaCode"))
        return json.dumps({"Quota": applied_quota(GuardedEC2.surroundings.settings, self.region, service, code)})

    def list_service_quotas(self) -> str:
        """The applied quotas of a service, all on one page."""
        service = str(json.loads(self.body).get("ServiceCode"))
        return json.dumps({"Quotas": applied_quotas(GuardedEC2.surroundings.settings, self.region, service)})
