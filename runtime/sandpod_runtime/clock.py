"""The one spelling of a time on the wire: UTC, milliseconds, `Z`. Clients match it with a regular
expression.
"""

import time

# Other years have not four digits.
_FIRST, _END = -30_610_224_000, 253_402_300_800


def timestamp(seconds: float | None = None) -> str:
    whole, milliseconds = divmod(int((time.time() if seconds is None else seconds) * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{milliseconds:03d}Z"


def file_time(seconds: float) -> str:
    """Anybody can give a file a time in a year that has no four digits; it becomes that of no time."""
    return timestamp(seconds if _FIRST <= seconds < _END else 0)
