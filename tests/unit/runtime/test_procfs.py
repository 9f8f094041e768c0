"""Reading what the kernel says about processes."""

from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.process import procfs

LIMITS = b"""Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max realtime priority     0                    0
Max realtime timeout      %s            unlimited            us
"""


@given(name=st.binary(max_size=15), parent=st.integers(0, 1 << 22), group=st.integers(0, 1 << 22))
def test_a_programs_name_may_hold_anything(name: bytes, parent: int, group: int) -> None:
    stat = procfs.parse_stat(b"17 (%b) S %d %d 17 0 -1 4194304 95 0" % (name, parent, group))
    assert stat == procfs.Stat(state="S", parent=parent, group=group)


def test_a_mark_is_read_from_the_limits() -> None:
    assert procfs.realtime_limit(LIMITS % b"4611686018427387905") == 4611686018427387905
    assert procfs.realtime_limit(LIMITS % b"unlimited") is None
    assert procfs.realtime_limit(b"") is None


def test_a_mark_is_read_from_the_environment() -> None:
    environ = b"A=1\0XSANDPOD_COMMAND_ID=2\0SANDPOD_COMMAND_ID=3\0B=\0"
    assert procfs.variable(environ, name="SANDPOD_COMMAND_ID") == "3"
    assert procfs.variable(environ, name="C") is None
    assert procfs.variable(environ, name="B") == ""
