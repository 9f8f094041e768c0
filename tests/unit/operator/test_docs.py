"""docs/operator.md explains every reason that a user can meet."""

from pathlib import Path

from sandpod_operator.reasons import Reason

PAGE = (Path(__file__).parents[3] / "docs" / "operator.md").read_text()


def test_every_reason_is_explained() -> None:
    assert [reason for reason in Reason if f"`{reason}`" not in PAGE] == []
