"""Where the API server is and who we are to it: the pod's service account or a kubeconfig, by the loaders of
kubernetes.aio.
"""

import os
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import ConfigException, incluster_config, kube_config

from .errors import NotConfigured

# The loaders have no types.
_in_cluster: Any = incluster_config
_kubeconfig: Any = kube_config

# The loaders trust the shape of what they read.
_UNUSABLE = (ConfigException, OSError, ValueError, TypeError, AttributeError, yaml.YAMLError)


async def find_configuration() -> Configuration:
    configuration = Configuration()
    try:
        if _in_a_pod():
            _in_cluster.load_incluster_config(configuration)
        else:
            await _load_kubeconfig(configuration)
    except _UNUSABLE as error:
        raise NotConfigured(f"the API server's address and credentials cannot be read: {error}") from error
    configuration.proxy = configuration.proxy or _proxy(configuration.host)
    return configuration


def _in_a_pod() -> bool:
    token = Path(_in_cluster.SERVICE_TOKEN_FILENAME)
    return _in_cluster.SERVICE_HOST_ENV_NAME in os.environ and token.exists()


async def _load_kubeconfig(configuration: Configuration) -> None:
    paths = _kubeconfig_paths()
    loader = await _kubeconfig.load_kube_config(
        paths, client_configuration=configuration, persist_config=False
    )
    # A plugin made the token and said for how long. One that does not say is not run for every request.
    if hasattr(loader, "exec_plugin_expiry"):

        async def refresh(target: Configuration) -> None:
            # Returns at once while the plugin's token is good.
            await loader.load_from_exec_plugin()
            target.api_key["BearerToken"] = loader.token

        # The attribute is typed as None; kubernetes.aio awaits whatever coroutine a hook returns.
        cast("Any", configuration).refresh_api_key_hook = refresh


def _kubeconfig_paths() -> str:
    paths = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    if not any(Path(path).expanduser().exists() for path in paths.split(os.pathsep) if path):
        raise NotConfigured(f"not in a pod, and there is no kubeconfig at {paths}: set KUBECONFIG")
    return paths


def _proxy(host: str) -> str | None:
    url = urlsplit(host)
    if proxy_bypass(url.hostname or ""):
        return None
    return getproxies().get(url.scheme)
