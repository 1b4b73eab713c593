"""One AWS and its state on disk.

Every change is a `Change`: a request and all that its outcome depends on, the time and the seed of moto's identifiers
included. The live call and the replay after a restart run the same function on it, so the cloud comes back with the
same ids. From time to time, and at the end, moto's clouds are pickled whole and the journal begins anew; the live cloud
then continues from the pickle, as a restarted one would.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import pickle
import random
import re
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import moto
from moto.core.base_backend import BackendDict
from moto.moto_api._internal import mock_random
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder, run_wsgi_app

from .guard import Answer, GuardedEC2, GuardedQuotas
from .journal import Journal, StateError
from .moto_inside import clouds, mend, put_back, serve_with
from .settings import Settings

__all__ = ["Change", "Reply", "World"]

_log = logging.getLogger("sandbox.aws")
# moto's objects are stored as they are: another version of moto may not understand them. The second number is ours.
_WRITER = f"moto {moto.__version__}, layout 2\n".encode()
_ID = re.compile(r"\b[a-z]+(?:-[a-z]+)*-[0-9a-f]{17}\b")


class Reply(NamedTuple):
    """What goes back over HTTP."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes


_FAILED = Reply(
    "500 Internal Server Error",
    [("Content-Type", "text/xml")],
    b"<Response><Errors><Error><Code>InternalError</Code><Message>moto failed; the log of the sandbox has the traceback"
    b"</Message></Error></Errors><RequestID>none</RequestID></Response>",
)


@dataclass(frozen=True)
class Change:
    """A call that may change EC2, with all that its outcome depends on."""

    at: float
    """Seconds since 1970."""
    seed: int
    account: str
    region: str
    body: str
    """The parameters, form-encoded."""

    @property
    def action(self) -> str:
        """EC2's action."""
        return parse_qs(self.body).get("Action", [""])[0]

    def environment(self) -> dict[str, Any]:
        """The request as a WSGI environment, the same whenever and wherever it runs."""
        credential = f"Credential=none/19700101/{self.region}/ec2/aws4_request"
        return EnvironBuilder(
            method="POST",
            headers=Headers(
                {
                    "Authorization": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=none",
                    "X-Moto-Account-Id": self.account,
                }
            ),
            content_type="application/x-www-form-urlencoded; charset=utf-8",
            data=self.body.encode(),
        ).get_environ()


class World:
    """All of it. One per process, since moto keeps its state in its modules. Every call holds the one lock.

    Raises StateError where the directory is in use or holds a state that cannot be brought back.
    """

    def __init__(self, state_dir: Path) -> None:
        self.settings = Settings()
        self.tokens: dict[str, tuple[str, Answer]] = {}
        self.now = time.time()
        self._lock = threading.RLock()
        self._claim = _claimed(state_dir)
        self._snapshot = state_dir / "aws.snapshot"
        self._journal = Journal(state_dir / "aws.journal")
        self._number = 0
        self._last_snapshot = 0
        GuardedEC2.surroundings = self
        serve_with(GuardedEC2, GuardedQuotas)
        mend(lambda: self.now)
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._bring_back()

    def read(self, environment: dict[str, Any]) -> Reply:
        """Hand a request to moto that changes nothing of EC2."""
        with self._lock:
            self.now = time.time()
            return self._run(environment)

    def change(self, account: str, region: str, body: str) -> Reply:
        """Make a change to EC2, durably."""
        with self._lock:
            made = Change(time.time(), random.getrandbits(64), account, region, body)
            reply = self._make(made)
            self._record({"change": asdict(made), "gave": _digest(reply)})
            return reply

    def set(self, patch: object) -> Settings:
        """Replace some of the settings, durably. Raises SettingsError."""
        with self._lock:
            self.settings = self.settings.changed(patch)
            self._record({"settings": self.settings.model_dump()})
            return self.settings

    def reset(self) -> None:
        """Empty every cloud; the settings stay."""
        with self._lock:
            BackendDict.reset()
            self.tokens.clear()
            self._save()

    def close(self) -> None:
        """Save everything. The lock is kept: whatever is still under way can change nothing any more."""
        self._lock.acquire()
        self._save()
        self._journal.close()
        os.close(self._claim)

    def _run(self, environment: dict[str, Any]) -> Reply:
        try:
            body, status, headers = run_wsgi_app(self._moto, environment, buffered=True)
        except Exception:
            # Whatever moto stumbles over, an SDK can read the answer, and what moto did before it is in the journal.
            _log.exception("moto failed")
            return _FAILED
        return Reply(status, list(headers), b"".join(body))

    def _make(self, change: Change) -> Reply:
        self.now = change.at
        mock_random.seed(change.seed)
        return self._run(change.environment())

    def _record(self, entry: dict[str, Any]) -> None:
        self._number += 1
        try:
            self._journal.append({"number": self._number, **entry})
        except OSError:
            # The cloud must not go on with what a restart would not know.
            _log.critical("the journal cannot be written; the server ends", exc_info=True)
            os._exit(os.EX_IOERR)
        if self._number - self._last_snapshot >= self.settings.changes_per_snapshot:
            self._save()

    def _save(self) -> None:
        image = _WRITER + pickle.dumps((self._number, self.settings.model_dump(), self.tokens, clouds()), protocol=5)
        fresh = self._snapshot.with_suffix(".new")
        with open(fresh, "wb", opener=_private) as file:
            file.write(image)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._snapshot)
        self._journal.clear()
        self._load(image)

    def _load(self, image: bytes) -> None:
        if not image.startswith(_WRITER):
            raise StateError(
                f"{self._snapshot} was not written by {_WRITER.decode().strip()}: install what its first line"
                f" names, or remove {self._snapshot.parent}/aws.* to begin with an empty cloud"
            )
        # The image is this program's own file, mode 0600.
        self._number, settings, self.tokens, stored = pickle.loads(image[len(_WRITER) :])  # noqa: S301
        self.settings = Settings().changed(settings)
        self._last_snapshot = self._number
        put_back(stored)

    def _bring_back(self) -> None:
        if self._snapshot.exists():
            self._load(self._snapshot.read_bytes())
        replayed = 0
        # A crash between snapshot and clearing leaves entries that the snapshot has already.
        for entry in (entry for entry in self._journal.entries() if entry["number"] > self._number):
            self._number = entry["number"]
            replayed += 1
            self._replay(entry)
        self._save()
        _log.info("the cloud is back, %d changes after the last snapshot", replayed)

    def _replay(self, entry: dict[str, Any]) -> None:
        if "settings" in entry:
            self.settings = Settings().changed(entry["settings"])
            return
        try:
            change = Change(**entry["change"])
        except TypeError as error:
            raise StateError(
                f"{self._snapshot.parent}/aws.journal was written by another version of the sandbox ({error}): use that"
                f" version once more, or remove {self._snapshot.parent}/aws.* to begin with an empty cloud"
            ) from None
        if _digest(self._make(change)) != entry["gave"]:
            raise StateError(
                f"change {entry['number']} ({change.action}) of {self._snapshot.parent}/aws.journal gives other"
                " resources now than when it was made: was moto or the sandbox changed in between? Use the former"
                f" version once more, or remove {self._snapshot.parent}/aws.* to begin with an empty cloud"
            )


def _digest(reply: Reply) -> str:
    """Status and resource ids: what must be the same again. Lists may come in another order."""
    ids = sorted(set(_ID.findall(reply.body.decode(errors="replace"))))
    return hashlib.sha256(" ".join([reply.status, *ids]).encode()).hexdigest()[:16]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _claimed(state_dir: Path) -> int:
    state_dir.mkdir(parents=True, exist_ok=True)
    claim = os.open(state_dir / "aws.claim", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(claim)
        raise StateError(f"another sandbox uses {state_dir}; stop it, or take another directory") from None
    return claim
