"""The least that a workflow with so many steps can cost: what Trellis' own is measured against."""

from __future__ import annotations

from temporalio import activity, workflow
from temporalio.plugin import SimplePlugin

with workflow.unsafe.imports_passed_through():
    from workflows.policies import LONG

__all__ = ["BARE", "BareWorkflow"]


@activity.defn
async def do_nothing() -> None:
    """A step that takes no time."""


@workflow.defn
class BareWorkflow:
    """Steps one after the other, with the options that Trellis gives its own."""

    @workflow.run
    async def run(self, steps: int) -> None:
        """Take so many steps."""
        for _ in range(steps):
            await workflow.execute_activity(do_nothing, **LONG)


# Adds it to a worker that serves Trellis' workflows.
BARE = SimplePlugin("bench", workflows=[BareWorkflow], activities=[do_nothing])
