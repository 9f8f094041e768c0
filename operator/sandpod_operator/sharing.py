"""Holds JSON in less memory: thousands of objects have the same keys and many of the same words, and each was
read from a text of its own.
"""

import sys
from typing import Any, cast

from .objects import Json

# A longer text is hardly the same as another one's.
LONGEST = 64


def shared(obj: Json) -> Json:
    """A copy that says the same."""
    return {sys.intern(key): _shared(value) for key, value in obj.items()}


def _shared(value: Any) -> Any:
    if isinstance(value, dict):
        return shared(cast("Json", value))
    if isinstance(value, list):
        return [_shared(each) for each in cast("list[Any]", value)]
    # The interpreter forgets such a text with the last object that has it.
    return sys.intern(value) if type(value) is str and len(value) <= LONGEST else value
