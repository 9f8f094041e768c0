"""The SDK's main object: one sandbox, seen through the Kubernetes API."""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sandpod import _client, _command, _following, _lifecycle, _manifest, _requests, _running, _stream
from sandpod._client import Client
from sandpod._exposing import Exposing
from sandpod._observation import observe
from sandpod._results import ExecResult
from sandpod._stream import ExecStream
from sandpod.errors import NotReady

Json = dict[str, Any]
OnChange = Callable[["Sandbox"], object] | None

_KEPT_BYTES = 64 << 20


class Sandbox(Exposing):
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
        template: str | None = None,
        pool: str | None = None,
        workspace: str | None = None,
        storage_class: str | None = None,
        setup: Sequence[str] = (),
        processes: Mapping[str, str] | None = None,
        egress: str | None = None,
        manifest: Json | None = None,
        namespace: str | None = None,
        wait: bool = True,
        timeout: float = 120.0,
        on_change: OnChange = None,
        client: Client | None = None,
    ) -> Sandbox:
        """Makes one, and returns when it can run commands (`wait=False`: as soon as the cluster knows of it).

        `workspace` is a size, such as `10Gi`; `processes` are commands by their names. `manifest` is a
        Sandbox as in YAML, for all that has no argument here; arguments win over it.
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
            template=template,
            pool=pool,
            workspace=workspace,
            storage_class=storage_class,
            setup=setup,
            processes=processes,
            egress=egress,
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

    def wait_ready(self, *, timeout: float = 120.0, on_change: OnChange = None) -> Sandbox:
        """Waits until it can run commands. `on_change` is called for each change of phase, reason
        or message.

        A failure (an image that is missing, say) is a change like others: somebody may repair it
        while this waits.
        """
        if self.uid is None:
            self.refresh()
        return self._until(lambda state: observe(state).ready, "Ready", timeout, on_change)

    def pause(self, *, wait: bool = True, timeout: float = 120.0, on_change: OnChange = None) -> Sandbox:
        """Puts it to sleep, and keeps it asleep until `resume`: requests do not wake it."""
        self._patch(_lifecycle.pausing(paused=True))
        return self._until(_lifecycle.is_asleep, "asleep", timeout, on_change) if wait else self

    def resume(self, *, wait: bool = True, timeout: float = 120.0, on_change: OnChange = None) -> Sandbox:
        """Ends what `pause` began, and starts it."""
        self._patch(_lifecycle.pausing(paused=False))
        return self._until(_lifecycle.is_resumed, "Ready", timeout, on_change) if wait else self

    def wake(self, *, wait: bool = True, timeout: float = 120.0, on_change: OnChange = None) -> Sandbox:
        """Wakes it, or keeps it awake if it is just falling asleep. One that is paused stays so: NotReady."""
        value = _lifecycle.fresh_value()
        self._patch(_lifecycle.waking(value))
        if _lifecycle.is_paused(self._manifest):
            raise NotReady(f"The sandbox {self.name} is paused, and sleeps until it is resumed.")
        awake = partial(_lifecycle.is_awake, request=value)
        return self._until(awake, "Ready", timeout, on_change) if wait else self

    def setup_log(self, *, follow: bool = False, start_timeout: float = 120.0) -> Iterator[bytes]:
        """What the commands of `setup` have written; with `follow`, also what they write until they end. A
        sandbox that is still starting is waited for then, for `start_timeout` seconds.
        """
        request = _requests.setup_log(namespace=self.namespace, name=self.name, follow=follow)
        deadline = time.monotonic() + (start_timeout if follow else 0.0)
        while True:
            try:
                return self._client.pieces(self._client.open(request), request=request)
            except NotReady as refusal:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise
                if self.uid is None:
                    self.refresh()
                self._until(_lifecycle.is_set_up_or_about_to, "set up", left, None)
                # The gateway hears of it a moment later.
                time.sleep(min(refusal.retry_after, left))

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
        run = self.exec_stream(
            command, env=env, cwd=cwd, timeout=timeout, stdin=stdin, start_timeout=start_timeout
        )
        return _running.to_the_end(
            run,
            begun=begun,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
            max_output_bytes=max_output_bytes,
            check=check,
        )

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

    def _patch(self, changes: Json) -> None:
        request = _requests.patch(namespace=self.namespace, name=self.name, changes=changes)
        self._manifest = self._client.send(request)

    def _until(
        self, done: Callable[[Json], bool], wanted: str, timeout: float, on_change: OnChange
    ) -> Sandbox:
        self._manifest = _following.wait_until(
            self._client,
            sandbox=self._manifest,
            done=done,
            wanted=wanted,
            timeout=timeout,
            on_change=self._note(on_change),
        )
        return self

    def _note(self, on_change: OnChange) -> Callable[[Json], None]:
        def note(state: Json) -> None:
            self._manifest = state
            if on_change is not None:
                on_change(self)

        return note

    def __repr__(self) -> str:
        return f"Sandbox(name={self.name!r}, namespace={self.namespace!r}, phase={self.phase!r})"
