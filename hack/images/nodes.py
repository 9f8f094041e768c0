"""The cluster's side: what its nodes have, what they lack, and bringing it there."""

import subprocess
import tarfile
from collections.abc import Iterable, Sequence
from typing import IO, cast

from hack.images.engine import output
from hack.images.plan import outdated_references


def nodes(cluster: str) -> list[str]:
    return output("kind", "get", "nodes", "--name", cluster).split()


def ctr(node: str, *command: str) -> str:
    return output("docker", "exec", node, "ctr", "--namespace", "k8s.io", *command)


def references(node: str) -> dict[str, str]:
    """Every reference to an image in a node and the digest it stands for."""
    rows = (line.split() for line in ctr(node, "images", "list").splitlines()[1:])
    return {row[0]: row[2] for row in rows if len(row) > 2}


def lacking(node: str, wanted: Iterable[str]) -> list[str]:
    present = references(node)
    return [reference for reference in wanted if f"docker.io/{reference}" not in present]


class Everywhere:
    """Writes the same bytes to several programs."""

    def __init__(self, sinks: Sequence[IO[bytes]]) -> None:
        self._sinks = sinks

    def write(self, data: bytes) -> int:
        for sink in self._sinks:
            sink.write(data)
        return len(data)


def load(references: Sequence[str], *, into: Sequence[str]) -> None:
    """Streams images from the engine into nodes, without the layers that all of these nodes hold.

    So a runtime that has changed does not carry along the 600 MB that lie below it in the default image.
    """
    present = [set(ctr(node, "content", "list", "--quiet").split()) for node in into]
    common = set[str].intersection(*present)
    save = subprocess.Popen(["docker", "save", *references], stdout=subprocess.PIPE)
    importing = [
        "ctr",
        "--namespace",
        "k8s.io",
        "images",
        "import",
        "--local",
        "--snapshotter=overlayfs",
        "-",
    ]
    imports = [
        subprocess.Popen(
            ["docker", "exec", "-i", node, *importing],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for node in into
    ]
    sink = Everywhere([cast("IO[bytes]", process.stdin) for process in imports])
    try:
        without(common, cast("IO[bytes]", save.stdout), cast("IO[bytes]", sink))
    except BrokenPipeError:
        save.kill()  # the importer says why, below
    for node, process in zip(into, imports, strict=True):
        _, errors = process.communicate()
        if process.returncode:
            raise SystemExit(f"importing {', '.join(references)} into {node} failed:\n{errors.decode()}")
    if save.wait():
        raise SystemExit(f"docker save {' '.join(references)} failed")


def without(blobs: set[str], source: IO[bytes], sink: IO[bytes]) -> None:
    """Copies an image archive but for these layers. The importer takes those from its own store."""
    with (
        tarfile.open(fileobj=source, mode="r|") as reader,
        tarfile.open(fileobj=sink, mode="w|") as writer,
    ):
        for member in reader:
            directory, _, name = member.name.rpartition("/")
            # Configurations and manifests are small, and the importer reads them from the archive.
            if directory == "blobs/sha256" and f"sha256:{name}" in blobs and member.size > 100_000:
                continue
            writer.addfile(member, reader.extractfile(member) if member.isfile() else None)


def delete_older(node: str, *, keep: Iterable[str]) -> None:
    """Our images that are neither wanted nor run by a container of the node."""
    used = {
        line.split()[1] for line in ctr(node, "containers", "list").splitlines()[1:] if len(line.split()) > 1
    }
    gone = outdated_references(
        references(node), keep=[*keep, *(name.removeprefix("docker.io/") for name in used)]
    )
    if gone:
        ctr(node, "images", "delete", *gone)
