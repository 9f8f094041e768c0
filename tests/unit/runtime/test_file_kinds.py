"""What a file is taken for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.files.kinds import is_text, kind_of


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("/a/b.txt", "text/plain", True),
        ("b.json", "application/json", True),
        ("b.PNG", "image/png", False),
        ("b.svg", "image/svg+xml", True),
        ("b.jsonld", "application/ld+json", True),
        ("b.ts", "application/typescript", True),
        ("b.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", False),
        (".gitignore", "text/plain", True),
        ("a.tar.gz", "application/gzip", False),
    ],
)
def test_the_extension_decides(name: str, kind: str, text: bool) -> None:
    assert kind_of(name, b"\0\1\2") == kind
    assert is_text(kind) is text


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"", "inode/x-empty"),
        (b"hello\n", "text/plain"),
        ("grüße".encode(), "text/plain"),
        ("grüße".encode()[:3], "text/plain"),
        ("grüße".encode("latin-1"), "text/plain"),
        ("text".encode("utf-16"), "application/octet-stream"),
        (b"\0\1\2", "application/octet-stream"),
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"#!/bin/bash\n", "text/x-shellscript"),
        (b"#!/usr/bin/env python3\n", "text/x-script.python"),
        (b'{"a": 1}', "application/json"),
        (b'{"a": 1', "text/plain"),
        (b"[" * 3000, "text/plain"),
        (b"<?xml version='1.0'?>", "text/xml"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00", "application/x-sharedlib"),
        (b"\x7fELF", "application/octet-stream"),
    ],
)
@pytest.mark.parametrize("name", ["/dir.txt/file", "file", "file.unheardof"])
def test_without_a_known_extension_the_content_decides(name: str, head: bytes, kind: str) -> None:
    assert kind_of(name, head) == kind


@given(name=st.text(max_size=20), head=st.binary(max_size=300))
def test_every_file_has_a_kind_that_can_stand_in_a_header(name: str, head: bytes) -> None:
    kind = kind_of(name, head)
    assert kind.isascii()
    assert kind.isprintable()
    assert kind.count("/") == 1
