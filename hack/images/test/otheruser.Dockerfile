# An image with a mind of its own: a user, an environment, a directory, a tool, and settings for the dynamic loader
# that would break a program which is not the image's.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN useradd --uid 2000 --create-home --shell /bin/bash other \
 && mkdir /tools && printf '#!/bin/sh\necho hello from a tool of the image\n' > /tools/greet && chmod 755 /tools/greet
ENV FLAVOUR=vanilla PATH=/tools:/bin LD_LIBRARY_PATH=/no/such/libraries
USER 2000
WORKDIR /srv/app
