# The image of all services and commands: `docker build -t noonmark:0.3.0 .`, then `docker run noonmark:0.3.0 --help`.
# docs/docker.md explains how to use, pin and verify it.

# The Python version of the tests. To pin the base image permanently, add its digest:
# --build-arg BASE=docker.io/library/python:3.11.15-slim-trixie@sha256:...
ARG BASE=docker.io/library/python:3.11.15-slim-trixie

FROM ${BASE} AS build

# Behind a package mirror or a proxy with its own certificate: pass --secret id=pip_conf,src=pip.conf and
# --secret id=ca_bundle,src=bundle.pem, and refer to /run/secrets/ca_bundle in pip.conf. The image keeps neither.
ENV PIP_CONFIG_FILE=/run/secrets/pip_conf \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_COMPILE=1 \
    PIP_ROOT_USER_ACTION=ignore

WORKDIR /build

COPY pyproject.toml constraints.txt ./

# The final image has no pip. The build tools are installed separately, also with fixed versions.
RUN --mount=type=secret,id=pip_conf --mount=type=secret,id=ca_bundle \
    python3 -m venv tools \
    && tools/bin/pip install --no-cache-dir --only-binary :all: -c constraints.txt \
        pip==26.3 hatchling==1.33.0 tomlkit==0.15.2 trove-classifiers==2026.9.21.13 \
    && python3 -m venv --without-pip /opt/noonmark

# Only the dependencies, at the tested versions, so that code changes do not invalidate this layer. Only wheels, so that
# no package runs code during installation. Faust has no wheel for arm64 and is built there, without its C extensions.
ARG TARGETARCH
RUN --mount=type=secret,id=pip_conf --mount=type=secret,id=ca_bundle \
    tools/bin/python -c 'import tomllib; \
project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
print(*project["dependencies"], *project["optional-dependencies"]["tracing"], sep="\n")' > requirements.txt \
    && if [ "${TARGETARCH}" = arm64 ]; then built=faust-streaming; else built=:none:; fi \
    && tools/bin/pip --python /opt/noonmark/bin/python install --no-cache-dir \
        --only-binary :all: --no-binary "${built}" -c constraints.txt -r requirements.txt

COPY README.md LICENSE ./
COPY services services
COPY shared shared
COPY schemas schemas
# Compiled without source timestamps: the same sources give the same files.
RUN tools/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir wheels . \
    && tools/bin/pip --python /opt/noonmark/bin/python install --no-cache-dir --no-deps --no-index wheels/*.whl \
    && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/noonmark/lib


FROM ${BASE}

# Official Python images contain no compiled modules, and the file system is read-only at run time. Without this step,
# each process, including the health check, would compile its imports.
RUN groupadd --gid 65532 noonmark \
    && useradd --uid 65532 --gid 65532 --no-log-init --no-create-home --home-dir /tmp --shell /usr/sbin/nologin noonmark \
    && python3 -m compileall -q --invalidation-mode unchecked-hash \
        -x '/(test|tests|idlelib|tkinter|turtledemo|ensurepip|lib2to3|pydoc_data|site-packages|dist-packages)/' \
        "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"

COPY --from=build /opt/noonmark /opt/noonmark

# Mount or copy handlers here. Their modules can then be imported by name.
WORKDIR /srv/app

ENV PATH=/opt/noonmark/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/tmp \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    NOONMARK_API_HOST=0.0.0.0 \
    NOONMARK_METRICS_HOST=0.0.0.0 \
    NOONMARK_METRICS_PORT=9090

USER 65532:65532

# The API; health and metrics of every service.
EXPOSE 8080 9090

# As `noonmark healthcheck`, without loading the command line: starts five times faster. One-shot commands disable it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/opt/noonmark/bin/python", "-I", "-m", "noonmark.service.healthcheck"]

STOPSIGNAL SIGTERM
ENTRYPOINT ["noonmark"]
CMD ["--help"]

ARG VERSION=0.3.0
ARG REVISION=""
ARG CREATED=""
ARG BASE
LABEL org.opencontainers.image.title="noonmark" \
      org.opencontainers.image.description="Event-driven job scheduler on Kafka and Postgres" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/noonmark/noonmark" \
      org.opencontainers.image.documentation="https://github.com/noonmark/noonmark/tree/main/docs" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${BASE}"
