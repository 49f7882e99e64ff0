# One image for both: the workers (--sdk_container_image) and the launcher of a Flex Template.
# Beam is of one version in the image below and in the package; the launcher and Python are pinned too.
ARG BEAM=2.77.0

FROM gcr.io/dataflow-templates-base/python311-template-launcher-base:20230622_RC00 AS launcher

FROM apache/beam_python3.11_sdk:${BEAM}

ARG BEAM

COPY --from=launcher /opt/google/dataflow/python_template_launcher /opt/google/dataflow/python_template_launcher

WORKDIR /template
COPY setup.py pyproject.toml README.md ./
COPY beam_dp beam_dp
COPY pipelines pipelines
RUN pip install --no-cache-dir ".[gcp,report,sql,yaml]" "apache-beam==${BEAM}" && pip check

# Dataflow starts the launcher with this job; the package is installed above, so no
# FLEX_TEMPLATE_PYTHON_SETUP_FILE and no requirements file are needed.
ENV FLEX_TEMPLATE_PYTHON_PY_FILE=/template/pipelines/aggregate.py

# Workers start here, as in the image below.
ENTRYPOINT ["/opt/apache/beam/boot"]
