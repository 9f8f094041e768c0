"""Build our images, bring them into the cluster's nodes, say which they are in build/images.yaml.

Without a cluster it only builds. Settings: SANDPOD_BASE_IMAGE, another Debian to build on.
"""

import fcntl
import os
import sys
import time
from pathlib import Path

from hack.images import engine, nodes, plan

ROOT = Path(__file__).resolve().parents[2]


def say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%T')}  {text}\n")
    sys.stderr.flush()


def build_all(*, base: str, log: Path) -> dict[str, str]:
    """Builds what is not there; the tag of every image."""
    tags = {image.name: plan.tag_of(image, root=ROOT, base=base) for image in plan.IMAGES}
    with engine.network_options() as options:
        for image in plan.IMAGES:
            reference = f"{image.repository}:{tags[image.name]}"
            if engine.exists(reference):
                continue
            start = time.monotonic()
            say(f"building {reference}")
            engine.build(image, reference, root=ROOT, base=base, options=options, log=log)
            took = time.monotonic() - start
            say(f"  {engine.size(reference) / 1e6:.0f} MB, took {took:.0f} s")
    return tags


def load_all(references: list[str], *, cluster: str) -> None:
    lacks = {node: missing for node in nodes.nodes(cluster) if (missing := nodes.lacking(node, references))}
    if lacks:
        start = time.monotonic()
        wanted = sorted({reference for missing in lacks.values() for reference in missing})
        say(f"loading {', '.join(wanted)} into {', '.join(lacks)}")
        nodes.load(wanted, into=list(lacks))
        say(f"  took {time.monotonic() - start:.0f} s")


def main() -> None:
    start = time.monotonic()
    cache = Path(os.environ["SANDPOD_CACHE"])
    cluster = os.environ["SANDPOD_CLUSTER"]
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "images.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # two at once would build everything twice
        except BlockingIOError:
            say("waiting for another run of hack/images")
            fcntl.flock(lock, fcntl.LOCK_EX)
        log = cache / "images.log"
        log.write_bytes(b"")
        tags = build_all(base=engine.base_image(ROOT, log=log), log=log)
        current = [f"{image.repository}:{tags[image.name]}" for image in plan.IMAGES]
        load_all(current, cluster=cluster)

        target = ROOT / "build"
        target.mkdir(exist_ok=True)
        (target / "images.yaml").write_text(plan.values(tags))
        (target / "test-images.yaml").write_text(plan.references_for_tests(tags))

        kept: list[str] = []
        for image in plan.IMAGES:
            kept += [
                f"{image.repository}:{tag}" for tag in engine.delete_older(image, current=tags[image.name])
            ]
        for node in nodes.nodes(cluster):
            nodes.delete_older(node, keep=kept)
    say(f"images are there after {time.monotonic() - start:.0f} s: {', '.join(current)}")


if __name__ == "__main__":
    main()
