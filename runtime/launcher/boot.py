"""The first code of ours in a sandbox: makes modules come out of one file, then runs the runtime.

The runtime's start imports 300 modules. Looking for them in directories and opening each is a tenth of that
time, and a directory of many files is what an init container takes longest to copy. assemble.py makes it.
"""

# Nothing that is not built into the interpreter: no other module can be found before this one has run.
import marshal
import posix
import sys
from _frozen_importlib import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType


class Bundle:
    """A file of compiled modules, as an entry of `sys.meta_path`.

    Eight bytes with the index's length, the index, the modules' code. It is as trusted as the interpreter
    beside it.
    """

    def __init__(self, path: str, *, library: str) -> None:
        self._library = library
        self._file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
        length = int.from_bytes(posix.pread(self._file, 8, 0), "little")
        self._start = 8 + length
        # name -> where its code is, how long, its file in the library, is it a package
        self._index: dict[str, tuple[int, int, str, bool]] = marshal.loads(  # noqa: S302
            posix.pread(self._file, length, 8)
        )

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        entry = self._index.get(name)
        if entry is None:
            return None
        _, _, filename, is_package = entry
        origin = f"{self._library}/{filename}"
        spec = ModuleSpec(name, None, origin=origin, is_package=is_package)
        spec.loader = self  # pyright: ignore[reportAttributeAccessIssue] # importlib.abc would be an import
        if spec.submodule_search_locations is not None:  # extension modules lie there, as files
            spec.submodule_search_locations.append(origin.rpartition("/")[0])
        return spec

    def get_code(self, name: str) -> "CodeType":
        offset, length, _, _ = self._index[name]
        return marshal.loads(posix.pread(self._file, length, self._start + offset))  # noqa: S302

    def create_module(self, spec: "ModuleSpec") -> None:
        return None

    def exec_module(self, module: "ModuleType") -> None:
        # Not by `spec.has_location`, which would also work out where a cached file might be: 10 µs for each.
        module.__file__ = f"{self._library}/{self._index[module.__name__][2]}"
        exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102 — that is what a loader does


if __name__ == "__main__":
    library = f"{sys.prefix}/lib/python{sys.version_info.major}.{sys.version_info.minor}"
    # After the built-in and the frozen modules, before directories.
    sys.meta_path.insert(2, Bundle(f"{sys.prefix}/lib/modules", library=library))
    from sandpod_runtime.__main__ import main

    sys.exit(main())
