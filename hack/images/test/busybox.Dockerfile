# As little as an image can hold: one static program and its names. No libc, no Python, no users, no /tmp.
ARG BASE_IMAGE
FROM ${BASE_IMAGE} AS build
RUN --mount=type=secret,id=ca --mount=type=bind,source=hack/images/apt-install,target=/apt-install \
    /apt-install busybox-static \
 && mkdir -p /out/bin && cp /bin/busybox /out/bin/ \
 && for name in $(busybox --list); do [ "$name" = busybox ] || ln -s busybox "/out/bin/$name"; done
FROM scratch
COPY --from=build /out /
ENV PATH=/bin
CMD ["/bin/sh"]
