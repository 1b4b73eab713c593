"""The worker process: runs until it is told to end, or until it cannot go on."""

from __future__ import annotations

import asyncio
import logging
import signal
from concurrent.futures import ThreadPoolExecutor

from worker.logs import configure_logging
from worker.settings import Settings
from worker.temporal import connect, register_attributes, runtime
from worker.wiring import trellis_worker

__all__ = ["run_worker"]

_log = logging.getLogger("trellis.worker")


async def run_worker(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; then take no more work, let steps finish for a while, and return.

    Raises:
        TrellisError: Temporal or the garden cannot be used as configured.
        Exception: whatever ended the worker; the process should end with it, and be started again.
    """
    configure_logging(settings)
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    # `asyncio.to_thread` runs on the loop's own threads, of which there are few by default.
    loop.set_default_executor(ThreadPoolExecutor(settings.cloud_threads, thread_name_prefix="cloud"))
    client = await connect(runtime(settings))
    await register_attributes(client)
    async with trellis_worker(settings, client, _tell) as worker, worker:
        where = f"{client.service_client.config.target_host}, namespace {client.namespace}"
        _log.info("serving task queue %s at %s", settings.task_queue, where)
        await told.wait()
        _log.info("told to end; steps may finish for %.0f s", settings.grace_seconds)
    _log.info("ended")


async def _tell(error: BaseException) -> None:
    _log.critical("the worker cannot go on: %s", error, exc_info=error)
