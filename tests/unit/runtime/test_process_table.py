"""Whom an end reaches, and how often /proc is looked at for it, which is most of what it costs."""

import os
import signal
import subprocess
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


def test_each_process_is_reached_by_one_signal_and_not_by_two() -> None:
    """Two that come at once are mostly one to who gets them, so that no program could tell."""
    script = "sleep 9 & setsid bash -c 'sleep 9 & echo begun; wait' & wait"
    marks = Marks()
    with subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as leader:
        assert leader.stdout is not None
        leader.stdout.readline()
        found = ProcessTable(marks).members(root=leader.pid, mark=marks.new(), since=time.monotonic())
        reached = [(pid in found.targets) + (-os.getpgid(pid) in found.targets) for pid in found.pids]
        for target in found.targets:
            os.kill(target, signal.SIGKILL)
    assert reached == [1, 1, 1, 1]
