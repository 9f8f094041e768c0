"""Times as Kubernetes writes them, and back. All are UTC and aware."""

from datetime import UTC, datetime


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def format_time(moment: datetime) -> str:
    """To the second, which is what `metav1.Time` holds."""
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def utc_now() -> datetime:
    return datetime.now(UTC)
