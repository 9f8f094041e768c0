"""How the words that started the runtime start a process of its own."""

from sandpod_runtime.search.start import command

_LIBRARIES = "/opt/sandpod/lib"
_LOADER = ["/opt/sandpod/lib/ld-linux.so.2", "--inhibit-cache", "--library-path", _LIBRARIES]
_PYTHON = ["/opt/sandpod/bin/python3", "-I", "-S", "-B", "-X", "utf8", "/opt/sandpod/lib/boot.pyc"]


def test_the_shipped_runtime_is_started_by_its_own_loader() -> None:
    own = ["--port", "4000"]
    found = command(
        kernel=_LOADER + _PYTHON + own, python=_PYTHON + own, executable="/opt/sandpod/bin/python3", own=2
    )
    assert found == _LOADER + _PYTHON


def test_on_a_laptop_it_is_the_same_python_with_the_same_module() -> None:
    words = ["python", "-I", "-m", "sandpod_runtime", "--insecure"]
    found = command(kernel=words, python=words, executable="/venv/bin/python", own=1)
    assert found == ["/venv/bin/python", "-I", "-m", "sandpod_runtime"]


def test_without_arguments_of_its_own_nothing_is_taken_away() -> None:
    words = ["/venv/bin/python", "-m", "sandpod_runtime"]
    assert command(kernel=words, python=words, executable=words[0], own=0) == words
