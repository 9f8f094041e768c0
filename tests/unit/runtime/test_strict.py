"""What the runtime reads on its way into isolation: mounts and accounts that a container brings."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime import options
from sandpod_runtime.process.procfs import innermost_pid
from sandpod_runtime.strict import isolation
from sandpod_runtime.strict.isolation import Isolation, accounts
from sandpod_runtime.strict.mounts import Mount, parsed

_MOUNTINFO = rb"""22 1 0:21 / / rw,relatime - overlay overlay rw
23 22 0:22 / /proc rw,nosuid shared:5 master:1 - proc proc rw
24 23 0:22 /sys /proc/sys ro - proc proc rw
25 23 0:5 /null /proc/keys rw - devtmpfs udev rw
26 22 0:40 / /a\040b\134c rw - tmpfs tmpfs rw
"""


def test_mounts_are_told_with_their_kinds() -> None:
    assert parsed(_MOUNTINFO) == [
        Mount(place="/", kind="overlay"),
        Mount(place="/proc", kind="proc"),
        Mount(place="/proc/sys", kind="proc"),
        Mount(place="/proc/keys", kind="devtmpfs"),
        Mount(place="/a b\\c", kind="tmpfs"),
    ]


def test_the_mounts_of_this_machine_can_be_read() -> None:
    places = [mount.place for mount in parsed(Path("/proc/self/mountinfo").read_bytes())]
    assert "/" in places
    assert "/proc" in places


def test_a_process_has_one_number_for_each_namespace() -> None:
    assert innermost_pid(b"Name:\tx\nNSpid:\t4711\t17\t3\nNSpgid:\t1\t2\n") == 3
    assert innermost_pid(b"NSpid:\t4711\n") == 4711
    with pytest.raises(OSError, match="numbers"):
        innermost_pid(b"Name:\tx\n")


@given(st.binary(max_size=300))
def test_no_file_of_accounts_is_too_odd(passwd: bytes) -> None:
    assert all("\0" not in home and home.startswith("/") for home in accounts(passwd).values())


def test_the_first_home_of_a_uid_counts() -> None:
    passwd = b"root:x:0:0::/root:/bin/sh\nme:x:1000:1:,:/home/me:\nother:x:1000:1::/x:\nbad:x:7:7:\n"
    assert accounts(passwd) == {0: "/root", 1000: "/home/me"}


@pytest.mark.parametrize(
    ("image", "user", "found"),
    [
        ({"HOME": "/root"}, 1000, {"HOME": "/home/me"}),
        ({}, 1000, {"HOME": "/home/me"}),
        ({"HOME": "/root"}, 4711, {"HOME": "/"}),
        ({"HOME": "/data"}, 1000, {}),
        ({"HOME": "/root"}, 0, {}),
    ],
    ids=["roots", "none", "no account", "the image's own", "root"],
)
def test_a_user_does_not_live_where_root_does(
    image: dict[str, str],
    user: int,
    found: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    users = tmp_path / "passwd"
    users.write_bytes(b"root:x:0:0::/root:/bin/sh\nme:x:1000:1::/home/me:\n")
    monkeypatch.setattr(isolation, "_USERS", str(users))
    assert Isolation(user=user).variables(image) == found


@pytest.mark.parametrize("uid", ["-1", "65536"])
def test_a_uid_that_no_pod_has_is_refused(uid: str) -> None:
    with pytest.raises(options.OptionsError, match="--strict"):
        options.read(["--insecure", "--strict", uid])


def test_the_option_names_whom_commands_run_as() -> None:
    assert options.read(["--insecure", "--strict", "0"]).strict == 0
    assert options.read(["--insecure"]).strict is None
