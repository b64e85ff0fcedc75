# The project's commands; `make` alone lists them. Stamp files make a second run start at once.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3.14 python3 python; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$name"; break; }; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check
# On all cores, where pip compiles on one; some packages ship files that are not for this Python.
COMPILE := $(BIN)/python -m compileall -qq -j 0
RUNTIME := $(VENV)/.runtime-installed
DEV := $(VENV)/.dev-installed

TRAIN_COMMAND ?= videotree train --demo
TRAIN_ARGS ?=
BENCH_ARGS ?=
PYTEST_ARGS ?= -n 2

COMPOSE ?= $(shell if docker compose version >/dev/null 2>&1; then echo docker compose; else echo docker-compose; fi)
COMPOSE_FILES := -f deploy/compose.yaml $(if $(GPU),-f deploy/compose.gpu.yaml) $(if $(CPU),-f deploy/compose.cpu.yaml) \
	$(if $(OBSERVABILITY),-f deploy/compose.observability.yaml) $(if $(TLS),-f deploy/compose.tls.yaml)
PROFILES := $(if $(GPU)$(CPU),,--profile demo)
export COMPOSE_PROJECT_NAME ?= videotree

.PHONY: help setup proto lock format check check-lint check-types check-imports check-protos check-docs test test-unit \
	test-containers train up down logs ps images-offline bench bench-gate bench-store clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' | awk -F'|' '{printf "  %-16s %s\n", $$1, $$2}'

setup: $(RUNTIME) $(DEV) ## make .venv with everything to run, test and change the project

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "videotree needs Python 3.11 or newer on PATH; or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): requirements.lock pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --no-compile --require-hashes --requirement requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@$(COMPILE) $(VENV)/lib services gen >/dev/null 2>&1 || true
	@touch $@

$(DEV): requirements-dev.lock $(RUNTIME)
	$(PIP) install --quiet --no-compile --require-hashes --requirement requirements-dev.lock
	@$(COMPILE) $(VENV)/lib >/dev/null 2>&1 || true
	@touch $@

proto: $(DEV) ## generate gen/ from protos/
	$(BIN)/python protos/generate.py gen

LOCK := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet
lock: $(DEV) ## write the lock files anew from pyproject.toml
	$(LOCK) --upgrade --group build --output-file requirements.lock
	$(LOCK) --upgrade --group build --group dev --extra parquet --constraints requirements.lock --output-file requirements-dev.lock

format: $(DEV) ## format the code, mend what ruff can mend, list the decision records
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python checks/adr_index.py --write

check: check-lint check-types check-imports check-protos check-docs ## everything CI looks at besides the tests

check-lint: $(DEV)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .

check-types: $(DEV)
	$(BIN)/mypy

check-imports: $(DEV)
	PYTHONPATH=.:gen $(BIN)/lint-imports --no-logo

check-protos: $(DEV)
	$(BIN)/buf lint protos
	$(BIN)/python checks/protos_are_compatible.py
	$(BIN)/python checks/generated_code_is_fresh.py

check-docs: $(DEV)
	$(BIN)/python checks/adr_index.py
	$(BIN)/python checks/docs_links.py
	$(BIN)/python checks/no_place_names.py

test: $(DEV) ## run the whole suite (container tests where a Docker engine answers)
	$(BIN)/python -m pytest -m container
	$(BIN)/python -m pytest -m "not container" $(PYTEST_ARGS)

test-unit: $(DEV) ## run the fast, pure tests
	$(BIN)/python -m pytest $(PYTEST_ARGS) tests/unit tests/property

test-containers: $(DEV) ## build the images and test the services in containers
	$(BIN)/python -m pytest -m container

train: $(RUNTIME) ## train on the bundled sample with the simulated model
	PATH="$(CURDIR)/$(BIN):$$PATH" $(TRAIN_COMMAND) $(TRAIN_ARGS)

up: ## start the services in containers (GPU=1, CPU=1: with a model server; OBSERVABILITY=1: with Grafana; TLS=1: mutual TLS)
	deploy/prepare.sh
	$(COMPOSE) $(COMPOSE_FILES) $(PROFILES) up --detach --build

down: ## stop the containers (the data stays)
	$(COMPOSE) $(COMPOSE_FILES) --profile demo --profile train down --remove-orphans

logs: ## follow the containers' logs
	$(COMPOSE) $(COMPOSE_FILES) $(PROFILES) logs --follow --tail 100

ps: ## list the containers and their health
	$(COMPOSE) $(COMPOSE_FILES) $(PROFILES) ps

images-offline: $(DEV) ## build the images without an image registry: bases by debootstrap, wheels from the host
	deploy/images-offline.sh

bench: $(DEV) build/litellm/bin/litellm ## measure; prints tables and writes bench/results/
	$(BIN)/python -m bench $(BENCH_ARGS)

bench-gate: $(DEV) ## measure the gate alone
	$(BIN)/python -m bench.gate

bench-store: $(DEV) ## measure the store alone
	$(BIN)/python -m bench.store

bench-inference: $(DEV) build/litellm/bin/litellm ## measure the governed call beside LiteLLM's proxy
	$(BIN)/python -m bench.inference

build/litellm/bin/litellm: | $(BIN)/python
	$(BIN)/python -m venv build/litellm
	build/litellm/bin/python -m pip install --quiet 'litellm[proxy]==1.108.*'

clean: ## remove what make made (not the data)
	rm -rf $(VENV) build dist deploy/wheels .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
