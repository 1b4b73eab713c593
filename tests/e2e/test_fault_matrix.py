"""Each kind of fault on each call that Trellis makes: ready, or failed for the right reason, and nothing stays.

The calls are those of one recorded run. Every row is a fault in the life of one cluster. A life meets one fault, or
several that must not matter, and is told from all others by its own access key and its shoot's name.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import httpx
import pytest

from domain.errors import Failure
from sandbox.faults import FaultKind
from sandbox.supervisor import Options, Sandbox, start
from tests.e2e.conftest import Ran, Shell
from tests.e2e.fault_lives import READY, Call, Life, Lived, Row, World, lived

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.timeout(500),  # the first test waits for all lives
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

MAKING, JOINING, REMOVING = "making", "joining", "removing"
FINAL = {FaultKind.FORBIDDEN, FaultKind.QUOTA}
PASSING = set(FaultKind) - FINAL
# Calls whose failure is nobody's: what stays is removed with the next probe.
TOLERATED = {"shoot/delete:namespaces"}
CREDENTIALS = {"get:credentialsbindings", "get:secrets"}
# Calls that every life makes in the same words: who is struck cannot be chosen.
SHARED_LISTS = {"get:cloudprofiles", "list:credentialsbindings", "list:shoots"}
SHARED = SHARED_LISTS | {"watch:shoots"}
# What Trellis asks for and others make: what is not there is a mistake in the request.
OF_OTHERS = CREDENTIALS | {"get:cloudprofiles", "list:credentialsbindings"}
AT_ONCE = 40
RESIDENTS = 10


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox of its own, in which everything is quick but what fails."""
    environment = {"TRELLIS_CLOUD_THREADS": "100"}
    running = start(tmp_path_factory.mktemp("sandbox"), Options(shoot_seconds=0.1, worker_env=environment))
    delays = {"vpc_pending": 0.05, "nat_gateway_pending": 0.1, "nat_gateway_deleting": 0.1}
    url = f"{running.world.aws.endpoint}/sandbox/settings"
    httpx.put(url, json={"delays": delays}, trust_env=False).raise_for_status()
    yield running
    running.stop()


@pytest.fixture(scope="module")
async def world(sandbox: Sandbox) -> AsyncIterator[World]:
    async with World.of(sandbox) as found:
        yield found


@dataclass
class Calls:
    """What Trellis calls while a cluster is made with its network, joins one that is there, and is removed."""

    making: set[Call]
    joining: set[Call]
    removing: set[Call]


class Lives:
    """New lives: with a network of their own, or as guests in a resident's."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def alone(self) -> Life:
        number = next(self._numbers)
        return Life(f"alone{number}", "only", "own", f"aws-{number:04}", f"AKIASANDBOXLIFE{number:05}")

    def resident(self) -> Life:
        return replace(self.alone(), cluster="resident", vpc="shared")

    def beside(self, resident: Life) -> Life:
        return replace(resident, cluster=f"guest{next(self._numbers)}", making=[], removing=[])


@dataclass(frozen=True)
class Matrix:
    """The calls of a run without faults, how the lives with faults went, and who still lives."""

    calls: Calls
    outcomes: list[Lived]
    residents: list[Life]


@pytest.fixture(scope="module")
async def lives() -> Lives:
    return Lives()


@pytest.fixture(scope="module")
async def matrix(world: World, lives: Lives) -> Matrix:
    """All lives but those that need the stage for themselves, as many at once as the machine bears.

    Guests of one resident live one after another: a guest is called by others who verify that they reach it, and would
    hand its faults to them.
    """
    residents = [lives.resident() for _ in range(RESIDENTS)]
    calls = await _recorded(world, lives, residents)
    for kind in PASSING - {FaultKind.NOT_YET_VISIBLE}:
        for operation in SHARED_LISTS:
            await world.set_fault(Row(MAKING, "garden", operation, kind), 2)
    room = asyncio.Semaphore(AT_ONCE)

    async def live(life: Life) -> Lived:
        async with room:
            await world.give_credentials(life.credentials, life.key)
            return await lived(world, life, _expected(life))

    async def visit(guests: list[Life]) -> list[Lived]:
        return [await lived(world, guest, _expected(guest)) for guest in guests]

    guests = _guests(calls, lives, residents)
    alone, *visits = await asyncio.gather(
        asyncio.gather(*map(live, _alone(calls, lives))),
        *(visit([guest for guest in guests if guest.tenant == resident.tenant]) for resident in residents),
    )
    return Matrix(calls, [*alone, *itertools.chain.from_iterable(visits)], residents)


async def _recorded(world: World, lives: Lives, residents: list[Life]) -> Calls:
    """One run without faults; the residents stay."""
    alone, guest = lives.alone(), lives.beside(residents[0])
    await world.called()
    settled = await asyncio.gather(*(_settled(world, life) for life in (alone, *residents)))
    assert not any(settled), settled
    making = await world.called()
    assert await world.make(guest) is None
    joining = await world.called()
    await asyncio.gather(world.remove(alone), world.remove(guest))
    await world.await_no_vpc(alone)
    return Calls(making, joining, await world.called())


async def _settled(world: World, life: Life) -> Failure | None:
    await world.give_credentials(life.credentials, life.key)
    return await world.make(life)


def _alone(calls: Calls, lives: Lives) -> list[Life]:
    """The rows of what a VPC is made with and removed with."""
    making = _rows(MAKING, filter(_of_network, calls.making))
    return _spread([making], _rows(REMOVING, filter(_of_network, calls.removing)), lives.alone)


def _guests(calls: Calls, lives: Lives, residents: list[Life]) -> list[Life]:
    """The rows of how a VPC is joined, and of what a shoot is made with, proven to be reached, and removed with."""
    hosts = itertools.cycle(residents)
    shoots = _rows(JOINING, filter(_of_shoot, calls.joining))
    network = _rows(JOINING, filter(_of_network, calls.joining))
    removing = _rows(REMOVING, filter(_of_shoot, calls.removing))
    return _spread([shoots, network], removing, lambda: lives.beside(next(hosts)))


def _of_network(call: Call) -> bool:
    return call.api == "aws" or call.operation in CREDENTIALS


def _of_shoot(call: Call) -> bool:
    return not _of_network(call) and call.operation not in SHARED


def _rows(moment: str, calls: Iterable[Call]) -> list[Row]:
    ordered = sorted(calls)
    return [Row(moment, call.api, call.operation, kind) for kind in FaultKind for call in ordered]


def _spread(making: list[list[Row]], removing: list[Row], new: Callable[[], Life]) -> list[Life]:
    """A life for every row that ends it; one for two that do not, of each step; these lives also meet the rest."""
    ending = [row for rows in making for row in rows if _end(row) != {READY}]
    passing = [[row for row in rows if _end(row) == {READY}] for rows in making]
    lives = [new() for _ in range((max(map(len, passing)) + 1) // 2)]
    for rows in (*passing, removing):
        for row in rows:
            _least_met(lives, row).append(row)
    return lives + [replace(new(), making=[row]) for row in ending]


def _least_met(lives: list[Life], row: Row) -> list[Row]:
    """The rows of the life that meets fewest, and none on the same call: that would strike for this one."""
    met = [life.removing if row.moment == REMOVING else life.making for life in lives]
    return min((rows for rows in met if all(row.operation != each.operation for each in rows)), key=len)


def _expected(life: Life) -> set[str]:
    return next((_end(row) for row in life.making if _end(row) != {READY}), {READY})


def _end(row: Row) -> set[str]:
    """How a life with this row among its making has to end."""
    if row.kind in FINAL:
        return {READY} if row.operation in TOLERATED else {row.kind}
    if row.kind == FaultKind.NOT_YET_VISIBLE and row.operation in OF_OTHERS:
        return {"not-found", "invalid"}
    return {READY}


def _complaints(outcomes: Iterable[Lived]) -> str:
    return "\n".join(f"{each.life}:\n    " + "\n    ".join(each.wrong) for each in outcomes if each.wrong)


@pytest.mark.parametrize("kind", FaultKind)
def test_a_fault_on_any_call_ends_ready_or_for_the_right_reason_and_leaves_nothing(
    matrix: Matrix, kind: FaultKind
) -> None:
    concerned = [each for each in matrix.outcomes if any(row.kind == kind for row in each.life.rows)]
    assert not _complaints(concerned), _complaints(concerned)
    lived_rows = {
        (row.moment, row.api, row.operation) for each in concerned for row in each.life.rows if row.kind == kind
    }
    for moment, calls in (
        (MAKING, matrix.calls.making),
        (JOINING, matrix.calls.joining),
        (REMOVING, matrix.calls.removing),
    ):
        moments = {MAKING, JOINING} if moment == MAKING else {moment}  # a shoot is made alike in either case
        missing = {call for call in calls if not any((each, *call) in lived_rows for each in moments)}
        missing = {call for call in missing if call.operation not in SHARED}
        assert not missing, f"no row for {missing}"


@pytest.mark.parametrize("kind", [*sorted(FINAL), FaultKind.NOT_YET_VISIBLE])
@pytest.mark.parametrize("operation", sorted(SHARED_LISTS))
async def test_a_fault_on_a_call_that_all_lives_share_ends_the_one_it_strikes(
    matrix: Matrix, world: World, lives: Lives, operation: str, kind: FaultKind
) -> None:
    assert matrix.outcomes
    assert not [fault for fault in await world.faults() if fault["operation"] in SHARED_LISTS], "never struck"
    row = Row(MAKING, "garden", operation, kind)
    await world.set_fault(row, 1)
    outcome = await lived(world, lives.beside(matrix.residents[0]), _end(row))
    assert not outcome.wrong, _complaints([outcome])
    assert not await world.faults(), "never struck"


@pytest.mark.parametrize(
    "kinds",
    [
        (FaultKind.THROTTLE, FaultKind.ERROR_BEFORE, FaultKind.ERROR_AFTER),
        (FaultKind.LOST_RESPONSE, FaultKind.SLOW, FaultKind.NOT_YET_VISIBLE),
        (FaultKind.FORBIDDEN,),
        (FaultKind.QUOTA,),
    ],
    ids="+".join,
)
async def test_a_watch_that_breaks_and_meets_faults_is_resumed_or_says_why_not(
    matrix: Matrix, world: World, lives: Lives, sandbox: Sandbox, kinds: tuple[FaultKind, ...]
) -> None:
    assert matrix.outcomes
    rows = [Row(MAKING, "garden", "watch:shoots", kind) for kind in kinds]
    life = lives.beside(matrix.residents[0])
    async with world.slow_shoots():
        living = asyncio.create_task(lived(world, life, _end(rows[0])))
        await world.await_watched(life)
        for row in rows:
            await world.set_fault(row, 1)
        sandbox.kill("garden")
    outcome = await living
    assert not outcome.wrong, _complaints([outcome])
    assert not await world.faults(), "never struck"


async def test_when_the_last_has_left_the_cloud_is_as_it_was(matrix: Matrix, world: World) -> None:
    kinds = {one.rpartition("-")[0] for one in await asyncio.to_thread(world.everything)}
    assert kinds == {"vpc", "igw", "dopt", "sg", "subnet", "eipalloc"}, "what is looked at shows what there is"
    await asyncio.gather(*map(world.remove, matrix.residents))
    await asyncio.gather(*map(world.await_no_vpc, matrix.residents))
    assert await asyncio.to_thread(world.everything) == []
    assert await world.shoots() == []
    assert await world.running() == []


async def test_no_workflow_task_has_failed(matrix: Matrix, world: World) -> None:
    assert matrix.outcomes
    assert await world.failed_tasks() == []


async def test_faults_are_set_shown_and_cleared_on_the_command_line(matrix: Matrix, sandbox: Sandbox) -> None:
    trellis = Shell(sandbox, "nobody")
    where = ("--state-dir", str(sandbox.state_dir))

    def fault(*arguments: str, status: int = 0) -> Ran:
        return trellis("sandbox", "fault", *arguments, *where, status=status)

    fault(
        "add",
        "--api",
        "garden",
        "--operation",
        "create:*",
        "--kind",
        "lost-response",
        "--times",
        "2",
        "--caller",
        "trellis",
        "--match",
        "x",
    )
    (shown,) = fault("list", "--output", "json").json
    assert shown == {
        "api": "garden", "operation": "create:*", "kind": "lost-response", "times": 2, "after": 0, "seconds": 1.0,
        "caller": "trellis",
        "match": ["x"],
    }  # fmt: skip
    assert "CreateVpc" in fault("operations").out
    assert fault("add", "--kind", "nonsense", status=2).err.startswith("error: invalid")
    assert "aws, garden" in fault("add", "--kind", "throttle", "--api", "mars", status=2).err
    fault("clear")
    assert fault("list", "--output", "json").json == []
