"""The Docker Engine's side: the base image, builds with what this machine's network needs, older images."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

from hack.images.plan import Image, digest_of, outdated_tags

OFFICIAL_BASE = "debian:bookworm-slim"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
# Whoever has more authorities to trust than the public ones names them in one of these.
BUNDLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")
PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host")


def output(*command: str, timeout: float | None = None) -> str:
    """What a program prints; nothing if it fails."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        return done.stdout if done.returncode == 0 else ""
    return ""


def exists(reference: str) -> bool:
    return bool(output("docker", "image", "inspect", "--format", "{{.Id}}", reference))


def size(reference: str) -> int:
    return int(output("docker", "image", "inspect", "--format", "{{.Size}}", reference) or 0)


def base_image(root: Path, *, log: Path) -> str:
    """Debian's own slim image where it is to be had, else one that is made here from Debian's packages.

    What is here already needs no question to a registry.
    """
    made = f"sandpod/base:{digest_of(root, ('hack/images/base.sh', 'hack/cluster/versions.sh'))}"
    if chosen := os.environ.get("SANDPOD_BASE_IMAGE"):
        return chosen
    for reference in (OFFICIAL_BASE, made):
        if exists(reference):
            return reference
    if output("docker", "manifest", "inspect", OFFICIAL_BASE, timeout=15):
        return OFFICIAL_BASE
    run("hack/images/base.sh", made, root=root, log=log)
    return made


def run(*command: str, root: Path, log: Path) -> None:
    """A long step, its output in the log; if it fails, the log's end is the message."""
    with log.open("ab") as file:
        done = subprocess.run(command, cwd=root, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-25:])
        raise SystemExit(f"{tail}\nfailed: {command[0]}; all of the log: {log}")


def pip_conf(listing: str) -> str:
    """From what `pip config list` printed, the part that says where packages come from, as a pip.conf."""
    found: dict[str, str] = {}
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        setting = name.rpartition(".")[2].replace("_", "-")
        if setting in PIP_SETTINGS:
            found[setting] = value.strip("'\"").replace("\\n", " ")
    return "".join(["[global]\n", *(f"{name} = {value}\n" for name, value in found.items())]) if found else ""


@contextlib.contextmanager
def network_options() -> Generator[list[str]]:
    """The options with which a build reaches the network as this machine does, and of which nothing stays."""
    options: list[str] = []
    for name in PROXIES:
        if name in os.environ:
            options += ["--build-arg", name]
    bundle = next((os.environ[name] for name in BUNDLES if os.environ.get(name)), "")
    if bundle and Path(bundle).is_file():
        options += ["--secret", f"id=ca,src={bundle}"]
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        if settings := pip_conf(output("python3", "-m", "pip", "config", "list")):
            file.write(settings)
            file.flush()
            options += ["--secret", f"id=pip,src={file.name}"]
        yield options


def build(image: Image, reference: str, *, root: Path, base: str, options: list[str], log: Path) -> None:
    """The tag is given by the engine when the build is done: there is none of a half-made image."""
    which = ["--file", image.dockerfile] if image.dockerfile else ["--target", image.name]
    run(
        *("docker", "build", "--progress=plain", "--build-arg", f"BASE_IMAGE={base}", "--tag", reference),
        *(*which, *options, "."),
        root=root,
        log=log,
    )


def delete_older(image: Image, *, current: str) -> list[str]:
    """Older images of the same name, but for the newest of them; the tags that stay."""
    tags = output("docker", "images", "--format", "{{.Tag}}", image.repository).split()
    gone = outdated_tags(tags, current=current)
    if gone:
        output("docker", "rmi", *(f"{image.repository}:{tag}" for tag in gone))
    return [tag for tag in tags if tag not in gone]
