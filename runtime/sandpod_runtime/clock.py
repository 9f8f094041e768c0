"""The one spelling of a time on the wire: UTC, milliseconds, `Z`. Clients match it with a regular
expression.
"""

import time


def timestamp(seconds: float | None = None) -> str:
    whole, milliseconds = divmod(int((time.time() if seconds is None else seconds) * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{milliseconds:03d}Z"
