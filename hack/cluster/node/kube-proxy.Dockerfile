# kube-proxy in mode nftables runs nft: taken from the node's root, with the libraries it needs and nothing else.
ARG NODE_BASE
FROM $NODE_BASE AS tools
# Without the names in /etc/protocols nft lists its own rules as "6", kube-proxy takes them for others than its "tcp", and
# removes them all an hour after its start, or when it is started again.
RUN mkdir -p /out/usr/sbin /out/tmp /out/etc \
 && cp /etc/protocols /etc/services /out/etc/ \
 && cp /usr/sbin/nft /usr/sbin/conntrack /out/usr/sbin/ \
 && for b in nft conntrack; do ldd /usr/sbin/$b | grep -o '/[^ ]*\.so[^ ]*'; done | sort -u \
    | while read -r lib; do mkdir -p "/out$(dirname "$lib")"; cp -L "$lib" "/out$lib"; done
FROM scratch
COPY --from=tools /out /
COPY kube-proxy /usr/local/bin/kube-proxy
ENV PATH=/usr/local/bin:/usr/sbin
ENTRYPOINT ["/usr/local/bin/kube-proxy"]
