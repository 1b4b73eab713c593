"""The connection to Temporal: how data travels, where the server is, what it must know before anything starts."""

from __future__ import annotations

import logging
import re
from functools import cache

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)
from temporalio.service import RPCError, RPCStatusCode

from activities import attributes
from domain.errors import Code, TrellisError
from worker.settings import Settings

__all__ = ["connect", "connection", "missing_attributes", "register_attributes", "runtime"]

_DEFAULT_ADDRESS = "localhost:7233"
_HINT = "check TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and TEMPORAL_PROFILE; `trellis sandbox start` brings its own server"


def connection() -> ClientConnectConfig:
    """Where Temporal is, from its environment variables and profile files.

    Raises:
        TrellisError: `invalid` where these contradict themselves or name a profile that is not there.
    """
    try:
        config = ClientConfig.load_client_connect_config()
    except (RuntimeError, ValueError) as error:
        raise TrellisError(Code.INVALID, f"Temporal's configuration: {error}", _HINT) from error
    config.setdefault("target_host", _DEFAULT_ADDRESS)
    return config


async def connect(telemetry: Runtime | None = None) -> Client:
    """A client that speaks the domain's models.

    Raises:
        TrellisError: `unavailable` where the server does not answer, `invalid` where the configuration is wrong.
    """
    config = connection()
    try:
        return await Client.connect(
            **config, data_converter=pydantic_data_converter, runtime=telemetry or _default_runtime()
        )
    except (RuntimeError, RPCError, ValueError) as error:
        raise TrellisError(Code.UNAVAILABLE, f"Temporal at {config['target_host']}: {_cause(error)}", _HINT) from error


def _cause(error: Exception) -> str:
    """The part of a transport error that a person can read."""
    text = str(error).strip()
    innermost = re.findall(r'(?:message|error): "([^"]+)"', text)
    return innermost[-1] if innermost else text.partition("\n")[0] or type(error).__name__


def runtime(settings: Settings) -> Runtime:
    """The SDK's runtime for a worker: metrics go to Prometheus where an address is set.

    Raises:
        TrellisError: `invalid` where the address is taken, or none of this machine.
    """
    if settings.metrics_address is None:
        return _default_runtime()
    metrics = PrometheusConfig(
        bind_address=settings.metrics_address, counters_total_suffix=True, unit_suffix=True, durations_as_seconds=True
    )
    try:
        return Runtime(telemetry=TelemetryConfig(logging=_forwarded_logs(), metrics=metrics))
    except (RuntimeError, ValueError) as error:
        raise TrellisError(
            Code.INVALID,
            f"metrics address {settings.metrics_address}: {error}",
            "let TRELLIS_METRICS_ADDRESS be host:port of this machine, with a port that is free",
        ) from error


@cache
def _default_runtime() -> Runtime:
    return Runtime(telemetry=TelemetryConfig(logging=_forwarded_logs()))


def _forwarded_logs() -> LoggingConfig:
    """The SDK's own log goes where ours goes. By itself it would write to stdout, which is for results."""
    forwarding = LogForwardingConfig(logger=logging.getLogger("temporalio.core"), prepend_target_on_message=False)
    return LoggingConfig(TelemetryFilter(core_level="WARN", other_level="ERROR"), forwarding=forwarding)


async def missing_attributes(client: Client) -> dict[str, IndexedValueType.ValueType]:
    """The search attributes that Trellis needs and the namespace lacks.

    Raises:
        TrellisError: `conflict` where one has another type.
        RPCError: the server does not tell.
    """
    answer = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    needed = {key.name: IndexedValueType.ValueType(key.indexed_value_type) for key in attributes.ALL}
    wrong = [name for name, kind in needed.items() if answer.custom_attributes.get(name, kind) != kind]
    if wrong:
        raise TrellisError(
            Code.CONFLICT,
            f"namespace {client.namespace} has {', '.join(wrong)} with another type than Trellis needs",
            "use another namespace, or remove these with `temporal operator search-attribute remove`",
        )
    return {name: kind for name, kind in needed.items() if name not in answer.custom_attributes}


async def register_attributes(client: Client) -> None:
    """Make the search attributes that are missing.

    Raises:
        TrellisError: `forbidden` where the server does not let us, with the commands that do it by hand.
    """
    try:
        missing = await missing_attributes(client)
        if missing:
            request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
            await client.operator_service.add_search_attributes(request)
    except RPCError as error:
        if error.status is RPCStatusCode.ALREADY_EXISTS:  # another worker was quicker
            return
        flags = " ".join(
            f"--name {key.name} --type {key.indexed_value_type.name.capitalize()}" for key in attributes.ALL
        )
        raise TrellisError(
            Code.FORBIDDEN,
            f"search attributes of namespace {client.namespace}: {error.status.name}: {error.message}",
            f"register them by hand: temporal operator search-attribute create {flags}",
        ) from error
