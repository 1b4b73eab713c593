# syntax=docker/dockerfile:1
# One image for worker, command line and sandbox. Dependencies are locked with hashes; nothing runs as root.
FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md ./
RUN python -m venv /opt/trellis \
    && /opt/trellis/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY domain domain
COPY activities activities
COPY workflows workflows
COPY worker worker
COPY starter starter
COPY sandbox sandbox
RUN /opt/trellis/bin/pip install --no-cache-dir setuptools wheel \
    && /opt/trellis/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
    && /opt/trellis/bin/pip uninstall --yes setuptools wheel

FROM python:3.13-slim
RUN useradd --system --uid 10001 --create-home trellis && install -d -o trellis /state
COPY --from=build /opt/trellis /opt/trellis
ENV PATH=/opt/trellis/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
VOLUME /state
ENTRYPOINT ["trellis"]
CMD ["worker"]
