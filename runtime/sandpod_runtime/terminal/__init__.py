"""Terminals: pseudo-terminals with a shell on them, each watched and typed into by any number of sockets."""
