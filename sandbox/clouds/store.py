"""Documents of any kind in one SQLite file. What was committed survives a kill; what was not never happened."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

__all__ = ["Document", "Store"]

Document: TypeAlias = dict[str, Any]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    kind TEXT, name TEXT, body TEXT NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID;
"""


class Store:
    """Documents by kind and name. All methods are called from one thread; documents given and taken are copies.

    Args:
        path: The SQLite file. One store at a time may have it open.

    Raises:
        RuntimeError: another process has the file open.
    """

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
        try:
            # Exclusive: two servers on one file would undo each other's work.
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.executescript(_SCHEMA)
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute("COMMIT")
        except sqlite3.OperationalError as error:
            self._database.close()
            raise RuntimeError(f"{path} cannot be opened; is another sandbox using it? ({error})") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; may be nested, and then undoes its own part only."""
        name = f"t{secrets.token_hex(4)}"
        self._database.execute(f"SAVEPOINT {name}")
        try:
            yield
        except BaseException:
            self._database.execute(f"ROLLBACK TO {name}")
            self._database.execute(f"RELEASE {name}")
            raise
        self._database.execute(f"RELEASE {name}")

    def get(self, kind: str, name: str) -> Document | None:
        """The document, or None."""
        row = self._database.execute("SELECT body FROM documents WHERE kind = ? AND name = ?", (kind, name)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, kind: str, name: str, document: Document) -> None:
        """Write the document, over an older one if there is one."""
        body = json.dumps(document, separators=(",", ":"))
        self._database.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", (kind, name, body))

    def delete(self, kind: str, name: str) -> None:
        """Remove the document, if it is there."""
        self._database.execute("DELETE FROM documents WHERE kind = ? AND name = ?", (kind, name))

    def list(self, kind: str, prefix: str = "") -> list[tuple[str, Document]]:
        """Names that begin with `prefix` and their documents, in order of name."""
        rows = self._database.execute(
            "SELECT name, body FROM documents WHERE kind = ? AND name >= ? AND substr(name, 1, ?) = ? ORDER BY name",
            (kind, prefix, len(prefix), prefix),
        )
        return [(name, json.loads(body)) for name, body in rows]

    def close(self) -> None:
        """Close the file."""
        self._database.close()
