# Needs python3 (3.11 or newer) with venv, make, and gcc for the tests. Everything else goes into .venv.

PYTHON ?= python3
# Of make soak (docs/soak.md): which one, empty = all of them and then the tests with server processes at full length; its
# rounds; its seed; the folder of its results, with which a stopped one goes on. ROUNDS alone are kills.
SOAK ?= $(if $(ROUNDS),kills)
ROUNDS ?=
SEED ?=
RESULTS ?=
# Extra arguments of pytest: make test ARGS="-k lanes"
ARGS ?=
TEST_WORKERS ?= 2

VENV := .venv
VPY := $(VENV)/bin/python
READY := $(VENV)/.ready
LOCKS := requirements.lock requirements-local.lock requirements-dev.lock
LOCK := $(VPY) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test check bench soak protos lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(READY) ## create .venv with everything; done again only when pyproject.toml or a lock file changes

# uv installs several times faster than pip; it is itself taken from the lock. Without it pip does the same from the same
# files. The project's build backend is in requirements-dev.lock, hence no build isolation.
$(READY): pyproject.toml $(LOCKS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=")'
	test -x $(VPY) || $(PYTHON) -m venv $(VENV)
	awk '/^uv==/ { found = 1 } found { print; if (!/\\$$/) exit }' requirements-dev.lock > $(VENV)/uv.requirements
	if $(VPY) -m pip install --quiet --no-deps --require-hashes -r $(VENV)/uv.requirements \
	    && $(VPY) -m uv pip install --quiet --python $(VPY) --no-deps --require-hashes $(LOCKS:%=-r %); then \
	  $(VPY) -m uv pip install --quiet --python $(VPY) --no-deps --no-build-isolation --editable .; \
	else \
	  echo "uv did not succeed, going on with pip" >&2; \
	  $(VPY) -m pip install --quiet --no-deps --require-hashes $(LOCKS:%=-r %) \
	    && $(VPY) -m pip install --quiet --no-deps --no-build-isolation --editable .; \
	fi
	touch $@

demo: setup ## set everything up and run the main job
	$(VENV)/bin/laneway demo

test: setup ## set everything up and run all tests
	$(VPY) -m pytest -n $(TEST_WORKERS) $(ARGS)

check: setup ## style, types, protos, image and chart
	$(VPY) -m ruff check
	$(VPY) -m ruff format --check
	$(VPY) -m mypy
	$(VENV)/bin/buf lint
	$(VENV)/bin/buf format --diff --exit-code
	$(VPY) -m tests.deploy.check

bench: setup ## measure throughput and latency
	$(VPY) -m tests.benchmarks

soak: setup ## run for a long time under faults: make soak SOAK=kills ROUNDS=100 SEED=7 RESULTS=folder
	$(VPY) -m tests.soak $(SOAK) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED)) \
	  $(if $(RESULTS),--results $(RESULTS))
	$(if $(SOAK),,SOAK=1 $(VPY) -m pytest tests/processes)

# The folder below protos/ is the import path, so that generated imports need no rewriting.
protos: setup ## write the generated code of all clients anew from protos/; that for TypeScript needs npm
	$(VPY) -m grpc_tools.protoc -I protos --python_out=clients/python --pyi_out=clients/python \
	  --grpc_python_out=clients/python protos/laneway/v1/*.proto
	if command -v npm >/dev/null; then cd clients/typescript && npm ci && PYTHON=$(abspath $(VPY)) npm run generate; \
	else echo "npm is not installed: clients/typescript/src/gen stays as it is" >&2; fi

# In this order: each file takes over the versions of the one before.
lock: setup ## resolve pyproject.toml into the lock files anew
	$(LOCK) --extra server --output-file requirements.lock pyproject.toml
	$(LOCK) --group local --output-file requirements-local.lock
	$(LOCK) --group dev --constraint requirements.lock --output-file requirements-dev.lock
	$(LOCK) --group build --constraint requirements-dev.lock --output-file requirements-build.lock

clean: ## remove everything that make created, also .venv
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov build dist
	rm -rf clients/typescript/node_modules clients/typescript/dist
	find clients/python server tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
