"""Connections to AWS, shared by all shoots with the same credentials and region."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import boto3
from botocore.config import Config

from sandbox.garden.providers import CloudError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

T = TypeVar("T")
_POOL = 32
_MOST_QUESTIONS = 100


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
        """The session for these credentials; made when first asked for. Raises CloudError if they are incomplete."""
        for field in ("accessKeyID", "secretAccessKey"):
            if not credentials.get(field):
                raise CloudError(f'missing "{field}" field in secret')
        key = (region, credentials["accessKeyID"], credentials["secretAccessKey"])
        with self._lock:
            if key not in self._sessions:
                self._sessions[key] = Session(self._endpoint, region, credentials)
            return self._sessions[key]


class _Fresh:
    """The answers to one question."""

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._begun = 0
        self._answer: tuple[int, Any] = (0, None)

    def get(self, load: Callable[[], Any]) -> Any:
        ticket = self._begun
        with self._loading:
            if self._answer[0] <= ticket:
                self._begun += 1
                self._answer = (self._begun, load())
            return self._answer[1]


class Fresh(Generic[T]):
    """Shares answers between threads: everybody gets one that was asked for after they came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._questions: OrderedDict[Hashable, _Fresh] = OrderedDict()

    def get(self, question: Hashable, load: Callable[[], T]) -> T:
        """The answer of the next load to begin; waits for it, or loads."""
        with self._lock:
            fresh = self._questions.setdefault(question, _Fresh())
            self._questions.move_to_end(question)
            if len(self._questions) > _MOST_QUESTIONS:
                # Whoever waits for that one still gets an answer; it is only shared no more.
                self._questions.popitem(last=False)
        return cast("T", fresh.get(load))
