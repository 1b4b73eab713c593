"""What a typed API server can decode as a Shoot: the fields that this garden looks at, and their types."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from sandbox.kube import Denied, Object, denied


class _Shape(BaseModel):
    # Gardener has many more fields; whether they are right is not this garden's business.
    model_config = ConfigDict(extra="allow", strict=True)


class _Image(_Shape):
    name: str | None = None
    version: str | None = None


class _Machine(_Shape):
    type: str | None = None
    architecture: str | None = None
    image: _Image | None = None


class _Volume(_Shape):
    type: str | None = None
    size: str | None = None


class _Worker(_Shape):
    name: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    maxSurge: int | str | None = None  # noqa: N815 - Gardener's own names
    maxUnavailable: int | str | None = None  # noqa: N815
    zones: list[str] | None = None
    labels: dict[str, str] | None = None
    machine: _Machine | None = None
    volume: _Volume | None = None
    cri: dict[str, Any] | None = None


class _Provider(_Shape):
    type: str | None = None
    infrastructureConfig: dict[str, Any] | None = None  # noqa: N815
    controlPlaneConfig: dict[str, Any] | None = None  # noqa: N815
    workers: list[_Worker] | None = None


class _Networking(_Shape):
    type: str | None = None
    nodes: str | None = None
    pods: str | None = None
    services: str | None = None
    ipFamilies: list[str] | None = None  # noqa: N815
    providerConfig: dict[str, Any] | None = None  # noqa: N815


class _Kubernetes(_Shape):
    version: str | None = None


class _Reference(_Shape):
    kind: str | None = None
    name: str | None = None


class _Hibernation(_Shape):
    enabled: bool | None = None


class _Spec(_Shape):
    cloudProfile: _Reference | None = None  # noqa: N815
    cloudProfileName: str | None = None  # noqa: N815
    credentialsBindingName: str | None = None  # noqa: N815
    secretBindingName: str | None = None  # noqa: N815
    region: str | None = None
    seedName: str | None = None  # noqa: N815
    purpose: str | None = None
    kubernetes: _Kubernetes | None = None
    networking: _Networking | None = None
    provider: _Provider | None = None
    hibernation: _Hibernation | None = None


class _Shoot(_Shape):
    spec: _Spec | None = None


def shape(shoot: Object) -> None:
    """Raises Denied (400) for a wrong type; takes away nulls, which mean the same as nothing."""
    try:
        _Shoot.model_validate(shoot)
    except ValidationError as error:
        raise _undecodable(error) from None
    shoot["spec"] = _without_nulls(shoot.get("spec") or {})
    for field in ("provider", "kubernetes"):
        shoot["spec"].setdefault(field, {})
    for worker in shoot["spec"]["provider"].get("workers") or []:
        worker.setdefault("machine", {})


def _undecodable(error: ValidationError) -> Denied:
    first = error.errors(include_url=False)[0]
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"]).lstrip(".")
    text = f"json: cannot unmarshal {path}: {first['msg']}"
    return denied(400, f'Shoot in version "v1beta1" cannot be handled as a Shoot: {text}')


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value
