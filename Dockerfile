# All images of Sandpod: operator, gateway, runtime (the directory that goes into every sandbox) and sandbox (the default
# image). `make images` builds them, on a base of its own making where no registry answers.
#
# No step knows the network it is built in. What it may need comes as build secrets, which leave nothing in an image:
# `ca` (certificates to trust) and `pip` (a pip.conf that names an index).
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${BASE_IMAGE} AS python
RUN --mount=type=secret,id=ca --mount=type=bind,source=hack/images/apt-install,target=/apt-install \
    /apt-install python3 \
    # Valid whatever the files' times are: with stale ones an import takes five times as long, on every start.
 && python3 -m compileall -q -f --invalidation-mode unchecked-hash /usr/lib/python3*/ \
 && groupadd --gid 65532 sandpod \
 && useradd --uid 65532 --gid 65532 --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin sandpod

FROM python AS build
RUN --mount=type=secret,id=ca --mount=type=bind,source=hack/images/apt-install,target=/apt-install \
    /apt-install python3-pip ca-certificates gcc libc6-dev
COPY hack/images/pip-install /
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt

FROM build AS operator-dependencies
COPY requirements/operator.lock /
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt --mount=type=secret,id=pip,target=/etc/pip.conf \
    /pip-install /operator.lock /app \
 && python3 -m compileall -q --invalidation-mode unchecked-hash /app

FROM build AS operator-code
COPY crds/sandpod_crds /app/sandpod_crds
COPY operator/sandpod_operator /app/sandpod_operator
RUN python3 -m compileall -q -f --invalidation-mode unchecked-hash /app

FROM python AS operator
COPY --from=operator-dependencies /app /app
COPY --from=operator-code /app /app
ENV PYTHONPATH=/app PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
LABEL org.opencontainers.image.title="Sandpod operator" org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532
ENTRYPOINT ["python3", "-m", "sandpod_operator"]

FROM build AS gateway-dependencies
COPY requirements/gateway.lock /
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt --mount=type=secret,id=pip,target=/etc/pip.conf \
    /pip-install /gateway.lock /app \
 && python3 -m compileall -q --invalidation-mode unchecked-hash /app

FROM build AS gateway-code
COPY crds/sandpod_crds /app/sandpod_crds
COPY gateway/sandpod_gateway /app/sandpod_gateway
RUN python3 -m compileall -q -f --invalidation-mode unchecked-hash /app

FROM python AS gateway
RUN --mount=type=secret,id=ca --mount=type=bind,source=hack/images/apt-install,target=/apt-install \
    /apt-install haproxy
COPY gateway/haproxy /haproxy
COPY --from=gateway-dependencies /app /app
COPY --from=gateway-code /app /app
ENV PYTHONPATH=/app PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
LABEL org.opencontainers.image.title="Sandpod gateway" org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532
ENTRYPOINT ["python3", "-m", "sandpod_gateway"]

FROM build AS runtime-directory
COPY requirements/runtime.lock /
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt --mount=type=secret,id=pip,target=/etc/pip.conf \
    /pip-install /runtime.lock /site
COPY runtime /runtime
RUN loader=$(python3 /runtime/launcher/assemble.py /site /runtime/sandpod_runtime /out/opt/sandpod) \
 && gcc -static -Os -s -Wall -Wextra -Werror -DLOADER="\"$loader\"" /runtime/launcher/launcher.c \
    -o /out/opt/sandpod/bin/sandpod-runtime

FROM scratch AS runtime
COPY --from=runtime-directory /out /
LABEL org.opencontainers.image.title="Sandpod runtime" org.opencontainers.image.licenses="Apache-2.0"
ENTRYPOINT ["/opt/sandpod/bin/sandpod-runtime"]

FROM ${BASE_IMAGE} AS sandbox
RUN --mount=type=secret,id=ca --mount=type=bind,source=hack/images/apt-install,target=/apt-install \
    /apt-install bash bash-completion build-essential ca-certificates coreutils curl file git iproute2 jq less nodejs npm \
    openssh-client procps python-is-python3 python3 python3-pip python3-venv ripgrep unzip vim-tiny xz-utils zip \
 && ln -s vim.tiny /usr/bin/vim
COPY hack/images/sandbox/ /
# Who works in a sandbox may be any user that its owner names: the workspace is everybody's, like /tmp.
RUN groupadd --gid 1000 sandbox && useradd --uid 1000 --gid 1000 --create-home --shell /bin/bash sandbox \
 && install -d -o 1000 -g 1000 -m 1777 /workspace /var/backups
COPY --from=runtime /opt/sandpod /opt/sandpod
ENV LANG=C.UTF-8 PATH=/home/sandbox/.local/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin
LABEL org.opencontainers.image.title="Sandpod sandbox" org.opencontainers.image.licenses="Apache-2.0"
USER 1000:1000
WORKDIR /workspace
ENTRYPOINT ["/opt/sandpod/bin/sandpod-runtime"]
