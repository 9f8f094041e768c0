import tomllib
from pathlib import Path

import sandpod_crds


def test_the_version_that_children_are_labelled_with_is_the_projects() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert sandpod_crds.__version__ == project["version"]
