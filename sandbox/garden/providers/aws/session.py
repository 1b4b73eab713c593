"""Connections to AWS, shared by all shoots with the same credentials and region."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.loaders import create_loader

from sandbox.garden.providers import CloudError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

_POOL = 32
# EC2's model takes some 20 MiB: once for all sessions, not for each.
_LOADER = create_loader()


class Session:
    """The clients for one account and region."""

    def __init__(self, endpoint: str | None, region: str, credentials: Mapping[str, str]) -> None:
        core = botocore.session.get_session()
        core.register_component("data_loader", _LOADER)
        session = boto3.session.Session(
            botocore_session=core,
            aws_access_key_id=credentials["accessKeyID"],
            aws_secret_access_key=credentials["secretAccessKey"],
            region_name=region,
        )
        # The Go SDK's default: three attempts.
        config = Config(max_pool_connections=_POOL, retries={"mode": "standard", "total_max_attempts": 3})
        self.region = region
        self.ec2: EC2Client = session.client("ec2", endpoint_url=endpoint, config=config)
        self.iam: Any = session.client("iam", endpoint_url=endpoint, config=config)


class Sessions:
    """All sessions with one AWS endpoint; None is AWS itself."""

    def __init__(self, endpoint: str | None) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._sessions: dict[tuple[str, ...], Session] = {}

    def get(self, region: str, credentials: Mapping[str, str]) -> Session:
        """The session for these credentials; made when first asked for. Raises CloudError if they are incomplete."""
        for field in ("accessKeyID", "secretAccessKey"):
            if not credentials.get(field):
                raise CloudError(f'missing "{field}" field in secret')
        key = (region, credentials["accessKeyID"], credentials["secretAccessKey"])
        with self._lock:
            if key not in self._sessions:
                self._sessions[key] = Session(self._endpoint, region, credentials)
            return self._sessions[key]
