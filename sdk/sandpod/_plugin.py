"""Runs a kubeconfig's credential plugin (client.authentication.k8s.io) and reads what it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sandpod._target import Plugin, Target
from sandpod.errors import CredentialError

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Credential:
    token: str = ""
    certificate: str = ""
    key: str = ""
    # Seconds since the epoch; None: as long as the cluster accepts it.
    expires_at: float | None = None


def run(
    target: Target, plugin: Plugin, *, may_read_stdin: bool, environ: Mapping[str, str] = os.environ
) -> Credential:
    """Starts the plugin and waits for it. Its standard error is ours: that is where it talks to the user."""
    interactive = (
        plugin.interactive_mode != "Never" and may_read_stdin and sys.stdin is not None and sys.stdin.isatty()
    )
    if plugin.interactive_mode == "Always" and not interactive:
        raise CredentialError(
            f"The credential plugin {plugin.command!r} has questions, and standard input is not a terminal."
        )
    info = json.dumps(request(target, plugin, interactive=interactive))
    try:
        done = subprocess.run(
            [plugin.command, *plugin.args],
            env={**environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": info},
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
    except FileNotFoundError as error:
        raise CredentialError(
            f"The credential plugin {plugin.command!r} of context {target.context!r} is not installed.",
            hint=plugin.install_hint,
        ) from error
    except OSError as error:
        raise CredentialError(
            f"The credential plugin {plugin.command!r} does not start: {error.strerror}."
        ) from error
    if done.returncode != 0:
        raise CredentialError(
            f"The credential plugin {plugin.command!r} of context {target.context!r} ended with exit code "
            f"{done.returncode}.",
            hint="Its own words are above; most often it is time to log in again.",
        )
    return parse(done.stdout, plugin=plugin)


def request(target: Target, plugin: Plugin, *, interactive: bool) -> Json:
    """What the plugin finds in KUBERNETES_EXEC_INFO."""
    spec: Json = {"interactive": interactive}
    if plugin.provide_cluster_info:
        cluster: Json = {
            "server": target.server,
            "tls-server-name": target.tls_server_name,
            "insecure-skip-tls-verify": target.insecure,
            "certificate-authority-data": _authority(target),
            "proxy-url": target.proxy_url,
            "config": target.cluster_extension,
        }
        spec["cluster"] = {key: value for key, value in cluster.items() if value}
    return {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}


def _authority(target: Target) -> str:
    from base64 import b64encode
    from pathlib import Path

    if target.ca_data:
        return b64encode(target.ca_data.encode()).decode()
    return b64encode(Path(target.ca_file).read_bytes()).decode() if target.ca_file else ""


def parse(output: bytes, *, plugin: Plugin) -> Credential:
    wrong = f"The credential plugin {plugin.command!r} printed something that is not a credential"
    try:
        document: object = json.loads(output)
    except ValueError as error:
        raise CredentialError(f"{wrong}.") from error
    answer = cast("Json", document) if isinstance(document, dict) else {}
    if answer.get("kind") != "ExecCredential":
        raise CredentialError(f"{wrong}.")
    if answer.get("apiVersion") != plugin.api_version:
        raise CredentialError(
            f"{wrong} of version {plugin.api_version}: it speaks {answer.get('apiVersion')}."
        )
    status: object = answer.get("status")
    fields = cast("Json", status) if isinstance(status, dict) else {}
    token = str(fields.get("token") or "").strip()
    certificate, key = str(fields.get("clientCertificateData") or ""), str(fields.get("clientKeyData") or "")
    if bool(certificate) != bool(key) or not (token or certificate):
        raise CredentialError(f"{wrong}: it has neither a token nor a certificate with its key.")
    return Credential(token=token, certificate=certificate, key=key, expires_at=_expiry(fields, wrong=wrong))


def _expiry(fields: Json, *, wrong: str) -> float | None:
    stamp = fields.get("expirationTimestamp")
    if not stamp:
        return None
    try:
        return datetime.fromisoformat(str(stamp)).timestamp()
    except ValueError as error:
        raise CredentialError(f"{wrong}: {stamp!r} is not a time.") from error
