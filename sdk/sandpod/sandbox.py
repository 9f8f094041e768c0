"""The SDK's main object: one sandbox, seen through the Kubernetes API."""

from __future__ import annotations

import builtins
import codecs
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sandpod import _client, _command, _following, _manifest, _requests, _stream
from sandpod._client import Client
from sandpod._observation import observe
from sandpod._results import ExecResult, Keeper
from sandpod._stream import ExecStream
from sandpod.errors import CommandFailed

Json = dict[str, Any]

_KEPT_BYTES = 64 << 20


class Sandbox:
    """A Linux computer in a cluster. What the properties say is as of the last time it was looked at:
    `refresh`.

    Methods that take a `client` use the current kubeconfig's when they are given none.
    """

    def __init__(self, *, client: Client, manifest: Json) -> None:
        self._client = client
        self._manifest = manifest

    @classmethod
    def create(
        cls,
        name: str | None = None,
        *,
        image: str | None = None,
        env: Mapping[str, str] | None = None,
        cpu: str | None = None,
        memory: str | None = None,
        sleep_after: str | int | None = None,
        keep_alive: bool | None = None,
        labels: Mapping[str, str] | None = None,
        manifest: Json | None = None,
        namespace: str | None = None,
        wait: bool = True,
        timeout: float = 120.0,
        on_change: Callable[[Sandbox], object] | None = None,
        client: Client | None = None,
    ) -> Sandbox:
        """Makes one, and returns when it can run commands (`wait=False`: as soon as the cluster knows of it).

        `manifest` is a Sandbox as in YAML, for all that has no argument here; arguments win over it.
        """
        client = client or _client.default()
        wanted = _manifest.build(
            base=manifest,
            name=name,
            image=image,
            env=env,
            cpu=cpu,
            memory=memory,
            sleep_after=sleep_after,
            keep_alive=keep_alive,
            labels=labels,
        )
        where = namespace or str(wanted["metadata"].get("namespace") or client.namespace)
        created = client.send(_requests.create(namespace=where, manifest=wanted))
        sandbox = cls(client=client, manifest=created)
        return sandbox.wait_ready(timeout=timeout, on_change=on_change) if wait else sandbox

    @classmethod
    def get(cls, name: str, *, namespace: str | None = None, client: Client | None = None) -> Sandbox:
        return cls.named(name, namespace=namespace, client=client).refresh()

    @classmethod
    def named(cls, name: str, *, namespace: str | None = None, client: Client | None = None) -> Sandbox:
        """A handle on one, without asking the cluster whether it exists: enough to run a command in it."""
        client = client or _client.default()
        return cls(
            client=client, manifest={"metadata": {"name": name, "namespace": namespace or client.namespace}}
        )

    @classmethod
    def list(
        cls,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        label_selector: str = "",
        client: Client | None = None,
    ) -> builtins.list[Sandbox]:
        client = client or _client.default()
        where = None if all_namespaces else namespace or client.namespace
        found: builtins.list[Sandbox] = []
        after = ""
        while True:
            page = client.send(
                _requests.list_page(namespace=where, after=after, label_selector=label_selector)
            )
            # The items of a list come without the type that each would have alone.
            found += [
                cls(
                    client=client,
                    manifest={"apiVersion": _requests.API_VERSION, "kind": _requests.KIND, **item},
                )
                for item in page["items"]
            ]
            after = str(page["metadata"].get("continue") or "")
            if not after:
                return found

    @property
    def name(self) -> str:
        return self._manifest["metadata"]["name"]

    @property
    def namespace(self) -> str:
        return self._manifest["metadata"]["namespace"]

    @property
    def uid(self) -> str | None:
        """None for a handle that was not looked at yet."""
        return self._manifest["metadata"].get("uid")

    @property
    def phase(self) -> str:
        return observe(self._manifest).phase

    @property
    def ready(self) -> bool:
        return observe(self._manifest).ready

    def to_dict(self) -> Json:
        """The whole object as the cluster gave it."""
        return self._manifest

    def refresh(self) -> Sandbox:
        self._manifest = self._client.send(_requests.get(namespace=self.namespace, name=self.name))
        return self

    def wait_ready(
        self, *, timeout: float = 120.0, on_change: Callable[[Sandbox], object] | None = None
    ) -> Sandbox:
        """Waits until it can run commands. `on_change` is called for each change of phase, reason
        or message.

        A failure (an image that is missing, say) is a change like others: somebody may repair it
        while this waits.
        """
        if self.uid is None:
            self.refresh()

        def note(state: Json) -> None:
            self._manifest = state
            if on_change is not None:
                on_change(self)

        self._manifest = _following.wait_ready(
            self._client, sandbox=self._manifest, timeout=timeout, on_change=note
        )
        return self

    def delete(self, *, wait: bool = False, timeout: float = 120.0) -> None:
        """Deletes it, and never one of the same name that somebody made since. `wait`: until it is gone."""
        if wait and self.uid is None:
            self.refresh()
        self._client.send(_requests.delete(namespace=self.namespace, name=self.name, uid=self.uid))
        if wait:
            self.wait_deleted(timeout=timeout)

    def wait_deleted(self, *, timeout: float = 120.0) -> None:
        """Waits until the one that was seen last is gone."""
        if self.uid is None:
            self.refresh()
        _following.wait_gone(self._client, sandbox=self._manifest, timeout=timeout)

    def exec(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float | None = None,
        stdin: str | bytes | None = None,
        check: bool = False,
        on_stdout: Callable[[str], object] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        max_output_bytes: int = _KEPT_BYTES,
        start_timeout: float = 120.0,
    ) -> ExecResult:
        """Runs one command to its end. A text is a line for the shell; a sequence is a program and
        its arguments.

        `on_stdout` and `on_stderr` get the output as it comes. Of each stream `max_output_bytes`
        are kept for the result. A timeout (seconds) ends the command with exit code 124.
        `check=True` raises CommandFailed for any exit code but 0. A sandbox that is still starting
        is waited for, for `start_timeout` seconds.
        """
        begun = time.monotonic()
        kept = {name: Keeper(limit=max_output_bytes) for name in ("stdout", "stderr")}
        tellers = {"stdout": _teller(on_stdout), "stderr": _teller(on_stderr)}
        with self.exec_stream(
            command, env=env, cwd=cwd, timeout=timeout, stdin=stdin, start_timeout=start_timeout
        ) as run:
            for output in run:
                kept[output.stream].add(output.data)
                tellers[output.stream](output.data, False)
        for tell in tellers.values():
            tell(b"", True)
        assert run.exit_code is not None  # a stream that ends without one has raised
        result = ExecResult(
            exit_code=run.exit_code,
            out=kept["stdout"].captured(),
            err=kept["stderr"].captured(),
            duration=time.monotonic() - begun,
        )
        if check and not result.ok:
            said = result.stderr.strip().rsplit("\n", 1)[-1][:200]
            raise CommandFailed(
                f"The command ended with exit code {result.exit_code}" + (f": {said}" if said else "."),
                result=result,
            )
        return result

    def exec_stream(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float | None = None,
        stdin: str | bytes | None = None,
        start_timeout: float = 120.0,
        on_wait: Callable[[str], object] | None = None,
    ) -> ExecStream:
        """Starts one command; the answer is iterated for its output, byte for byte. Leaving it ends
        the command.

        `on_wait` is told, in words, what a sandbox that is still starting is waiting for.
        """
        data = stdin.encode() if isinstance(stdin, str) else stdin
        body = _command.body(command=command, env=env, cwd=cwd, timeout=timeout, stdin=data)
        return _stream.start(
            self._client,
            namespace=self.namespace,
            name=self.name,
            body=body,
            start_timeout=start_timeout,
            on_wait=on_wait,
        )

    def __repr__(self) -> str:
        return f"Sandbox(name={self.name!r}, namespace={self.namespace!r}, phase={self.phase!r})"


def _teller(callback: Callable[[str], object] | None) -> Callable[[bytes, bool], None]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def tell(data: bytes, last: bool) -> None:
        text = decoder.decode(data, last)
        if callback is not None and text:
            callback(text)

    return tell
