"""Tags of images, what is loaded into nodes, what is deleted, and what a build is told of the network."""

import io
import shutil
import tarfile
from pathlib import Path

import pytest
import yaml

from hack.images import engine, nodes, plan

ROOT = Path(__file__).parents[3]
IMAGES = {image.name: image for image in plan.IMAGES}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """As much of the project as images are made of."""
    for image in plan.IMAGES:
        for path in (*plan.COMMON, *image.inputs, *([image.dockerfile] if image.dockerfile else [])):
            source, target = ROOT / path, tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copy(source, target)
    return tmp_path


def tags(tree: Path, base: str = "debian") -> dict[str, str]:
    return {name: plan.tag_of(image, root=tree, base=base) for name, image in IMAGES.items()}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize(
    ("path", "images"),
    [
        ("operator/sandpod_operator/__init__.py", {"operator"}),
        ("gateway/sandpod_gateway/__init__.py", {"gateway"}),
        ("crds/sandpod_crds/__init__.py", {"operator", "gateway"}),
        ("runtime/sandpod_runtime/__init__.py", {"runtime", "sandbox"}),
        ("runtime/launcher/launcher.c", {"runtime", "sandbox"}),
        ("hack/images/sandbox/etc/npmrc", {"sandbox"}),
        ("hack/images/test/busybox.Dockerfile", {"test-busybox"}),
        ("Dockerfile", {"operator", "gateway", "runtime", "sandbox"}),
    ],
)
def test_a_change_gives_new_tags_to_the_images_it_goes_into(tree: Path, path: str, images: set[str]) -> None:
    before = tags(tree)
    with (tree / path).open("a") as file:
        file.write("# changed\n")
    assert changed(before, tags(tree)) == images


def test_a_new_file_and_a_right_to_execute_count_as_changes(tree: Path) -> None:
    before = tags(tree)
    added = tree / "operator" / "sandpod_operator" / "added.py"
    added.touch()
    with_file = tags(tree)
    assert changed(before, with_file) == {"operator"}
    added.chmod(0o755)
    assert changed(with_file, tags(tree)) == {"operator"}


def test_what_python_leaves_behind_does_not_count(tree: Path) -> None:
    before = tags(tree)
    cache = tree / "operator" / "sandpod_operator" / "__pycache__"
    cache.mkdir(exist_ok=True)
    (cache / "store.cpython-311.pyc").write_bytes(b"whatever")
    assert tags(tree) == before


def test_another_base_gives_every_image_a_new_tag(tree: Path) -> None:
    assert changed(tags(tree), tags(tree, "another")) == set(IMAGES)


def test_the_docker_context_holds_everything_that_is_hashed() -> None:
    wanted = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = [line.removeprefix("!") for line in wanted if line.startswith("!")]
    for image in plan.IMAGES:
        for path in image.inputs:
            assert any(Path(path).match(pattern) for pattern in allowed), path


def test_the_current_tag_and_a_few_before_it_stay() -> None:
    older = [f"older-{number}" for number in range(plan.OLDER + 2)]
    assert plan.outdated_tags(["newest", "current", *older], current="current") == older[plan.OLDER - 1 :]
    assert plan.outdated_tags(["current", *older[: plan.OLDER]], current="current") == []


def test_an_outdated_image_goes_with_the_kubelets_own_reference_to_it() -> None:
    listing = {
        "docker.io/sandpod/operator:old": "sha256:a",
        "sha256:config-a": "sha256:a",
        "docker.io/sandpod/operator:new": "sha256:b",
        "sha256:config-b": "sha256:b",
        "registry.k8s.io/pause:3.10": "sha256:c",
        "sha256:config-c": "sha256:c",
    }
    gone = plan.outdated_references(listing, keep=["sandpod/operator:new"])
    assert gone == ["docker.io/sandpod/operator:old", "sha256:config-a"]


def test_an_image_that_still_has_another_name_keeps_the_kubelets_reference() -> None:
    listing = {
        "docker.io/sandpod/runtime:old": "sha256:a",
        "docker.io/sandpod/runtime:new": "sha256:a",
        "sha256:config-a": "sha256:a",
    }
    gone = plan.outdated_references(listing, keep=["sandpod/runtime:new"])
    assert gone == ["docker.io/sandpod/runtime:old"]


def test_an_image_that_somebody_else_calls_sandpod_is_left_alone() -> None:
    assert plan.outdated_references({"docker.io/sandpod/mine:1": "sha256:a"}, keep=[]) == []


def test_the_charts_values_name_its_four_images() -> None:
    found = yaml.safe_load(plan.values(dict.fromkeys(IMAGES, "123456789012")))["images"]
    assert found.pop("pullPolicy") == "IfNotPresent"
    assert set(found) == {"operator", "gateway", "runtime", "sandbox"}
    assert found["operator"] == {"repository": "sandpod/operator", "tag": "123456789012"}


def test_the_images_for_tests_are_listed_apart() -> None:
    found = yaml.safe_load(plan.references_for_tests(dict.fromkeys(IMAGES, "1")))
    assert found == {"busybox": "sandpod/test-busybox:1", "otheruser": "sandpod/test-otheruser:1"}


def archive(members: dict[str, bytes]) -> io.BytesIO:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as writer:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            writer.addfile(info, io.BytesIO(content))
    file.seek(0)
    return file


def test_layers_that_a_node_holds_are_not_sent_again() -> None:
    source = archive(
        {
            "blobs/sha256/held": bytes(200_000),
            "blobs/sha256/new": bytes(200_000),
            "blobs/sha256/manifest": b"{}",
            "index.json": b"{}",
        }
    )
    sent = io.BytesIO()
    nodes.without({"sha256:held", "sha256:manifest"}, source, sent)
    sent.seek(0)
    with tarfile.open(fileobj=sent) as reader:
        assert reader.getnames() == ["blobs/sha256/new", "blobs/sha256/manifest", "index.json"]


def test_a_build_is_told_where_packages_come_from_and_nothing_else_of_pips_settings() -> None:
    listing = (
        "global.index-url='https://mirror.example.com/simple'\n"
        ":env:.find-links='/opt/wheels'\n"
        ":env:.extra_index_url='https://a.example.com\\nhttps://b.example.com'\n"
    )
    assert engine.pip_conf(listing) == (
        "[global]\n"
        "index-url = https://mirror.example.com/simple\n"
        "extra-index-url = https://a.example.com https://b.example.com\n"
    )
    assert engine.pip_conf("global.timeout='60'\n") == ""
