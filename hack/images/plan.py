"""What our images are made of, their tags, and which older ones may go. Pure: files are read, nothing is run.

A tag is a hash of all that goes into the image: what has not changed is neither built nor loaded again.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

OLDER = 4  # they share most of their layers: a few MB each
COMMON = ("Dockerfile", ".dockerignore", "hack/images/apt-install", "hack/images/pip-install")


@dataclass(frozen=True, kw_only=True)
class Image:
    name: str
    inputs: tuple[str, ...]
    # For tests alone: an image of a Dockerfile of its own, and no business of the chart's.
    dockerfile: str | None = None

    @property
    def repository(self) -> str:
        return f"sandpod/{self.name}"


IMAGES = (
    Image(
        name="operator",
        inputs=("requirements/operator.lock", "crds/sandpod_crds", "operator/sandpod_operator"),
    ),
    Image(
        name="gateway",
        inputs=(
            "requirements/gateway.lock",
            "crds/sandpod_crds",
            "gateway/sandpod_gateway",
            "gateway/haproxy",
        ),
    ),
    Image(name="runtime", inputs=("requirements/runtime.lock", "runtime")),
    Image(name="sandbox", inputs=("requirements/runtime.lock", "runtime", "hack/images/sandbox")),
    Image(name="test-busybox", inputs=(), dockerfile="hack/images/test/busybox.Dockerfile"),
    Image(name="test-otheruser", inputs=(), dockerfile="hack/images/test/otheruser.Dockerfile"),
)


def files_of(root: Path, paths: Iterable[str]) -> list[Path]:
    """The files that these paths name or hold, without what Python leaves behind."""
    found: set[Path] = set()
    for path in (root / path for path in paths):
        found |= {path} if path.is_file() else {below for below in path.rglob("*") if below.is_file()}
    return sorted(path for path in found if "__pycache__" not in path.parts)


def digest_of(root: Path, paths: Iterable[str], *, salt: str = "") -> str:
    """Twelve digits of a hash over each file's path, right to execute and content."""
    digest = hashlib.sha256(salt.encode())
    for path in files_of(root, paths):
        executable = bool(path.stat().st_mode & 0o100)
        content = path.read_bytes()
        digest.update(f"\n{path.relative_to(root)} {executable} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def tag_of(image: Image, *, root: Path, base: str) -> str:
    own = COMMON if image.dockerfile is None else (image.dockerfile, "hack/images/apt-install")
    return digest_of(root, (*image.inputs, *own), salt=base)


def outdated_tags(tags: Iterable[str], *, current: str) -> list[str]:
    """Of a repository's tags, newest first, those that may go.

    Some older ones stay: changes are taken back, and an installed chart may still name one of them.
    """
    return [tag for tag in tags if tag != current][OLDER:]


def outdated_references(listing: Mapping[str, str], *, keep: Iterable[str]) -> list[str]:
    """What to delete in a node, from its references to images and their digests.

    The kubelet's side of containerd has a second reference to each image, named by its configuration's
    digest; as long as that is there, the image stays on the disk.
    """
    repositories = {f"docker.io/{image.repository}" for image in IMAGES}
    ours = {name for name in listing if name.rpartition(":")[0] in repositories}
    ours -= {f"docker.io/{name}" for name in keep}
    others = {
        digest for name, digest in listing.items() if not name.startswith("sha256:") and name not in ours
    }
    gone = {listing[name] for name in ours} - others
    return sorted(ours) + sorted(
        name for name in listing if name.startswith("sha256:") and listing[name] in gone
    )


def values(tags: Mapping[str, str]) -> str:
    """The chart's values for these images, as YAML."""
    rows = [
        f"  {image.name}: {{repository: {image.repository}, tag: {tags[image.name]!r}}}\n"
        for image in IMAGES
        if image.dockerfile is None
    ]
    return "".join(["# Made by hack/images/build.sh.\nimages:\n  pullPolicy: IfNotPresent\n", *rows])


def references_for_tests(tags: Mapping[str, str]) -> str:
    """The images that only tests use, as YAML: name -> reference."""
    rows = [
        f"{image.name.removeprefix('test-')}: {image.repository}:{tags[image.name]}\n"
        for image in IMAGES
        if image.dockerfile is not None
    ]
    return "".join(["# Made by hack/images/build.sh.\n", *rows])
