"""Kubernetes' amounts, such as 500m or 2Gi, as numbers that can be compared."""

from decimal import Decimal
from typing import Any, Final

from kubernetes.utils import quantity

Amount = str | int

_BINARY: Final = {"Gi": 1 << 30, "Mi": 1 << 20, "Ki": 1 << 10}

# The library has no types.
_quantity: Any = quantity


def parse(amount: Amount) -> Decimal:
    """Raises ValueError."""
    try:
        number: Decimal = _quantity.parse_quantity(amount)
    except ArithmeticError as error:
        raise ValueError(f"{amount!r} is not an amount") from error
    # The library reads more than Kubernetes does, and with these nothing can be compared.
    if not number.is_finite():
        raise ValueError(f"{amount!r} is not an amount")
    return number


def larger(one: Amount, other: Amount) -> Amount:
    """As it is written."""
    return one if parse(one) >= parse(other) else other


def smaller(one: Amount, other: Amount) -> Amount:
    """As it is written."""
    return one if parse(one) <= parse(other) else other


def in_words(number: Decimal, *, binary: bool) -> str:
    """The shortest way to write it: `binary` for bytes."""
    if binary and number:
        for unit, size in _BINARY.items():
            if number % size == 0:
                return f"{number // size:f}{unit}"
    return f"{number.normalize():f}"
