"""Finds the kubeconfig files, reads and merges them by kubectl's rules, and says which `Target` they mean.

Nothing is sent and no credential is fetched here.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from sandpod._target import Target, in_cluster, resolve
from sandpod.errors import ConfigError

Json = dict[str, Any]

# Named list in the file -> the key under which an entry keeps its content.
_LISTS = {"clusters": "cluster", "contexts": "context", "users": "user"}
_PATHS = {"clusters": ("certificate-authority",), "users": ("client-certificate", "client-key", "tokenFile")}


def load(
    *,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    namespace: str | None = None,
    impersonate: str | None = None,
    impersonate_groups: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> Target:
    """The target that these choices and the environment lead to. Raises ConfigError."""
    paths = locations(kubeconfig=kubeconfig, environ=environ)
    # A file that was named on purpose must be there; of those in a list, kubectl takes the ones that are.
    config = merge([read(path) for path in paths if kubeconfig is not None or path.exists()])
    if not any(config[name] for name in _LISTS):
        target = in_cluster(environ=environ)
        if target is None:
            raise ConfigError(
                f"There is no kubeconfig at {' or '.join(str(path) for path in paths)}.",
                hint="Name one with --kubeconfig or in KUBECONFIG.",
            )
    else:
        target = resolved(config, context=context)
    headers = (("Impersonate-User", impersonate),) if impersonate else ()
    groups = tuple(("Impersonate-Group", group) for group in impersonate_groups)
    if groups and not (headers or target.impersonate):
        raise ConfigError("A group alone cannot be impersonated.", hint="Say which user, too.")
    return dataclasses.replace(
        target, namespace=namespace or target.namespace, impersonate=(headers or target.impersonate) + groups
    )


def resolved(config: Json, *, context: str | None) -> Target:
    try:
        return resolve(config, context=context)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        # A list where a map belongs, and so on: the file is the user's, so it is an answer and not a crash.
        raise ConfigError(f"The kubeconfig's entry for this context is malformed ({error}).") from error


def locations(*, kubeconfig: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> list[Path]:
    if kubeconfig is not None:
        return [Path(kubeconfig).expanduser()]
    if listed := [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]:
        return list(dict.fromkeys(listed))
    return [Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"]


def read(path: Path) -> Json:
    """One file, with its relative paths made absolute: they are meant from the file's own folder."""
    import yaml  # here, because nothing that stops before it should pay for it

    try:
        # Safe as well, and ten times as quick where libyaml is.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        loaded: object = yaml.load(path.read_bytes(), loader)  # noqa: S506 - both are safe loaders
    except OSError as error:
        raise ConfigError(f"The kubeconfig {path} cannot be read: {error.strerror}.") from error
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" (line {where.line + 1})" if where else ""
        raise ConfigError(f"The kubeconfig {path} is not YAML{line}.") from error
    config = _normal(loaded, path=path)
    folder = path.absolute().parent
    for section, keys in _PATHS.items():
        for entry in config[section].values():
            for key in keys:
                if entry.get(key):
                    entry[key] = str(folder / str(entry[key]))
    for user in config["users"].values():
        plugin = user.get("exec")
        if isinstance(plugin, dict) and os.sep in str(cast("Json", plugin).get("command", "")):
            plugin["command"] = str(folder / str(cast("Json", plugin)["command"]))
    return config


def _normal(loaded: object, *, path: Path) -> Json:
    """Lists of named entries become maps by name."""
    wrong = ConfigError(f"The file {path} is not a kubeconfig.")
    if loaded is None:
        loaded = {}
    if not isinstance(loaded, dict):
        raise wrong
    document = cast("Json", loaded)
    config: Json = {"current-context": document.get("current-context") or ""}
    for section, inner in _LISTS.items():
        named: dict[str, Json] = {}
        entries: object = document.get(section) or []
        if not isinstance(entries, list):
            raise wrong
        for entry in cast("list[object]", entries):
            if not isinstance(entry, dict):
                raise wrong
            fields = cast("Json", entry)
            content: object = fields.get(inner) or {}
            if not isinstance(content, dict):
                raise wrong
            name = str(fields.get("name", ""))
            if name in named:
                raise ConfigError(f"The kubeconfig {path} has two {section} named {name!r}.")
            named[name] = cast("Json", content)
        config[section] = named
    return config


def merge(configs: Iterable[Json]) -> Json:
    """Of each name, the first file's entry counts, whole; and so does the first file's current context."""
    merged: Json = {"current-context": "", **{section: {} for section in _LISTS}}
    for config in configs:
        merged["current-context"] = merged["current-context"] or config["current-context"]
        for section in _LISTS:
            merged[section] = {**config[section], **merged[section]}
    return merged
