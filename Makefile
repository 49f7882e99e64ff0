# Everything happens in .venv and build/. `make demo` and `make test` are all that a user needs.

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
PRISM := build/bin/prism
STORES := build/bin/versitygw build/bin/fake-gcs-server
BEAM := 2.77.0
# Job servers of Flink or Spark that run already: `make test-runners ENDPOINTS="localhost:8099"`.
ENDPOINTS ?=

# The first Python from 3.11 to 3.13; `make PYTHON=/path/to/python test` takes another.
SUITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c '$(SUITS)' 2>/dev/null && echo $$python && break; done)

.PHONY: venv test audit test-runners test-flink test-spark test-stores test-dataflow lint demo docs bench clean

# Tests start some hundred programs: Python keeps what it compiled, whatever it is told elsewhere.
test audit: export PYTHONDONTWRITEBYTECODE =

venv: $(VENV)/.installed

INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable
NEEDS_PYTHON = @[ -n "$(PYTHON)" ] || { echo "Python 3.11, 3.12 or 3.13 is needed; name it: make PYTHON=..."; exit 1; }

$(VENV)/.installed: setup.py
	$(NEEDS_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) ".[dev]"
	touch $@

# The demo installs what it needs, half of what the tests need, unless that is there.
$(VENV)/.demo: setup.py
	$(NEEDS_PYTHON)
	[ $(VENV)/.installed -nt setup.py ] || { $(PYTHON) -m venv $(VENV) && $(INSTALL) ".[demo]"; }
	touch $@

test: venv
	$(BIN)/python -m pytest -n auto --dist worksteal --durations=25

audit: venv
	$(BIN)/python -m pytest -n auto --dist worksteal -m audit

test-runners: venv $(PRISM)
	$(BIN)/python -m pytest tests/runners --runners --prism $(PRISM) $(ENDPOINTS:%=--job_endpoint %)

# Real clusters of two workers, from pinned jars in build/jars; CLUSTER=--keep keeps their logs.
test-flink test-spark: test-%: venv
	$(BIN)/python -m tests.clusters $* $(CLUSTER) -- $(BIN)/python -m pytest tests/runners \
		--only_endpoints --job_endpoint {endpoint} --worker {worker} --durations=25

# Real servers of objects on loopback, which Go builds: S3, and an emulator of Google's.
test-stores: venv $(STORES)
	$(BIN)/python -m pytest tests/stores --stores build/bin

build/bin/versitygw: GO_PACKAGE = github.com/versity/versitygw/cmd/versitygw@v1.8.0
build/bin/fake-gcs-server: GO_PACKAGE = github.com/fsouza/fake-gcs-server@v1.56.1
$(STORES):
	@command -v go >/dev/null || { echo "Go is needed to build $(@F)"; exit 1; }
	GOBIN=$(CURDIR)/build/bin go install $(GO_PACKAGE)

# The steps of the Dockerfile that need no container engine, and the request that Dataflow would get.
test-dataflow: venv
	$(BIN)/python -m tests.dataflow

$(PRISM):
	@command -v go >/dev/null || { echo "Go is needed to build Prism; or: make PRISM=/path/to/prism test-runners"; exit 1; }
	GOBIN=$(CURDIR)/build/bin go install github.com/apache/beam/sdks/v2/go/cmd/prism@v$(BEAM)

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

demo: $(VENV)/.demo
	$(BIN)/beam-dp demo

# The environment variable stills what the theme says of the next generator at every build.
docs: venv
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "Open build/site/index.html"

bench: venv
	$(INSTALL) ".[bench]"
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build *.egg-info
