"""The self-contained directory /opt/sandpod: its launcher, and modules that come out of one file."""

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.launcher import assemble, boot

SOURCE = Path(__file__).parents[3] / "runtime" / "launcher" / "launcher.c"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("aiohttp/web.py", ("aiohttp.web", False)),
        ("aiohttp/__init__.py", ("aiohttp", True)),
        ("yarl/_quoting_c.cpython-311-x86_64-linux-gnu.so", ("yarl._quoting_c", False)),
    ],
)
def test_a_files_place_is_its_modules_name(path: str, name: tuple[str, bool]) -> None:
    assert assemble.module_name(Path(path)) == name


@pytest.mark.parametrize(
    "name", ["ssl", "test.support", "unittest.mock", "idlelib", "ctypes.test.test_cast", "this"]
)
def test_modules_that_nobody_wants_are_left_out(name: str) -> None:
    assert assemble.UNWANTED_MODULES.match(name)


@pytest.mark.parametrize(
    "name", ["asyncio.sslproto", "sslx", "json", "testing", "uuid", "aiohttp.test_utils"]
)
def test_modules_with_similar_names_stay(name: str) -> None:
    assert not assemble.UNWANTED_MODULES.match(name)


@pytest.mark.parametrize(
    "name", ["_ssl", "_hashlib", "_testcapi", "multidict._testcapi", "_xxsubinterpreters", "nis"]
)
def test_extensions_that_nobody_wants_are_left_out(name: str) -> None:
    assert assemble.UNWANTED_EXTENSIONS.match(name)


@pytest.mark.parametrize("name", ["_asyncio", "_ctypes", "_bz2", "resource", "aiohttp._http_parser"])
def test_extensions_that_are_needed_stay(name: str) -> None:
    assert not assemble.UNWANTED_EXTENSIONS.match(name)


def test_libraries_and_loader_are_read_from_what_ldd_prints() -> None:
    listing = (
        "/usr/bin/python3.11:\n"
        "\tlinux-vdso.so.1 (0x00007ffd)\n"
        "\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f26)\n"
        "\t/lib64/ld-linux-x86-64.so.2 (0x00007f27)\n"
        "/site/a.so:\n"
        "\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f28)\n"
    )
    libraries, loader = assemble.libraries_of(listing)
    assert set(libraries) == {"libm.so.6", "libz.so.1"}
    assert loader == Path("/lib64/ld-linux-x86-64.so.2")


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Path]:
    """Modules that can be imported from a bundle alone."""
    sources = tmp_path / "sources"
    (sources / "bundled_package").mkdir(parents=True)
    (sources / "bundled_package" / "__init__.py").write_text("from bundled_package.part import answer\n")
    (sources / "bundled_package" / "part.py").write_text("answer = 42\n\ndef fail():\n    raise ValueError\n")
    (sources / "not-a-name.py").write_text("raise SystemExit\n")
    (tmp_path / "modules").write_bytes(assemble.bundle(assemble.modules_below(sources), library="/somewhere"))
    shutil.rmtree(sources)
    finder = boot.Bundle(f"{tmp_path}/modules", library=f"{tmp_path}/library")
    sys.meta_path.insert(0, finder)  # pyright: ignore[reportArgumentType] # duck-typed, as boot.py says
    yield tmp_path
    sys.meta_path.remove(finder)  # pyright: ignore[reportArgumentType]
    for name in [name for name in sys.modules if name.startswith("bundled_package")]:
        del sys.modules[name]


def test_modules_are_imported_from_the_bundle(library: Path) -> None:
    package = importlib.import_module("bundled_package")
    part = importlib.import_module("bundled_package.part")
    assert package.answer == 42
    assert part.__file__ == f"{library}/library/bundled_package/part.py"
    assert package.__path__ == [f"{library}/library/bundled_package"]


def test_of_aiohttp_itself_no_more_goes_in_than_its_version(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('__version__ = "3.1"\n\nfrom .client import ClientSession\n')
    assert assemble.source_of("aiohttp", tmp_path / "__init__.py") == b'__version__ = "3.1"'
    assert b"ClientSession" in assemble.source_of("another", tmp_path / "__init__.py")


def test_an_aiohttp_that_tells_its_version_in_another_way_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("from .about import __version__\n")
    with pytest.raises(SystemExit, match="has no line like"):
        assemble.source_of("aiohttp", tmp_path / "__init__.py")


def test_code_says_where_its_source_lies_in_the_image(library: Path) -> None:
    part = importlib.import_module("bundled_package.part")
    assert part.fail.__code__.co_filename == "/somewhere/bundled_package/part.py"


def test_what_is_not_in_the_bundle_is_left_to_others(library: Path) -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("bundled_package.missing")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory like /opt/sandpod, whose loader is a script that shows how it was called."""
    if not shutil.which("gcc"):
        pytest.skip("no C compiler")
    home = tmp_path_factory.mktemp("home")
    (home / "bin").mkdir()
    (home / "lib").mkdir()
    loader = home / "lib" / "loader"
    loader.write_text('#!/bin/sh\nfor a in "$@"; do echo "argument $a"; done\nenv\n')
    loader.chmod(0o755)
    subprocess.run(
        [
            "gcc",
            "-Wall",
            "-Wextra",
            "-Werror",
            '-DLOADER="loader"',
            str(SOURCE),
            "-o",
            str(home / "bin" / "it"),
        ],
        check=True,
    )
    return home


def start(home: Path, *arguments: str, **env: str) -> list[str]:
    run = subprocess.run(
        [home / "bin" / "it", *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **env},
    )
    return run.stdout.splitlines()


def test_the_launcher_starts_python_with_our_loader_and_libraries(home: Path) -> None:
    shown = [
        line.removeprefix("argument ") for line in start(home, "--port", "1") if line.startswith("argument")
    ]
    assert shown[:3] == ["--inhibit-cache", "--library-path", f"{home}/lib"]
    assert shown[3] == f"{home}/bin/python3"
    assert shown[-3:] == [f"{home}/lib/boot.pyc", "--port", "1"]


def test_the_launcher_keeps_the_images_loader_settings_for_the_images_programs(home: Path) -> None:
    shown = start(
        home, LD_LIBRARY_PATH="/no/such", GLIBC_TUNABLES="glibc.malloc.check=3", LDFLAGS="-O", OTHER="1"
    )
    assert "SANDPOD_KEEP_LD_LIBRARY_PATH=/no/such" in shown
    assert "SANDPOD_KEEP_GLIBC_TUNABLES=glibc.malloc.check=3" in shown
    assert {"LDFLAGS=-O", "OTHER=1"} <= set(shown)
    assert not [line for line in shown if line.startswith(("LD_", "GLIBC_"))]


def test_the_launcher_copies_its_whole_directory(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "mounted"
    start(home, "--copy-to", str(target))
    copied = {path.relative_to(target): path.stat().st_mode for path in target.rglob("*") if path.is_file()}
    assert copied == {
        path.relative_to(home): path.stat().st_mode for path in home.rglob("*") if path.is_file()
    }
    assert start(target, "again")[-1]


def test_a_copy_that_cannot_be_made_says_why(home: Path) -> None:
    run = subprocess.run([home / "bin" / "it", "--copy-to", "/proc/nowhere"], capture_output=True, text=True)
    assert run.returncode == 127
    assert run.stderr.startswith("sandpod-runtime: cannot make /proc/nowhere:")
