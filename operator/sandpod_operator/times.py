"""Times as Kubernetes writes them, and back. All are UTC and aware."""

from datetime import UTC, datetime, timedelta

# No two clocks of a cluster differ by more.
SKEW = timedelta(minutes=5)


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def format_time(moment: datetime) -> str:
    """To the second, which is what `metav1.Time` holds."""
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def still_to_come(moment: datetime, *, now: datetime, within: timedelta) -> datetime | None:
    """The moment, until it is there; None also when it is further away than it can be. Such a one is from
    before a clock was put back, and to wait for it would be to wait for as long as that.
    """
    return moment if now < moment <= now + within else None


def utc_now() -> datetime:
    return datetime.now(UTC)
