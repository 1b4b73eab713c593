"""Connections to AWS, shared by all shoots with the same credentials and region."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

T = TypeVar("T")
_POOL = 32


class Session:
    """The clients for one account and region."""

    def __init__(self, endpoint: str | None, region: str, credentials: Mapping[str, str]) -> None:
        session = boto3.session.Session(
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
        """The session for these credentials; made when first asked for."""
        key = (region, credentials["accessKeyID"], credentials["secretAccessKey"])
        with self._lock:
            if key not in self._sessions:
                self._sessions[key] = Session(self._endpoint, region, credentials)
            return self._sessions[key]


class Fresh(Generic[T]):
    """Shares answers between threads: everybody gets one that was asked for after they came."""

    def __init__(self, load: Callable[[], T]) -> None:
        self._load = load
        self._loading = threading.Lock()
        self._begun = 0
        self._answer: tuple[int, T] | None = None

    def get(self) -> T:
        """The answer of the next load to begin; waits for it, or loads."""
        ticket = self._begun
        with self._loading:
            if self._answer is None or self._answer[0] <= ticket:
                self._begun += 1
                self._answer = (self._begun, self._load())
            return self._answer[1]
