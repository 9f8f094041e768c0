"""The names of a pool's pods."""

import secrets

# As in Kubernetes' own generated names: no vowels, so that no words come out, and nothing that looks like
# something else.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX = 5
# A pod's name is its host name too.
LONGEST = 63


def fresh_name(pool: str) -> str:
    """`<pool>-<5 characters>`, another one each time."""
    suffix = "".join(secrets.choice(ALPHABET) for _ in range(SUFFIX))
    # An object's name may have dots and 253 characters, a host name not.
    stem = pool.replace(".", "-")[: LONGEST - SUFFIX - 1].rstrip("-")
    return f"{stem}-{suffix}"
