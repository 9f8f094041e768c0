"""What every Kubernetes object has: metadata, and the conditions of its status. Only what we read."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from ..errors import Json
from ..markers import Bounds, MapBy, Model


class Metadata(Model):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    annotations: dict[str, str] = Field(default_factory=dict[str, str])
    owner_references: tuple[Json, ...] = ()


class Condition(Model):
    type: Annotated[str, Bounds(longest=316)]
    """Which aspect, such as Ready."""
    status: Literal["True", "False", "Unknown"]
    """True, False or Unknown."""
    reason: Annotated[str, Bounds(longest=1024)] = ""
    """Why, as one word for programs, such as Unschedulable."""
    message: Annotated[str, Bounds(longest=32768)] = ""
    """Why, as a sentence for people, with what to do about it."""
    last_transition_time: datetime | None = None
    """When status last changed."""
    observed_generation: int | None = None
    """The metadata.generation that this was said of; when older than the object's, it is out of date."""


Conditions = Annotated[tuple[Condition, ...], MapBy("type"), Bounds(longest=16)]
