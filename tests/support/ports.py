"""Ports on loopback for programs that are told theirs."""

import socket


def free_port() -> int:
    """One that nobody listens at now: whoever wants it must be quick."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def held_place() -> socket.socket:
    """An address that nobody is given by chance, until this is closed; HAProxy, which shares its ports, can
    listen there. By a free port two of them could meet, and each have half of the other's requests.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("127.0.0.1", 0))
    return held
