"""The Shoot that Trellis asks Gardener for, and how it knows it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from activities.gardener import alicloud, aws, azure, gcp, openstack
from activities.gardener.provider import ProviderConfig
from domain.networks import Layout
from domain.shoots import ClusterKey, FoundShoot, ShootKey, ShootOrder, ShootPlan
from domain.specs import ClusterSpec, Provider

__all__ = ["belongs_to", "cluster_of", "found", "same_place", "selector", "shoot_manifest"]

_TENANT = "trellis.dev/tenant"
_CLUSTER = "trellis.dev/cluster"
_VPC = "trellis.dev/vpc"
_BLOCK = "trellis.dev/block"

_VOLUME_SIZE = "50Gi"
_WORKER = "worker"

# One line per provider.
_CONFIGS: Mapping[Provider, Callable[[ShootOrder], tuple[ProviderConfig, ProviderConfig]]] = {
    Provider.AWS: aws.configs,
    Provider.ALICLOUD: alicloud.configs,
    Provider.AZURE: azure.configs,
    Provider.GCP: gcp.configs,
    Provider.OPENSTACK: openstack.configs,
}
# Without an overlay, every node's pods have a route in the one route table of the network (GCP) or on its router
# (OpenStack): no two clusters could have the same pod range, and all their nodes together would share its quota of
# routes (gardener-extension-provider-gcp, docs/usage/usage.md and docs/usage/ipv6.md;
# gardener-extension-provider-openstack, docs/usage/usage.md; `max_routes` of Neutron is 30).
_WITH_OVERLAY = frozenset({Provider.GCP, Provider.OPENSTACK})


def shoot_manifest(order: ShootOrder) -> dict[str, Any]:
    """The whole Shoot, `core.gardener.cloud/v1beta1`."""
    spec, plan = order.spec, order.plan
    infrastructure, control_plane = _CONFIGS[spec.provider](order)
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {
            "name": plan.shoot.name,
            "namespace": plan.shoot.namespace,
            "labels": {_TENANT: spec.tenant, _CLUSTER: spec.name, _VPC: spec.vpc_name},
            "annotations": {_BLOCK: str(order.layout.block)},
        },
        "spec": {
            "cloudProfile": {"kind": "CloudProfile", "name": plan.cloud_profile},
            "credentialsBindingName": spec.vpc_spec().credentials,
            "region": spec.region,
            "purpose": "production",
            "kubernetes": {"version": plan.kubernetes_version},
            "networking": _networking(spec, order.layout),
            "provider": {
                "type": spec.provider.value,
                "infrastructureConfig": infrastructure.to_json(),
                "controlPlaneConfig": control_plane.to_json(),
                "workers": [_worker(spec, plan)],
            },
            "maintenance": {"autoUpdate": {"kubernetesVersion": True, "machineImageVersion": True}},
        },
    }


def _networking(spec: ClusterSpec, layout: Layout) -> dict[str, Any]:
    """All three ranges are always given: a landscape's defaults may overlap what is given."""
    networking: dict[str, Any] = {
        "type": "calico",
        "nodes": str(layout.nodes),
        "pods": str(spec.pods),
        "services": str(spec.services),
    }
    if spec.provider in _WITH_OVERLAY:
        networking["providerConfig"] = {
            "apiVersion": "calico.networking.extensions.gardener.cloud/v1alpha1",
            "kind": "NetworkConfig",
            "overlay": {"enabled": True},
        }
    return networking


def _worker(spec: ClusterSpec, plan: ShootPlan) -> dict[str, Any]:
    worker: dict[str, Any] = {
        "name": _WORKER,
        "machine": {
            "type": plan.machine_type,
            "architecture": plan.architecture,
            "image": {"name": plan.machine_image, "version": plan.machine_image_version},
        },
        "minimum": spec.nodes_min,
        "maximum": spec.nodes_max,
        "maxSurge": 1,
        "maxUnavailable": 0,
        "zones": list(plan.zones),
    }
    if plan.volume_type:
        worker["volume"] = {"type": plan.volume_type, "size": _VOLUME_SIZE}
    return worker


def selector(tenant: str, vpc: str) -> str:
    """The label selector for the shoots of a VPC."""
    return f"{_TENANT}={tenant},{_VPC}={vpc},{_CLUSTER}"


def belongs_to_another(shoot: dict[str, Any], key: ClusterKey) -> bool:
    """Whether the shoot's labels name another cluster: then nothing of this one is left under its name."""
    return all(label in _labels(shoot) for label in (_TENANT, _CLUSTER)) and not belongs_to(shoot, key)


def belongs_to(shoot: dict[str, Any], key: ClusterKey) -> bool:
    """Whether Trellis made the shoot, and for this cluster."""
    labels = _labels(shoot)
    return labels.get(_TENANT) == key.tenant and labels.get(_CLUSTER) == key.cluster


def same_place(shoot: dict[str, Any], order: ShootOrder) -> bool:
    """Whether a shoot sits where the order wants it: VPC, block and every subnet."""
    wanted = shoot_manifest(order)
    mine, its = wanted["spec"]["provider"], shoot["spec"]["provider"]
    return (
        _labels(shoot).get(_VPC) == order.spec.vpc_name
        and (shoot["metadata"].get("annotations") or {}).get(_BLOCK) == str(order.layout.block)
        and _contains(its.get("infrastructureConfig"), mine["infrastructureConfig"])
    )


def cluster_of(shoot: dict[str, Any]) -> str:
    """The user's name of the cluster."""
    return _labels(shoot)[_CLUSTER]


def found(shoot: dict[str, Any]) -> FoundShoot:
    """A shoot of Trellis in Trellis' words."""
    meta, spec = shoot["metadata"], shoot["spec"]
    return FoundShoot(
        shoot=ShootKey(namespace=meta["namespace"], name=meta["name"]),
        vpc=_labels(shoot)[_VPC],
        provider=Provider(spec["provider"]["type"]),
        region=spec["region"],
        credentials=spec["credentialsBindingName"],
        block=meta["annotations"][_BLOCK],
        deleting="deletionTimestamp" in meta,
    )


def _labels(shoot: dict[str, Any]) -> dict[str, str]:
    return shoot["metadata"].get("labels") or {}


def _contains(whole: Any, part: Any) -> bool:
    """Whether `whole` says all that `part` says; Gardener fills in what was left open."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and _contains(whole[key], value) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(whole) >= len(part) and all(_contains(*pair) for pair in zip(whole, part, strict=False))
    return bool(whole == part)
