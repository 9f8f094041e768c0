"""The SDK's version: a constant, because asking the installed metadata costs a command 25 ms at start."""

VERSION = "0.1.0"
