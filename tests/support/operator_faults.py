"""What goes wrong around the operator, each at the n-th of its calls to the API server."""

from collections.abc import Callable

from sandpod_crds.errors import ApiError, Throttled, Unavailable

from tests.support.operator_api import Killed
from tests.support.operator_world import SANDBOX_PATH, World

# Sets the trap in a world; springs at the call of this number.
Fault = Callable[[World, int], None]
# An API server that fails does so for so many calls in a row.
BURST = 3
HOUR = 3600.0
CUT_OFF_FOR = 20.0
# What a fault may cost in calls: what failed is done again, and looked at before.
EXTRA = 25
# Within a minute, scenarios ask for a few things, and each costs a few calls.
MOST_CALLS_A_MINUTE = 60


def killed_before(world: World, victim: int) -> None:
    _once(world, "before", victim, _die)


def killed_after(world: World, victim: int) -> None:
    _once(world, "after", victim, _die)


def refused_by_an_api_server_that_restarts(world: World, victim: int) -> None:
    world.api.before = _burst(victim, Unavailable(500, "InternalError", "etcd has no leader"))


def throttled(world: World, victim: int) -> None:
    world.api.before = _burst(victim, Throttled(429, "TooManyRequests", "slowly", retry_after=2.0))


def answers_lost(world: World, victim: int) -> None:
    """Every request is carried out, and nobody hears of it."""
    world.api.after = _burst(victim, Unavailable(0, "Timeout", "no answer within 30 s"))


def written_to_at_the_same_time(world: World, victim: int) -> None:
    def write(_: str) -> None:
        if SANDBOX_PATH in world.api.objects:
            world.api.change(SANDBOX_PATH, {"metadata": {"annotations": {"note": "mine"}}})

    _once(world, "before", victim, write)


def watch_cut_off(world: World, victim: int) -> None:
    def cut(_: str) -> None:
        world.blind = True
        world.clock.call_at(world.clock.time() + CUT_OFF_FOR, world.list_again)

    _once(world, "before", victim, cut)


def clock_put_forward(world: World, victim: int) -> None:
    _once(world, "before", victim, lambda _: world.put_clock(HOUR))


def clock_put_back(world: World, victim: int) -> None:
    _once(world, "before", victim, lambda _: world.put_clock(-HOUR))


KILLS: tuple[Fault, ...] = (killed_before, killed_after)
FAULTS: tuple[Fault, ...] = (
    refused_by_an_api_server_that_restarts,
    throttled,
    answers_lost,
    written_to_at_the_same_time,
    watch_cut_off,
    clock_put_forward,
    clock_put_back,
)


def check_calls(world: World, untouched: list[str], *, a_minute: int = MOST_CALLS_A_MINUTE) -> None:
    """No hot loop: in all, and in any minute of it."""
    assert len(world.api.calls) <= len(untouched) + EXTRA
    assert world.busiest_minute() <= a_minute


def _die(call: str) -> None:
    raise Killed(call)


def _once(world: World, moment: str, victim: int, spring: Callable[[str], None]) -> None:
    sprung: list[int] = []

    def trap(number: int, call: str) -> None:
        if number >= victim and not sprung:
            sprung.append(number)
            spring(call)

    setattr(world.api, moment, trap)


def _burst(victim: int, error: ApiError) -> Callable[[int, str], None]:
    def fail(number: int, call: str) -> None:
        if victim <= number < victim + BURST:
            raise error

    return fail
