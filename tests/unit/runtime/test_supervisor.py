"""When a declared process is started again, by a clock that the test turns."""

import pytest
from sandpod_runtime.models.processes import Restart
from sandpod_runtime.process.declared import Supervisor

from tests.support.fake_clock import FakeClock


class Life:
    """One declared process, whose program ends when the test says so."""

    def __init__(self, restart: Restart) -> None:
        self.clock = FakeClock()
        self.starts: list[float] = []
        self.over: list[int] = []
        self.supervisor = Supervisor(
            restart=restart,
            clock=self.clock,
            run=lambda: self.starts.append(self.clock.time()),
            over=self.over.append,
        )
        self.supervisor.begin()


def test_pauses_double_up_to_a_minute() -> None:
    life = Life("Always")
    for _ in range(9):
        life.supervisor.ended(1)
        life.clock.advance(60)
    pauses = [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert [start - 60 * number for number, start in enumerate(life.starts[1:])] == pauses
    assert life.over == []


def test_a_long_life_makes_the_next_pause_short_again() -> None:
    life = Life("Always")
    for _ in range(5):
        life.supervisor.ended(1)
        life.clock.advance(60)
    life.clock.advance(60)
    now = life.clock.time()
    life.supervisor.ended(1)
    life.clock.advance(60)
    assert life.starts[-1] == now + 1


@pytest.mark.parametrize(
    ("restart", "exit_code", "again"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),
        ("Never", 0, False),
        ("Never", 1, False),
    ],
)
def test_the_policy_decides_by_the_exit_code(restart: Restart, exit_code: int, again: bool) -> None:
    life = Life(restart)
    life.supervisor.ended(exit_code)
    life.clock.advance(60)
    assert len(life.starts) == 1 + again
    assert life.over == ([] if again else [exit_code])


def test_who_is_stopped_while_waiting_is_over_with_its_last_code() -> None:
    life = Life("Always")
    life.supervisor.ended(3)
    life.supervisor.stop()
    life.clock.advance(600)
    assert (len(life.starts), life.over) == (1, [3])


def test_who_is_stopped_while_running_is_over_when_it_ends() -> None:
    life = Life("Always")
    life.supervisor.stop()
    assert life.over == []
    life.supervisor.ended(143)
    life.clock.advance(600)
    assert (len(life.starts), life.over) == (1, [143])
