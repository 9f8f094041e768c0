"""Where the runtime listens. It does so before most of its modules are imported: whoever asks meanwhile waits
in the kernel's queue for as long as that takes, and is not refused, to come again at some later time.
"""

import socket

from sandpod_runtime.options import Options

BACKLOG = 512


def listeners(options: Options) -> list[socket.socket]:
    """All addresses of both families, or with --insecure the two loopback ones."""
    if not options.insecure:
        if socket.has_dualstack_ipv6():
            return [
                socket.create_server(
                    ("::", options.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG
                )
            ]
        return [socket.create_server(("0.0.0.0", options.port), backlog=BACKLOG)]
    first = socket.create_server(("127.0.0.1", options.port), backlog=BACKLOG)
    try:
        port = first.getsockname()[1]
        return [first, socket.create_server(("::1", port), family=socket.AF_INET6, backlog=BACKLOG)]
    except OSError:
        return [first]  # no IPv6 here
