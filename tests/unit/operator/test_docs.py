"""docs/operator.md explains every reason that a user can meet."""

from pathlib import Path

from sandpod_operator.conditions import NOT_IMPLEMENTED
from sandpod_operator.reasons import Reason

PAGE = (Path(__file__).parents[3] / "docs" / "operator.md").read_text()


def test_every_reason_is_explained() -> None:
    assert [reason for reason in Reason if f"`{reason}`" not in PAGE] == []


def test_every_field_without_an_effect_is_named() -> None:
    def camel(name: str) -> str:
        first, *others = name.split("_")
        return first + "".join(part.capitalize() for part in others)

    assert [name for name in NOT_IMPLEMENTED if f"`{camel(name)}`" not in PAGE] == []
