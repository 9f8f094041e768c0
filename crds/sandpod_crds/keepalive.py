"""How a connection hears that the other side's node has died, which closes nothing: Linux by itself would
notice after two hours.
"""

import socket
from typing import Final

# 15 s of silence, then a probe every 5 s, four times.
_OPTIONS: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
)


def watch_over(connection: socket.socket) -> None:
    """What a listening socket is told, the sockets that it accepts inherit."""
    for option in _OPTIONS:
        connection.setsockopt(*option)
