"""What is in the garden from the beginning."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterator, Mapping
from importlib import resources
from pathlib import Path

import yaml

from sandbox.garden.kinds import CLOUD_PROFILES, CREDENTIALS_BINDINGS, GARDEN, PROJECTS
from sandbox.garden.providers.alicloud.session import register_key
from sandbox.garden.providers.azure.session import new_principal
from sandbox.garden.providers.gcp.session import KEY as GCP_KEY
from sandbox.garden.providers.gcp.session import new_key
from sandbox.kube import Object, Store, ensure_namespace

PROJECT = "trellis"
NAMESPACE = f"garden-{PROJECT}"
# AWS' own documentation uses these keys: they have the shape of real ones, and open nothing.
_AWS = {"accessKeyID": "AKIAIOSFODNN7EXAMPLE", "secretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
_AWS_OTHER = {"accessKeyID": "AKIAI44QH8DHBEXAMPLE", "secretAccessKey": "je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY"}
_GCP_ACCOUNT = {
    "type": "service_account",
    "project_id": "trellis-sandbox",
    "client_email": "gardener@trellis-sandbox.iam.gserviceaccount.com",
    "private_key_id": "0" * 40,
}
_CREDENTIALS: dict[str, tuple[str, dict[str, str]]] = {
    "aws": ("aws", _AWS),
    "aws-other": ("aws", _AWS_OTHER),
    "azure": (
        "azure",
        {
            "clientID": "11111111-1111-4111-8111-111111111111",
            "clientSecret": "sandbox",
            "subscriptionID": "22222222-2222-4222-8222-222222222222",
            "tenantID": "33333333-3333-4333-8333-333333333333",
        },
    ),
    "gcp": ("gcp", {GCP_KEY: json.dumps(_GCP_ACCOUNT)}),
    "alicloud": (
        "alicloud",
        {"accessKeyID": "LTAI5tSandboxSandbox", "accessKeySecret": "sandbox" * 4 + "00"},
    ),
    "openstack": (
        "openstack",
        {"domainName": "Default", "tenantName": "trellis", "username": "trellis", "password": "sandbox"},
    ),
}


def furnish(store: Store, types: Collection[str] = ("aws", "gcp", "azure", "alicloud", "openstack")) -> None:
    """Creates what is missing of it; what is there stays as it is, except the CloudProfiles.

    CredentialsBindings only for the types of clouds that there are: nobody is let in anywhere else.
    """
    for name in ("default", "garden", NAMESPACE):
        ensure_namespace(store, GARDEN, name)
    for profile in cloud_profiles():
        current = store.get(GARDEN, CLOUD_PROFILES.key, None, profile["metadata"]["name"])
        if current is None:
            store.create(GARDEN, CLOUD_PROFILES.key, profile)
        elif current["spec"] != profile["spec"]:
            store.update(GARDEN, CLOUD_PROFILES.key, {**current, "spec": profile["spec"]})
    for key, obj in _objects():
        if key == CREDENTIALS_BINDINGS.key and obj["provider"]["type"] not in types:
            continue
        meta = obj["metadata"]
        if store.get(GARDEN, key, meta.get("namespace"), meta["name"]) is None:
            store.create(GARDEN, key, obj)


def open_gcp(store: Store, endpoint: str) -> None:
    """Exchanges the key in the Secret `gcp`, which opens nothing, for one of the sandbox's Compute Engine.

    A key that was exchanged before, or that somebody put there, stays. Waits for a server that is about to start.
    """
    furnish(store, ["gcp"])
    secret = store.get(GARDEN, "secrets", NAMESPACE, "gcp")
    if secret is not None and secret["data"] == _encoded(_CREDENTIALS["gcp"][1]):
        key = new_key(endpoint, _GCP_ACCOUNT["project_id"])
        store.update(GARDEN, "secrets", {**secret, "data": _encoded({GCP_KEY: key})})


def open_alicloud(store: Store, endpoint: str) -> None:
    """Makes the key in the Secret `alicloud` known to the sandbox's Alibaba Cloud; one that somebody put there is not.

    Waits for a server that is about to start.
    """
    furnish(store, ["alicloud"])
    secret = store.get(GARDEN, "secrets", NAMESPACE, "alicloud")
    _, key = _CREDENTIALS["alicloud"]
    if secret is not None and secret["data"] == _encoded(key):
        register_key(endpoint, key)


def open_azure(store: Store, endpoint: str, authority: Path | None) -> None:
    """Exchanges the keys in the Secret `azure`, which open nothing, for those of a principal of the sandbox's Azure.

    Keys that were exchanged before, or that somebody put there, stay. Waits for a server that is about to start.
    """
    furnish(store, ["azure"])
    secret = store.get(GARDEN, "secrets", NAMESPACE, "azure")
    _, keys = _CREDENTIALS["azure"]
    if secret is not None and secret["data"] == _encoded(keys):
        principal = new_principal(endpoint, authority, keys["subscriptionID"])
        store.update(GARDEN, "secrets", {**secret, "data": _encoded(principal)})


def open_openstack(store: Store, auth_url: str) -> None:
    """Puts the address of the sandbox's Keystone into the Secret `openstack`; one that somebody put there stays.

    The CloudProfile, where Gardener looks else, has the addresses of real ones.
    """
    furnish(store, ["openstack"])
    secret = store.get(GARDEN, "secrets", NAMESPACE, "openstack")
    _, user = _CREDENTIALS["openstack"]
    if secret is not None and _encoded(user).items() <= secret["data"].items():
        store.update(GARDEN, "secrets", {**secret, "data": _encoded({**user, "authURL": auth_url})})


def cloud_profiles() -> list[Object]:
    """The CloudProfiles, one per provider."""
    files = resources.files("sandbox.garden.cloudprofiles").iterdir()
    return [yaml.safe_load(file.read_text()) for file in files if file.name.endswith(".yaml")]


def _objects() -> Iterator[tuple[str, Object]]:
    yield (
        PROJECTS.key,
        {
            "apiVersion": PROJECTS.api_version,
            "kind": "Project",
            "metadata": {"name": PROJECT},
            "spec": {
                "namespace": NAMESPACE,
                "owner": {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "admin"},
                "createdBy": {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "admin"},
            },
            "status": {"phase": "Ready"},
        },
    )
    for name, (provider, data) in _CREDENTIALS.items():
        yield (
            "secrets",
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": name,
                    "namespace": NAMESPACE,
                    "labels": {f"provider.shoot.gardener.cloud/{provider}": "true"},
                },
                "type": "Opaque",
                "data": _encoded(data),
            },
        )
        yield (
            CREDENTIALS_BINDINGS.key,
            {
                "apiVersion": CREDENTIALS_BINDINGS.api_version,
                "kind": "CredentialsBinding",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "provider": {"type": provider},
                "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": name, "namespace": NAMESPACE},
            },
        )


def _encoded(data: Mapping[str, str]) -> dict[str, str]:
    """As a Secret holds it."""
    return {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
