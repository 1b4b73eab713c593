"""Who may do what: the garden's own token, and the kubeconfigs that it hands out for shoots."""

from __future__ import annotations

import base64
import hmac
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from starlette.requests import Request

from sandbox.garden.hosts import Key
from sandbox.garden.kinds import GARDEN, SHOOTS_KEY
from sandbox.garden.settings import Settings
from sandbox.garden.start import NAMESPACE
from sandbox.garden.tokens import Claims, Role, Tokens
from sandbox.kube import Action, Denied, Object, Store, bearer_token, denied, lookup
from sandbox.kube.resources import Handler

_LEAST_SECONDS, _DEFAULT_SECONDS = 600, 3600
_USER = "system:serviceaccount:garden-trellis:robot"
_READING = {"get", "list", "watch", "options", "head"}


class Access:
    """Authenticates every request, and makes kubeconfigs."""

    def __init__(self, store: Store, state_dir: Path, settings: Settings, url: str, authority: Path) -> None:
        self._store = store
        self._authority = base64.b64encode(authority.read_bytes()).decode()
        self._settings = settings
        self._tokens = Tokens(state_dir / "shoots.key")
        self._token = _kept_token(state_dir / "garden.token")
        self._url = url

    def write_kubeconfig(self, path: Path) -> None:
        """The kubeconfig of the garden itself."""
        content = self._kubeconfig("garden", self._url, self._token, NAMESPACE)
        part = path.with_suffix(".part")
        part.touch(mode=0o600)
        part.write_text(content)
        part.replace(path)

    def api_server(self, key: Key) -> str:
        """The address of a shoot's API server."""
        return f"{self._url}/shoots/{key[0]}/{key[1]}"

    def to_garden(self, request: Request, _: Action) -> str:
        """The user of a request to the garden; raises Denied."""
        if not hmac.compare_digest(bearer_token(request) or "", self._token):
            raise denied(401, "Unauthorized")
        return _USER

    def to_shoot(self, request: Request, action: Action) -> str:
        """The user of a request to a shoot's API server; raises Denied."""
        key = (request.path_params["namespace"], request.path_params["name"])
        claims = self._tokens.read(bearer_token(request))
        shoot = self._store.get(GARDEN, SHOOTS_KEY, *key)
        if claims is None or shoot is None or claims.shoot != shoot["metadata"]["uid"]:
            raise denied(401, "Unauthorized")
        secret = action.resource is not None and action.resource.key == "secrets"
        if claims.role == "viewer" and (action.verb not in _READING or secret or action.subresource == "proxy"):
            raise _not_allowed(claims.user, action)
        return claims.user

    def kubeconfig_handler(self, role: Role) -> Handler:
        """The subresource `adminkubeconfig` or `viewerkubeconfig`."""
        kind = f"{role.capitalize()}KubeconfigRequest"

        async def handle(request: Request, shoot: Object) -> Object:
            body = await request.body()
            return self._answer(kind, role, shoot, yaml.safe_load(body) if body else {})

        return handle

    def _answer(self, kind: str, role: Role, shoot: Object, asked: Any) -> Object:
        if not isinstance(asked, dict) or asked.get("kind", kind) != kind:
            raise denied(400, f"the object provided is unrecognized: a {kind} is needed")
        seconds = lookup(asked, "spec.expirationSeconds")
        seconds = _DEFAULT_SECONDS if seconds is None else seconds
        if not isinstance(seconds, int) or isinstance(seconds, bool):
            raise denied(400, f"{kind}: spec.expirationSeconds must be an integer")
        if seconds < _LEAST_SECONDS:
            detail = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
            raise _invalid(f'{kind}.authentication.gardener.cloud "" is invalid: spec.expirationSeconds: {detail}')
        meta = shoot["metadata"]
        if not lookup(shoot, "status.advertisedAddresses"):
            detail = "no suitable advertised address for kube-apiserver found in .status.advertisedAddresses"
            text = f"status.status: Invalid value: null: {detail}"
            raise _invalid(f'{kind}.authentication.gardener.cloud "{meta["name"]}" is invalid: {text}')
        lifetime = min(float(seconds), self._settings.kubeconfig_max_seconds)
        claims = Claims(meta["uid"], _USER, role, time.time() + lifetime)
        server = self.api_server((meta["namespace"], meta["name"]))
        name = f"{meta['namespace']}--{meta['name']}-external"
        content = self._kubeconfig(name, server, self._tokens.sign(claims), "default")
        expires = datetime.fromtimestamp(claims.expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": "authentication.gardener.cloud/v1alpha1",
            "kind": kind,
            "metadata": {},
            "spec": {"expirationSeconds": int(min(seconds, self._settings.kubeconfig_max_seconds))},
            "status": {"kubeconfig": base64.b64encode(content.encode()).decode(), "expirationTimestamp": expires},
        }

    def _kubeconfig(self, name: str, server: str, token: str, namespace: str) -> str:
        cluster = {"server": server, "certificate-authority-data": self._authority}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        }
        return yaml.safe_dump(config, sort_keys=False)


def _kept_token(path: Path) -> str:
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(32))
    return path.read_text()


def _invalid(text: str) -> Denied:
    return denied(422, text)


def _not_allowed(user: str, action: Action) -> Denied:
    resource = action.resource
    plural = f"{resource.plural}/{action.subresource}".rstrip("/") if resource else ""
    group = resource.group if resource else ""
    where = f' in the namespace "{action.namespace}"' if action.namespace else " at the cluster scope"
    text = f'User "{user}" cannot {action.verb} resource "{plural}" in API group "{group}"{where}'
    return denied(403, f'{plural} "{action.name}" is forbidden: {text}')
