"""What the sandbox's own cloud servers share: documents that survive, operations that take time, settings, HTTP.

A vendor's server is a `Cloud` with routes and finishers, and a way to word a refusal; everything else is the vendor's.
See `core` for the contract and `sandbox.gcp.app` for how it is used.
"""

from sandbox.clouds.core import Answer, Call, Cloud, Handler, Later, Refusal, Route
from sandbox.clouds.operations import Finisher, Operation, Operations, Outcome
from sandbox.clouds.ranges import overlapping, parse_cidr
from sandbox.clouds.serve import serve
from sandbox.clouds.settings import Settings, SettingsError
from sandbox.clouds.store import Document, Store

__all__ = [
    "Answer",
    "Call",
    "Cloud",
    "Document",
    "Finisher",
    "Handler",
    "Later",
    "Operation",
    "Operations",
    "Outcome",
    "Refusal",
    "Route",
    "Settings",
    "SettingsError",
    "Store",
    "overlapping",
    "parse_cidr",
    "serve",
]
