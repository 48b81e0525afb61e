# syntax=docker/dockerfile:1
# A GPU system with its own environment beside duplex_bench: a run of that system takes place in this image.
#   docker build -f docker/gpu-system.Dockerfile --build-arg WORK_IMAGE=duplex-bench-work:0.1.0 \
#     --build-arg SYSTEM_LOCK=duplex_bench/systems/cards/locks/moshi.txt -t duplex-bench-moshi:0.1.0 .
# The card then says: [environment] kind = "image", image = "duplex-bench-moshi:0.1.0" (docs/operations.md).
# CUDA's libraries come with torch's wheels; the driver comes from the host through its container runtime.

ARG WORK_IMAGE=duplex-bench-work:0.1.0
FROM ${WORK_IMAGE}
ARG SYSTEM_LOCK
USER root
COPY ${SYSTEM_LOCK} /opt/system.lock
RUN /usr/local/bin/python3 -m venv /opt/system \
 && /opt/system/bin/python3 -m pip install --no-cache-dir --disable-pip-version-check -r /opt/system.lock
# A worker of the system starts `python3`, which is the system's; `dagster` and `celery` stay those of duplex_bench.
ENV PATH=/opt/system/bin:$PATH \
    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001:10001
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s --retries=3 CMD ["start", "healthy"]
CMD ["worker"]
