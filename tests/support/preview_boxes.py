"""Sandboxes with a program behind a preview URL: its files brought in through the API."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.support import preview_program
from tests.support.cluster import proxy_path
from tests.support.ingress import Ingress, Preview
from tests.support.sandboxes import Sandbox
from tests.support.waiting import eventually

PORT = 8000
PROGRAM = Path(preview_program.__file__).read_text(encoding="utf-8")


def call(api: httpx.Client, box: Sandbox, method: str, path: str, **options: Any) -> httpx.Response:
    """At the sandbox's runtime."""
    answer = api.request(
        method, proxy_path(namespace=box.namespace, name=box.name, path=path), timeout=120, **options
    )
    assert answer.is_success, answer.text
    return answer


def write(api: httpx.Client, box: Sandbox, path: str, content: str) -> None:
    call(api, box, "POST", "api/write", json={"path": path, "content": content})


def start(api: httpx.Client, box: Sandbox, command: str, **fields: Any) -> None:
    call(api, box, "POST", "api/process/start", json={"command": command, **fields})


def upload(api: httpx.Client, box: Sandbox, path: str, *folders: Path, files: Mapping[str, str]) -> None:
    """Folders under their own names, and files, into a directory of the sandbox."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for folder in folders:
            archive.add(folder, folder.name, filter=_useful)
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    call(api, box, "PUT", f"api/files/archive?path={path}", content=packed.getvalue())


def _useful(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Maps of sources are for debuggers, and a tenth of what Next.js weighs."""
    return None if entry.name.endswith(".map") else entry


def program_in(api: httpx.Client, box: Sandbox) -> None:
    """`preview_program` runs there, until the sandbox sleeps."""
    write(api, box, "/tmp/program.py", PROGRAM)
    start(api, box, f"python3 /tmp/program.py {PORT}")


def url_of(box: Sandbox, port: int = PORT) -> str:
    """As its status shows it."""

    def shown() -> str | None:
        ports = box.status().get("ports", [])
        return next((found.get("url") for found in ports if found["port"] == port), None)

    return eventually(shown, timeout=30)


def routed(ingress: Ingress, box: Sandbox, port: int = PORT) -> Preview:
    """Its preview, once the controller has heard of it, whatever the gateway answers."""
    preview = ingress.preview(url_of(box, port))

    def is_known() -> bool:
        with preview.client() as client:
            return client.get("/").status_code != 404

    eventually(is_known, timeout=60)
    return preview


def opened(ingress: Ingress, box: Sandbox, port: int = PORT, *, path: str = "/") -> Preview:
    """Its preview, once the controller has heard of it and the program answers."""
    preview = ingress.preview(url_of(box, port))

    def answers() -> bool:
        with preview.client() as client:
            answer = client.get(path)
        assert answer.status_code < 400, (answer.status_code, answer.text[:300])
        return True

    eventually(answers, timeout=60)
    return preview
