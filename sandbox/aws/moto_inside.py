"""Where the guard takes hold of moto's classes, and what it mends in them.

moto's code: github.com/getmoto/moto, directories moto/ec2 and moto/core.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import moto.ec2.urls
import moto.ec2.utils
import moto.servicequotas.urls
from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.models.route_tables import Route
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix
from moto.moto_api._internal import mock_random

from .lookups import is_match
from .rules.routes import state_of

__all__ = ["clouds", "mend", "put_back", "serve_with"]


def serve_with(ec2: Any, quotas: Any) -> None:
    """Let these classes answer the calls of EC2 and Service Quotas. Before moto's application is made."""
    moto.ec2.urls.url_paths["{0}/"] = ec2.dispatch
    moto.servicequotas.urls.url_paths["{0}/$"] = quotas.dispatch


def mend(clock: Callable[[], float]) -> None:
    """Mend what is slow, wrong or not repeatable in moto's models. `clock` gives seconds since 1970."""
    TaggedEC2Resource.get_tags = _tags_of
    moto.ec2.utils.is_filter_matching = _is_filter_matching
    Route.state = property(state_of)
    EC2Backend._verify_group_will_respect_rule_count_limit = _no_own_limit  # noqa: SLF001
    ec2_backends.backend = _new_cloud

    def utcnow() -> datetime:
        return datetime.fromtimestamp(clock(), UTC).replace(tzinfo=None)

    for name, module in list(sys.modules.items()):
        if name.startswith("moto.ec2.") and hasattr(module, "utcnow"):
            module.utcnow = utcnow  # type: ignore[attr-defined]


def clouds() -> dict[tuple[str, str], Any]:
    """Moto's EC2 of every account and region that was ever looked at."""
    return {(account, region): cloud for account, region, cloud in ec2_backends.iter_backends()}


def put_back(stored: dict[tuple[str, str], Any]) -> None:
    """Replace moto's EC2 by these clouds."""
    ec2_backends.clear()
    for registry in (EC2Backend.vpc_refs, EC2Backend.vpc_pcx_refs):
        registry.clear()
    for (account, region), cloud in stored.items():
        ec2_backends[account][region] = cloud
        # moto finds the other end of a peering by these.
        EC2Backend.vpc_refs[EC2Backend].add(weakref.ref(cloud))
        EC2Backend.vpc_pcx_refs[EC2Backend].add(weakref.ref(cloud))


def _new_cloud(region: str, account_id: str) -> Any:
    """A region, whose default VPC has the same ids whenever it is first looked at."""
    state = mock_random.getstate()
    mock_random.seed(f"{account_id}/{region}")
    try:
        return EC2Backend(region, account_id)
    finally:
        mock_random.setstate(state)


def _tags_of(resource: Any) -> list[dict[str, str]]:
    """Moto compares a regular expression with every tag of the region, for every resource."""
    tags = resource.ec2_backend.tags.get(resource.id, {}) if resource.id else {}
    kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(resource.id), "") if tags else ""
    return [{"resource_id": resource.id, "key": key, "value": tags[key], "resource_type": kind} for key in tags]


def _no_own_limit(*_: Any, **__: Any) -> None:
    """The limit on a group's rules is in `limits`, not fixed at 60."""


def _is_filter_matching(resource: Any, name: str, values: Any) -> bool:
    """Of several values one must match; where the resource has several too, moto wants sets to contain each other."""
    return values is not None and is_match(resource.get_filter_value(name), values)
