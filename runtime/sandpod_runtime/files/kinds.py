"""What a file holds: by its extension, else by its first bytes, as `file --mime-type` would say it; and
whether that is text.

Own tables, because the image's /etc/mime.types and libmagic are anybody's and Python's types differ from
version to version.
"""

import codecs
from functools import lru_cache

# As much of a file as `kind_of` wants to see.
SNIFFED = 4096
UNKNOWN = "application/octet-stream"

_EXTENSIONS = """
text/plain txt text log conf cfg ini env properties lock gitignore dockerignore editorconfig patch diff
text/markdown md markdown mdx
text/html html htm
text/css css
text/csv csv
text/tab-separated-values tsv
text/calendar ics
text/vtt vtt
text/javascript js mjs cjs
text/jsx jsx
text/tsx tsx
text/x-vue vue
text/x-svelte svelte
text/x-scss scss
text/x-sass sass
text/x-less less
text/x-python py pyi pyw
text/x-ruby rb
text/x-perl pl pm
text/x-lua lua
text/x-go go
text/x-rust rs
text/x-c c h
text/x-c++ cc cpp cxx hh hpp hxx
text/x-csharp cs
text/x-java java
text/x-kotlin kt kts
text/x-scala scala
text/x-swift swift
text/x-haskell hs
text/x-erlang erl hrl
text/x-elixir ex exs
text/x-clojure clj cljs
text/x-ocaml ml mli
text/x-fsharp fs fsx
text/x-r r
text/x-julia jl
text/x-dart dart
text/x-zig zig
text/x-nim nim
text/x-asm s asm
text/x-makefile mk mak
text/x-cmake cmake
text/x-gradle gradle
text/x-protobuf proto
text/x-graphql graphql gql
text/x-terraform tf tfvars hcl
text/x-tex tex sty bib
text/x-rst rst
text/x-asciidoc adoc
text/x-org org
text/x-powershell ps1 psm1
text/x-batch bat cmd
text/x-awk awk
application/json json map ipynb
application/json-seq jsonl ndjson
application/ld+json jsonld
application/geo+json geojson
application/manifest+json webmanifest
application/typescript ts mts cts
application/xml xml xsl xslt xsd plist
application/xml-dtd dtd
application/rss+xml rss
application/atom+xml atom
application/xhtml+xml xhtml
application/yaml yaml yml
application/toml toml
application/sql sql
application/rtf rtf
application/x-sh sh bash zsh fish ksh
application/x-httpd-php php
image/svg+xml svg
image/png png
image/jpeg jpg jpeg
image/gif gif
image/webp webp
image/avif avif
image/heic heic
image/bmp bmp
image/tiff tif tiff
image/x-icon ico
image/vnd.adobe.photoshop psd
audio/mpeg mp3
audio/mp4 m4a
audio/aac aac
audio/wav wav
audio/ogg oga ogg opus
audio/flac flac
audio/midi mid midi
video/mp4 mp4 m4v
video/webm webm
video/ogg ogv
video/quicktime mov
video/x-msvideo avi
video/x-matroska mkv
video/mpeg mpg mpeg
font/ttf ttf
font/otf otf
font/woff woff
font/woff2 woff2
application/pdf pdf
application/postscript ps eps
application/epub+zip epub
application/zip zip
application/gzip gz tgz
application/x-bzip2 bz2
application/x-xz xz
application/zstd zst
application/x-7z-compressed 7z
application/vnd.rar rar
application/x-tar tar
application/java-archive jar war
application/wasm wasm
application/vnd.sqlite3 sqlite sqlite3 db
application/vnd.apache.parquet parquet
application/x-hdf5 h5 hdf5
application/x-python-bytecode pyc
application/x-sharedlib so
application/x-object o
application/x-msdownload exe dll
application/vnd.debian.binary-package deb
application/x-rpm rpm
application/msword doc
application/vnd.ms-excel xls
application/vnd.ms-powerpoint ppt
application/vnd.openxmlformats-officedocument.wordprocessingml.document docx
application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx
application/vnd.openxmlformats-officedocument.presentationml.presentation pptx
application/vnd.oasis.opendocument.text odt
application/vnd.oasis.opendocument.spreadsheet ods
application/vnd.oasis.opendocument.presentation odp
"""

_TEXTS = """
ecmascript javascript json json-seq rtf sql toml typescript x-empty x-httpd-php x-javascript x-sh
x-shellscript x-typescript x-yaml xml xml-dtd xml-external-parsed-entity yaml
"""
_TEXT_TYPES = {"inode/x-empty", *(f"application/{name}" for name in _TEXTS.split())}

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"%!PS", "application/postscript"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\0asm", "application/wasm"),
    (b"\xca\xfe\xba\xbe", "application/x-java-applet"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"\x1aE\xdf\xa3", "video/x-matroska"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO", "font/otf"),
    (b"\0\x01\0\0\0", "font/ttf"),
    (b"!<arch>\ndebian", "application/vnd.debian.binary-package"),
    (b"!<arch>", "application/x-archive"),
)
_ELF = {1: "object", 2: "executable", 3: "sharedlib", 4: "coredump"}
_RIFF = {b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo", b"WEBP": "image/webp"}
# What a text may hold besides printable characters: BEL, BS, TAB, LF, VT, FF, CR, ESC, NEL.
_ALLOWED = frozenset((7, 8, 9, 10, 11, 12, 13, 27))
_CONTROLS = bytes(code for code in range(32) if code not in _ALLOWED) + b"\x7f"


def kind_of(name: str, head: bytes) -> str:
    """The MIME type of a file with this name and these first bytes."""
    return _by_extension(name) or _by_content(head)


def is_text(mime: str) -> bool:
    return mime.startswith("text/") or mime.endswith(("+json", "+xml")) or mime in _TEXT_TYPES


@lru_cache(maxsize=1)
def _table() -> dict[str, str]:
    # Made when it is first wanted: many runtimes never serve a file.
    lines = (line.split() for line in _EXTENSIONS.strip().splitlines())
    return {extension: mime for mime, *extensions in lines for extension in extensions}


def _by_extension(name: str) -> str | None:
    base = name.rpartition("/")[2]
    stem, dot, extension = base.rpartition(".")
    return _table().get(extension.lower()) if dot and (stem or extension) else None


def _by_content(head: bytes) -> str:
    if not head:
        return "inode/x-empty"
    for beginning, mime in _BEGINNINGS:
        if head.startswith(beginning):
            return mime
    if head.startswith(b"\x7fELF") and len(head) > 17:
        # In the byte order that the file says it has.
        kind = _ELF.get(int.from_bytes(head[16:18], "big" if head[5] == 2 else "little"))
        return f"application/x-{kind}" if kind else UNKNOWN
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12], UNKNOWN)
    if head[4:8] == b"ftyp":
        return "image/avif" if head[8:12] == b"avif" else "video/mp4"
    if head[257:262] == b"ustar":
        return "application/x-tar"
    return _text_kind(head) if _looks_like_text(head) else UNKNOWN


def _looks_like_text(head: bytes) -> bool:
    """UTF-8, perhaps cut off; or another encoding whose letters are single bytes above the controls."""
    if head.translate(None, _CONTROLS) != head:
        return False
    try:
        codecs.utf_8_decode(head, "strict", False)
    except UnicodeDecodeError:
        return not any(0x80 <= byte < 0xA0 for byte in head)
    return True


def _text_kind(head: bytes) -> str:
    begin = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:512].lower()
    if begin.startswith(b"#!"):
        interpreter = begin.split(b"\n")[0]
        if b"python" in interpreter:
            return "text/x-script.python"
        if b"node" in interpreter or b"deno" in interpreter or b"bun" in interpreter:
            return "application/javascript"
        return "text/x-shellscript" if interpreter.rstrip().endswith(b"sh") else "text/plain"
    if begin.startswith(b"<?xml"):
        return "image/svg+xml" if b"<svg" in begin else "text/xml"
    if begin.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    if begin.startswith((b"{", b"[")) and _is_json(head):
        return "application/json"
    return "text/plain"


def _is_json(head: bytes) -> bool:
    if len(head) >= SNIFFED:
        return False  # there is more of it, and who knows what
    import msgspec

    try:
        msgspec.json.decode(head, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
