"""Kubernetes' amounts, such as 500m or 2Gi, as numbers that can be compared."""

from decimal import Decimal
from typing import Any

from kubernetes.utils import quantity

Amount = str | int

# The library has no types.
_quantity: Any = quantity


def parse(amount: Amount) -> Decimal:
    """Raises ValueError."""
    return _quantity.parse_quantity(amount)


def larger(one: Amount, other: Amount) -> Amount:
    """As it is written."""
    return one if parse(one) >= parse(other) else other


def smaller(one: Amount, other: Amount) -> Amount:
    """As it is written."""
    return one if parse(one) <= parse(other) else other
