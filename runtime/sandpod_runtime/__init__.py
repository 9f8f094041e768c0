"""The server inside every sandbox: commands, and later files, sessions and terminals, over HTTP.

It speaks the HTTP transport of @cloudflare/sandbox 0.12 and imports nothing of the other rooms.
"""

# Written here and compared with pyproject.toml by a test: the runtime's directory in an image carries no
# metadata.
__version__ = "0.1.0"
