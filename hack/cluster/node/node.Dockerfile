# A kind node made of Debian's packages, programs built from Go modules, and the files that come with kind itself.
FROM scratch AS root
ADD rootfs.tar /
COPY --chmod=0755 files/usr/local/bin/ /usr/local/bin/
COPY --chmod=0644 files/kind/ /kind/
COPY --chmod=0755 files/kind/bin/ /kind/bin/
COPY --chmod=0644 files/etc/crictl.yaml /etc/crictl.yaml
COPY --chmod=0644 files/etc/containerd/ /etc/containerd/
COPY --chmod=0644 files/etc/default/ /etc/default/
COPY --chmod=0644 files/etc/sysctl.d/ /etc/sysctl.d/
COPY --chmod=0644 files/etc/systemd/ /etc/systemd/
COPY --chmod=0755 bin/ /usr/local/bin/
COPY --chmod=0755 kube/ /usr/bin/
COPY --chmod=0755 cni/ /opt/cni/bin/
# A container has no devices to wait for and no file systems to mount: units that try would fail the boot.
RUN find /lib/systemd/system/sysinit.target.wants/ -name systemd-tmpfiles-setup.service -delete \
 && rm -f /lib/systemd/system/multi-user.target.wants/* /etc/systemd/system/*.wants/* \
    /lib/systemd/system/local-fs.target.wants/* /lib/systemd/system/sockets.target.wants/*udev* \
    /lib/systemd/system/sockets.target.wants/*initctl* /lib/systemd/system/basic.target.wants/* \
 && echo ReadKMsg=no >> /etc/systemd/journald.conf \
 && ln -sf /lib/systemd/systemd /sbin/init \
 && chmod 755 /kind /kind/bin /etc/containerd /etc/default /etc/sysctl.d \
    /etc/systemd /etc/systemd/system /etc/systemd/system/kubelet.service.d \
 && mkdir -p /etc/kubernetes/manifests /etc/cni/net.d /kind/manifests \
 && systemctl enable kubelet.service containerd.service undo-mount-hacks.service \
 && systemctl mask systemd-binfmt.service
# As for the control plane (kind-config.sh).
RUN printf '[Service]\nEnvironment=GOGC=400\n' > /etc/systemd/system/kubelet.service.d/20-memory-for-time.conf
# Where CAP_SYS_RESOURCE is missing no process may lower its OOM score, and pods would not start.
RUN sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' /etc/containerd/config.toml \
 && ctr oci spec | jq '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \
    > /etc/containerd/cri-base.json
ARG KUBE_VERSION
RUN echo "$KUBE_VERSION" > /kind/version
FROM scratch
COPY --from=root / /
ENV container=docker
STOPSIGNAL SIGRTMIN+3
ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]
