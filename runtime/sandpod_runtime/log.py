"""Structured logs: one JSON object per line on standard error. What goes into `extra` becomes a field, and
the ids of the request that is being answered are there by themselves.

The text of commands, environments and credentials are never logged: all of them may hold secrets.
"""

import json
import logging
import sys

from sandpod_runtime import trace
from sandpod_runtime.clock import timestamp

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "timestamp": timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request := trace.current():
            line |= request.fields()
        line.update((name, value) for name, value in vars(record).items() if name not in _STANDARD)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, separators=(",", ":"))


def configure(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.root.addHandler(handler)
    logging.root.setLevel(level.upper())
    # asyncio tells about its selector at debug level, and nobody who debugs a sandbox wants to know.
    logging.getLogger("asyncio").setLevel(max(logging.root.level, logging.INFO))
