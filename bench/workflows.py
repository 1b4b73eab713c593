"""Trellis on a real Temporal server: what a provision, a crowded VPC and an idle VPC cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from bench import Measure
from bench._crowd import replay, state_size
from bench._idle import idle
from bench._provision import against_bare, history
from bench._server import PROMPT, compiled_modules, server


def run() -> Iterator[Measure]:
    with compiled_modules():
        yield from asyncio.run(_measure())


async def _measure() -> list[Measure]:
    async with server() as client:
        measures = [*await history(client), *await against_bare(client, "dev server", budget=1.3)]
    async with server(PROMPT) as client:
        measures += await against_bare(client, "prompt server", budget=None)
        measures += [*await state_size(), *await replay(client), *await idle(client)]
    return measures
