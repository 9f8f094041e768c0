"""Packages of others that tests run: brought once for each lock file, and kept for the next run."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path


def node_modules(folder: Path) -> Path:
    """What `package-lock.json` in there names, from npm."""
    lock = folder / "package-lock.json"
    place = _place("npm", lock)
    if not (place / "complete").exists():
        place.mkdir(parents=True, exist_ok=True)
        for file in (folder / "package.json", lock):
            shutil.copy(file, place)
        _run("npm", "ci", "--omit=peer", "--ignore-scripts", "--no-audit", "--no-fund", folder=place)
        (place / "complete").touch()
    return place / "node_modules"


def site_packages(lock: Path, *, python: str = "3.11") -> Path:
    """What a lock file of pip's names, from PyPI, for this version of Python: by itself, our image's."""
    place = _place(f"pip-{python}", lock)
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        target = ("--target", str(place / "site"), "--python-version", python, "--only-binary=:all:")
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        _run(*pip, *target, "--no-deps", "--require-hashes", "-r", str(lock), folder=place)
        (place / "complete").touch()
    return place / "site"


def _place(kind: str, lock: Path) -> Path:
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "sandpod" / f"{kind}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"


def _run(*command: str, folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
