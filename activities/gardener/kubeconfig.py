"""Kubeconfigs: the garden's, which is the operator's file, and a shoot's, which must leave no trace."""

from __future__ import annotations

import asyncio
import base64
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException
from kubernetes.aio.config.kube_config import load_kube_config
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from domain.errors import Code, TrellisError

__all__ = ["from_file", "short_lived"]

# A token file is renewed, a plugin's token expires: the file is read again after this many seconds.
_RELOAD_AFTER = 300.0
_HINT = "let TRELLIS_GARDEN_KUBECONFIG name a kubeconfig of the garden project"


async def from_file(path: Path) -> Configuration:
    """The server of a kubeconfig's current context; credentials that expire are renewed.

    Raises:
        TrellisError: `invalid` if the file is missing or is no kubeconfig.
    """
    configuration = Configuration()
    await _load(path, configuration)
    loaded = time.monotonic()

    async def reload(_: Configuration) -> None:
        nonlocal loaded
        if time.monotonic() - loaded > _RELOAD_AFTER:
            loaded = time.monotonic()
            await _load(path, configuration)

    configuration.refresh_api_key_hook = reload
    return configuration


async def _load(path: Path, configuration: Configuration) -> None:
    if not await asyncio.to_thread(path.is_file):
        raise TrellisError(Code.INVALID, f"garden kubeconfig {path}: there is no such file", _HINT)
    try:
        await load_kube_config(str(path), client_configuration=configuration, persist_config=False)
    except (ConfigException, yaml.YAMLError, LookupError, ValueError, TypeError) as error:
        # Only the error's type: its text may quote the file.
        raise TrellisError(Code.INVALID, f"garden kubeconfig {path}: {type(error).__name__}", _HINT) from None


@contextmanager
def short_lived(kubeconfig: bytes, name: str) -> Iterator[Configuration]:
    """The configuration for a client of `name` that is made inside this context: it reads the key here and never again.

    The client's own loader would keep key and certificate in memory and in files for the life of the process, and
    would run whatever command the kubeconfig names.

    Raises:
        TrellisError: `invalid` if it names no server or no credentials that Trellis understands.
    """
    with tempfile.TemporaryDirectory() as directory:
        try:
            access = _Kubeconfig.model_validate(yaml.safe_load(kubeconfig)).access()
            configuration = access.configuration(Path(directory))
        except (ValidationError, yaml.YAMLError, LookupError, ValueError):
            # The cause is dropped on purpose: it would quote the credentials.
            raise TrellisError(Code.INVALID, f"the kubeconfig of {name} is not one that Trellis understands") from None
        yield configuration


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Cluster(_Part):
    server: str
    authority: str | None = Field(None, alias="certificate-authority-data")
    tls_server_name: str | None = Field(None, alias="tls-server-name")


class _User(_Part):
    token: SecretStr | None = None
    certificate: SecretStr | None = Field(None, alias="client-certificate-data")
    key: SecretStr | None = Field(None, alias="client-key-data")

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if not self.token and not (self.certificate and self.key):
            raise ValueError("a token, or a certificate and its key, must be there")
        return self


class _Context(_Part):
    cluster: str
    user: str


class _NamedCluster(_Part):
    name: str
    cluster: _Cluster


class _NamedUser(_Part):
    name: str
    user: _User


class _NamedContext(_Part):
    name: str
    context: _Context


class _Kubeconfig(_Part):
    """The part of a kubeconfig that an AdminKubeconfigRequest answers."""

    current: str = Field(alias="current-context")
    contexts: tuple[_NamedContext, ...]
    clusters: tuple[_NamedCluster, ...]
    users: tuple[_NamedUser, ...]

    def access(self) -> _Access:
        context = {each.name: each.context for each in self.contexts}[self.current]
        cluster = {each.name: each.cluster for each in self.clusters}[context.cluster]
        return _Access(cluster=cluster, user={each.name: each.user for each in self.users}[context.user])


class _Access(_Part):
    cluster: _Cluster
    user: _User

    def configuration(self, directory: Path) -> Configuration:
        """For a client that is made before `directory` goes: it reads the files then, and never again."""
        cluster, user = self.cluster, self.user
        authority = base64.b64decode(cluster.authority).decode() if cluster.authority else None
        configuration = Configuration(host=cluster.server.rstrip("/"), ca_cert_data=authority)
        configuration.tls_server_name = cluster.tls_server_name
        if user.token:
            configuration.api_key["BearerToken"] = f"Bearer {user.token.get_secret_value()}"
        if user.certificate and user.key:
            configuration.cert_file = _secret_file(directory / "certificate", user.certificate)
            configuration.key_file = _secret_file(directory / "key", user.key)
        return configuration


def _secret_file(path: Path, data: SecretStr) -> str:
    path.write_bytes(base64.b64decode(data.get_secret_value()))
    return str(path)
