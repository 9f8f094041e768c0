"""What door one is opened with: our certificate and the front proxy's CA, kept as the cluster has them. A new
one takes effect with the next connection; what can't be read or does not fit leaves the old one in place.
"""

import asyncio
import logging
import ssl
from typing import NoReturn, Self

from sandpod_crds.errors import ApiError

from .cluster import Cluster, KeyPair
from .errors import NotConfigured
from .frontproxy import Trust
from .tls import ServingTls

log = logging.getLogger(__name__)


class Credentials:
    def __init__(self, *, cluster: Cluster, pair: KeyPair, trust: Trust) -> None:
        self._cluster = cluster
        self._pair: KeyPair = pair
        self.trust: Trust = trust
        self.tls = ServingTls(certificate=pair.certificate, key=pair.key, client_ca=trust.ca)

    @classmethod
    async def load(cls, cluster: Cluster) -> Self:
        pair, trust = await asyncio.gather(cluster.key_pair(), cluster.trust())
        try:
            return cls(cluster=cluster, pair=pair, trust=trust)
        except (ssl.SSLError, ValueError) as error:
            raise NotConfigured(_misfit(error)) from error

    async def refresh_forever(self, *, interval: float) -> NoReturn:
        while True:
            await asyncio.sleep(interval)
            try:
                await self.refresh()
            except (ApiError, NotConfigured) as error:
                log.warning("certificate and CA stay as they are: %s", error)

    async def refresh(self) -> None:
        pair, trust = await asyncio.gather(self._cluster.key_pair(), self._cluster.trust())
        if pair == self._pair and trust == self.trust:
            return
        try:
            self.tls.replace(certificate=pair.certificate, key=pair.key, client_ca=trust.ca)
        except (ssl.SSLError, ValueError) as error:
            raise NotConfigured(_misfit(error)) from error
        self._pair, self.trust = pair, trust
        log.info("took over a new certificate or front-proxy CA")


def _misfit(error: Exception) -> str:
    # OpenSSL's words tell of PEM and keys, never of their contents.
    return f"the serving certificate, its key and the front proxy's CA cannot be used: {error}"
