"""The gateway's certificate towards the API server: made when there is none, replaced in time, and its CA
written into the APIService.
"""

import asyncio
import base64
import binascii
import json
import logging
import os
import sys
from collections.abc import Callable
from datetime import datetime, timedelta

from sandpod_crds import paths
from sandpod_crds.errors import ApiError, Conflict, NotFound

from .bootstrap import secret_object
from .cluster import Cluster
from .errors import CertificateFailed
from .metrics import Metrics
from .objects import Json, section
from .settings import Settings
from .times import parse_time

ENTRIES = ("tls.crt", "tls.key", "ca.crt")
# A deleted Secret, or a CA lost when somebody applies the APIService again, is mended this soon.
LONGEST_PAUSE = timedelta(minutes=1)
FIRST_RETRY, LONGEST_RETRY = 1.0, 300.0

log = logging.getLogger(__name__)


class Certificates:
    def __init__(
        self, *, cluster: Cluster, settings: Settings, metrics: Metrics, now: Callable[[], datetime]
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._metrics = metrics
        self._now = now
        # What was found good, and until when: for that no process has to be started.
        self._good: tuple[dict[str, str], datetime] | None = None

    async def run(self) -> None:
        pause = retry = FIRST_RETRY
        while True:
            try:
                renew_at = await self.ensure()
            except (ApiError, CertificateFailed) as error:
                self._metrics.errors.add(part="certificates", reason=type(error).__name__)
                log.warning("the gateway's certificate: %s", error)
                pause, retry = retry, min(retry * 2, LONGEST_RETRY)
            else:
                due = min(renew_at - self._now(), LONGEST_PAUSE)
                pause, retry = max(due.total_seconds(), 1.0), FIRST_RETRY
            await asyncio.sleep(pause)

    async def ensure(self) -> datetime:
        """Brings Secret and APIService to where they should be; returns when the certificate is to be
        replaced.
        """
        secret = await self._read_secret()
        current = _entries(secret)
        wanted, renew_at = await self._wanted(current)
        if current["ca.crt"]:
            # Before a certificate of another CA is shown, that CA has to be trusted.
            await self._trust(wanted["ca.crt"])
        if wanted != current:
            await self._write_secret(secret, wanted)
        if not current["ca.crt"]:
            await self._trust(wanted["ca.crt"])
        self._good = wanted, renew_at
        return renew_at

    async def _wanted(self, current: dict[str, str]) -> tuple[dict[str, str], datetime]:
        if self._good is not None and self._good[0] == current and self._now() < self._good[1]:
            return self._good
        answer, renew_at = await _x509({"dnsNames": self._dns_names(), "current": current})
        return {name: str(answer.get(name) or current[name]) for name in ENTRIES}, renew_at

    async def _read_secret(self) -> Json | None:
        namespace, name = self._settings.system_namespace, self._settings.tls_secret
        try:
            return await self._cluster.get(paths.secrets(namespace, name))
        except NotFound:
            return None

    async def _write_secret(self, old: Json | None, wanted: dict[str, str]) -> None:
        namespace, name = self._settings.system_namespace, self._settings.tls_secret
        data = {entry: value.encode() for entry, value in wanted.items()}
        secret = secret_object(namespace, name, kind="kubernetes.io/tls", data=data)
        if old is None:
            try:
                await self._cluster.create(paths.secrets(namespace), secret)
            except Conflict as error:
                # Made at this moment by somebody else; theirs is looked at in the next round.
                raise CertificateFailed(str(error)) from error
        else:
            await self._cluster.patch(paths.secrets(namespace, name), {"data": secret["data"]})
        log.info("wrote the gateway's certificate: Secret %s/%s", namespace, name)

    async def _trust(self, ca: str) -> None:
        path = paths.api_services(self._settings.api_service)
        bundle = base64.b64encode(ca.encode()).decode()
        service = await self._cluster.get(path)
        if section(service, "spec").get("caBundle") != bundle:
            await self._cluster.patch(path, {"spec": {"caBundle": bundle}})
            log.info("told the API server the CA of the gateway: APIService %s", self._settings.api_service)

    def _dns_names(self) -> list[str]:
        host = f"{self._settings.gateway_service}.{self._settings.system_namespace}.svc"
        return [host, f"{host}.cluster.local"]


def _entries(secret: Json | None) -> dict[str, str]:
    data = section(secret, "data") if secret is not None else {}
    found: dict[str, str] = {}
    for name in ENTRIES:
        try:
            found[name] = base64.b64decode(data.get(name, "")).decode()
        except (binascii.Error, UnicodeDecodeError):
            found[name] = ""
    return found


async def _x509(request: Json) -> tuple[Json, datetime]:
    """See x509.py; its answer, and when to replace the certificate."""
    try:
        answer = json.loads(await _run(request))
        return answer, parse_time(str(answer["renewAt"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        # Also a timeout, or no memory for a process. The next round may do better; the sandboxes do not wait.
        raise CertificateFailed(f"the program for certificates failed: {error!r}") from error


async def _run(request: Json) -> bytes:
    """The private keys go through pipes only."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "sandpod_operator.x509",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # The operator's environment is none of its business.
        env={name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ},
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(json.dumps(request).encode()), timeout=60)
    except (TimeoutError, asyncio.CancelledError):
        process.kill()
        raise
    if process.returncode != 0:
        last = err.decode(errors="replace").strip().splitlines()[-1:]
        raise CertificateFailed(f"the program for certificates failed: {' '.join(last)}")
    return out
