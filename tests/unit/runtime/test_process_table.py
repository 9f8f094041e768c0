"""How often /proc is looked at, which is most of what an end costs."""

import time

from sandpod_runtime.process.marks import Marks
from sandpod_runtime.process.tree import ProcessTable


def test_commands_that_end_at_once_share_their_looks() -> None:
    marks = Marks()
    table = ProcessTable(marks)
    since = time.monotonic()
    found = [table.members(root=None, mark=marks.new(), since=since) for _ in range(500)]
    assert all(not each.pids for each in found)
    assert len({each.look for each in found}) < 250


def test_a_command_is_never_judged_by_a_look_from_before_its_end_began() -> None:
    marks = Marks()
    table = ProcessTable(marks)
    for _ in range(50):
        earlier = table.members(root=None, mark=marks.new(), since=time.monotonic()).look
        assert table.members(root=None, mark=marks.new(), since=time.monotonic()).look > earlier
