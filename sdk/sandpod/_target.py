"""Which cluster to talk to and as whom: the entry of one context, or what a pod's service account gives."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandpod.errors import ConfigError

Json = dict[str, Any]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A program that prints a credential (`users[].user.exec`)."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False
    install_hint: str = ""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One cluster, one namespace, one identity."""

    server: str
    namespace: str = "default"
    context: str = ""
    ca_data: str = ""
    ca_file: str = ""
    insecure: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    cluster_extension: Any = None
    certificate_data: str = ""
    certificate_file: str = ""
    key_data: str = ""
    key_file: str = ""
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    plugin: Plugin | None = None
    impersonate: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """What to call it in a message."""
        return f"{self.server} (context {self.context})" if self.context else self.server


def resolve(config: Json, *, context: str | None = None) -> Target:
    chosen = context or str(config["current-context"])
    known = ", ".join(sorted(config["contexts"])) or "none"
    if not chosen:
        raise ConfigError(
            "The kubeconfig has no current context.",
            hint=f"Choose one with --context or `kubectl config use-context`; there are: {known}.",
        )
    if chosen not in config["contexts"]:
        raise ConfigError(f"The kubeconfig has no context {chosen!r}.", hint=f"There are: {known}.")
    named: Json = config["contexts"][chosen]
    return _target(
        context=chosen,
        namespace=str(named.get("namespace") or "default"),
        cluster=_entry(config, section="clusters", name=str(named.get("cluster") or ""), context=chosen),
        user=_entry(config, section="users", name=str(named.get("user") or ""), context=chosen),
    )


def _entry(config: Json, *, section: str, name: str, context: str) -> Json:
    if not name and section == "users":
        return {}
    if name not in config[section]:
        raise ConfigError(
            f"The context {context!r} names {name!r}, which is not among the kubeconfig's {section}."
        )
    return config[section][name]


def _target(*, context: str, namespace: str, cluster: Json, user: Json) -> Target:
    server = str(cluster.get("server") or "")
    if not server:
        raise ConfigError(f"The cluster of context {context!r} has no server address.")
    secured = any(cluster.get(key) for key in ("certificate-authority", "certificate-authority-data"))
    insecure = bool(cluster.get("insecure-skip-tls-verify"))
    if secured and insecure:
        raise ConfigError(
            f"The cluster of context {context!r} has a certificate authority and insecure-skip-tls-verify.",
            hint="Remove one of them.",
        )
    if "://" not in server:
        server = ("https://" if secured or insecure else "http://") + server
    if user.get("auth-provider"):
        raise ConfigError(
            f"The user of context {context!r} has an auth-provider, which Kubernetes no longer supports.",
            hint="Let your provider's tool write the kubeconfig anew, with an exec plugin.",
        )
    extensions: list[Json] = cluster.get("extensions") or []
    return Target(
        server=server.rstrip("/"),
        context=context,
        namespace=namespace,
        ca_data=_decoded(cluster, "certificate-authority-data"),
        ca_file=str(cluster.get("certificate-authority") or ""),
        insecure=insecure,
        tls_server_name=str(cluster.get("tls-server-name") or ""),
        proxy_url=str(cluster.get("proxy-url") or ""),
        cluster_extension=next(
            (e.get("extension") for e in extensions if e.get("name") == "client.authentication.k8s.io/exec"),
            None,
        ),
        certificate_data=_decoded(user, "client-certificate-data"),
        certificate_file=str(user.get("client-certificate") or ""),
        key_data=_decoded(user, "client-key-data"),
        key_file=str(user.get("client-key") or ""),
        token=str(user.get("token") or ""),
        token_file=str(user.get("tokenFile") or ""),
        username=str(user.get("username") or ""),
        password=str(user.get("password") or ""),
        plugin=_plugin(user["exec"], context=context) if user.get("exec") else None,
        impersonate=tuple(_impersonation(user)),
    )


def _decoded(entry: Json, key: str) -> str:
    try:
        return base64.b64decode(str(entry.get(key) or ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ConfigError(f"The kubeconfig's {key} is not base64 of a PEM text.") from error


def _plugin(entry: Json, *, context: str) -> Plugin:
    version, command = str(entry.get("apiVersion") or ""), str(entry.get("command") or "")
    if version not in ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"):
        raise ConfigError(
            f"The credential plugin of context {context!r} speaks {version or 'no version'}.",
            hint="Versions v1 and v1beta1 of client.authentication.k8s.io are supported.",
        )
    if not command:
        raise ConfigError(f"The credential plugin of context {context!r} names no command.")
    return Plugin(
        api_version=version,
        command=command,
        args=tuple(str(arg) for arg in entry.get("args") or ()),
        env=tuple((str(e["name"]), str(e.get("value") or "")) for e in entry.get("env") or ()),
        interactive_mode=str(entry.get("interactiveMode") or "IfAvailable"),
        provide_cluster_info=bool(entry.get("provideClusterInfo")),
        install_hint=" ".join(str(entry.get("installHint") or "").split()),
    )


def _impersonation(user: Json) -> Iterable[tuple[str, str]]:
    if user.get("as"):
        yield "Impersonate-User", str(user["as"])
    if user.get("as-uid"):
        yield "Impersonate-Uid", str(user["as-uid"])
    for group in user.get("as-groups") or ():
        yield "Impersonate-Group", str(group)
    extra: Json = user.get("as-user-extra") or {}
    for key, values in extra.items():
        for value in values:
            yield f"Impersonate-Extra-{key}", str(value)


def in_cluster(*, environ: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Target | None:
    """What a pod's service account gives, if this is a pod that has one."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (folder / "token").exists():
        return None
    namespace = folder / "namespace"
    return Target(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=(namespace.read_text().strip() if namespace.exists() else "") or "default",
        ca_file=str(folder / "ca.crt"),
        token_file=str(folder / "token"),
    )
