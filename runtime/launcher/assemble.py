"""Builds /opt/sandpod, the directory that runs in any image: Python, its libraries, its loader, our runtime.

Runs where the image is built, with the Python that is to go in: `assemble.py SITE_PACKAGES PACKAGE OUT`. Few
and large files, so that an init container copies it in a moment.
"""

import marshal
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

HOME = "/opt/sandpod"
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"

# What nobody can want inside the runtime's process. ssl is among it because the runtime speaks no TLS, and
# aiohttp makes two TLS contexts when it is imported, if it can: where the image has a bundle of CAs, that is
# 70 ms and 7 MB. hashlib has implementations of its own.
UNWANTED_MODULES = re.compile(
    r"(test|idlelib|tkinter|turtle|turtledemo|lib2to3|ensurepip|distutils|venv|pydoc|pydoc_data|unittest|doctest|"
    r"sqlite3|dbm|curses|msilib|antigravity|this|ssl|pip|setuptools|__phello__)(\.|$)|.*\.tests?(\.|$)"
)
UNWANTED_EXTENSIONS = re.compile(
    r"_(ssl|hashlib|sqlite3|tkinter|curses.*|dbm|gdbm|xx.*|crypt)$|(nis|ossaudiodev|audioop|readline|xx.*)$|"
    r"(.*\.)?_test[a-z]*$"
)
# Packages whose own `__init__` imports what the runtime has no use for, and the lines of it that it needs.
# aiohttp's is its client: an eighth of the runtime's start.
SHORTENED = {"aiohttp": re.compile(rb'^__version__ = ".+"$', re.MULTILINE)}
# Without these the interpreter does not come as far as our first line: they are files.
BEFORE_BOOT = ["os", "encodings", "encodings.aliases", "encodings.utf_8"]
# glibc loads it by name when a thread is cancelled: no program's list of libraries has it.
LOADED_BY_NAME = ["libgcc_s.so.1"]

Module = tuple[str, Path, bool]


def module_name(relative: Path) -> tuple[str, bool]:
    """`aiohttp/web.py` -> ("aiohttp.web", False), `aiohttp/__init__.py` -> ("aiohttp", True)."""
    *parents, name = relative.parts
    name = name.partition(".")[0]
    is_package = name == "__init__"
    return ".".join(parents if is_package else [*parents, name]), is_package


def modules_below(directory: Path) -> Iterator[Module]:
    for path in sorted(directory.rglob("*.py")):
        name, is_package = module_name(path.relative_to(directory))
        # Other names are files that lie about and cannot be imported, such as Debian's own dist-packages.
        if not UNWANTED_MODULES.match(name) and all(part.isidentifier() for part in name.split(".")):
            yield name, path, is_package


def source_of(name: str, path: Path) -> bytes:
    source = path.read_bytes()
    if name not in SHORTENED:
        return source
    kept = SHORTENED[name].findall(source)
    if not kept:
        raise SystemExit(f"{path} has no line like {SHORTENED[name].pattern!r}")
    return b"\n".join(kept)


def bundle(modules: Iterable[Module], *, library: str) -> bytes:
    """One file of compiled modules, as boot.py reads it; `library` is where they claim to lie."""
    index: dict[str, tuple[int, int, str, bool]] = {}
    code = bytearray()
    for name, path, is_package in modules:
        filename = f"{name.replace('.', '/')}{'/__init__' if is_package else ''}.py"
        compiled = marshal.dumps(
            compile(source_of(name, path), f"{library}/{filename}", "exec", dont_inherit=True)
        )
        index[name] = (len(code), len(compiled), filename, is_package)
        code += compiled
    header = marshal.dumps(index)
    return len(header).to_bytes(8, "little") + header + code


def extensions_below(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.rglob("*.so")):
        if not UNWANTED_EXTENSIONS.match(module_name(path.relative_to(directory))[0]):
            yield path


def libraries_of(listing: str) -> tuple[dict[str, Path], Path | None]:
    """What ldd printed -> the libraries by the names that programs ask for, and the loader, shown bare."""
    libraries = {name: Path(path) for name, path in re.findall(r"(\S+) => (/\S+)", listing)}
    loader = re.search(r"^\s+(/\S+) \(0x", listing, re.MULTILINE)
    return libraries, Path(loader[1]) if loader else None


def copy_libraries(programs: Iterable[Path], *, into: Path) -> str:
    """Every shared library that the programs need, into one directory; the name of the loader among them."""
    listing = subprocess.run(["ldd", *programs], check=True, capture_output=True, text=True).stdout
    libraries, loader = libraries_of(listing)
    if loader is None:
        raise SystemExit(f"ldd named no loader:\n{listing}")
    for name in LOADED_BY_NAME:
        libraries[name] = libraries["libc.so.6"].with_name(name)
    libraries[loader.name] = loader
    for name, path in libraries.items():
        shutil.copy(path, into / name)
    return loader.name


def compile_file(source: Path, *, into: Path) -> None:
    """Valid whatever the times of files: an image's are not those of the build."""
    into.parent.mkdir(exist_ok=True)
    py_compile.compile(
        str(source),
        cfile=str(into),
        dfile=f"{HOME}/lib/{source.name}",
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def assemble(*, site: Path, package: Path, out: Path) -> str:
    """Everything but the launcher, which is C and has to know the name of the loader that this returns."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    library = out / "lib" / VERSION
    (library / "lib-dynload").mkdir(parents=True)
    (out / "bin").mkdir()

    found = {module[0]: module for root in (stdlib, site) for module in modules_below(root)}
    ours = [
        (f"{package.name}.{name}".rstrip("."), path, is_package)
        for name, path, is_package in modules_below(package)
    ]
    modules = bundle([*found.values(), *ours], library=f"{HOME}/lib/{VERSION}")
    (out / "lib" / "modules").write_bytes(modules)
    # The runtime's sources lie where its code claims to come from: a traceback then shows the lines.
    shutil.copytree(package, library / package.name, ignore=shutil.ignore_patterns("__pycache__"))

    copies = {Path(sys.executable).resolve(): out / "bin" / "python3"}
    copies |= {path: library / path.relative_to(stdlib) for path in extensions_below(stdlib / "lib-dynload")}
    copies |= {path: library / path.relative_to(site) for path in extensions_below(site)}
    for source, target in copies.items():
        target.parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(source, target)
    loader = copy_libraries(copies, into=out / "lib")

    for name in BEFORE_BOOT:
        _, path, _ = found[name]
        compile_file(path, into=library / path.relative_to(stdlib).with_suffix(".pyc"))
    compile_file(Path(__file__).with_name("boot.py"), into=out / "lib" / "boot.pyc")
    return loader


if __name__ == "__main__":
    sys.stdout.write(assemble(site=Path(sys.argv[1]), package=Path(sys.argv[2]), out=Path(sys.argv[3])))
