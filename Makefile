# The verbs of this repository. `make` alone says what they are.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SOURCES := memoryos_pipeline workers migrations tests

.PHONY: help
help: ## Say what each verb does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(VENV)/.installed ## Make .venv with the memoryos command (quick when it is up to date)
	@:

.PHONY: demo
demo: setup ## Watch conversations become memory, and ask it questions; leaves nothing behind
	@$(BIN)/memoryos demo

.PHONY: up
up: setup ## Run the whole system until Ctrl-C; its data is kept
	@$(BIN)/memoryos up

.PHONY: test
test: dev ## Run every test but the long fault tests, on real embedded servers
	@$(BIN)/pytest -n 2 --dist worksteal -m "smoke or not faults"

.PHONY: test-faults
test-faults: dev ## Kill, freeze, cut off and restart everything, and count what is lost: nothing
	@$(BIN)/pytest -n 2 --dist loadfile -m "faults and not smoke" tests/faults

.PHONY: test-mutants
test-mutants: dev ## Take one safeguard out at a time and see the tests go red
	@$(BIN)/python -m tests.faults.mutants

.PHONY: test-unit
test-unit: dev ## Run the tests that need no server
	@$(BIN)/pytest -n 2 tests/unit tests/architecture

.PHONY: test-integration
test-integration: dev ## Run the tests on embedded Postgres and Valkey
	@$(BIN)/pytest -n 2 tests/integration

.PHONY: test-acceptance
test-acceptance: dev ## Run the tests of the whole system
	@$(BIN)/pytest tests/acceptance

.PHONY: lint
lint: dev ## Check style and format
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)

.PHONY: format
format: dev ## Format the code
	@$(BIN)/ruff format $(SOURCES)
	@$(BIN)/ruff check --fix $(SOURCES)

.PHONY: types
types: dev ## Check types, strictly
	@$(BIN)/mypy

.PHONY: contracts
contracts: dev ## Check who imports whom, and the compose file
	@$(BIN)/lint-imports
	@$(BIN)/docker-compose config -q

.PHONY: check
check: lint types contracts ## Everything but the tests

.PHONY: lock
lock: dev ## Write the lock files anew from what is installed in .venv
	@$(BIN)/python ops/lock.py

.PHONY: clean
clean: ## Remove .venv and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist ./*.egg-info
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: dev
dev: $(VENV)/.installed-dev

$(VENV)/.installed: requirements.lock pyproject.toml ops/make-venv.sh
	@ops/make-venv.sh $(VENV)
	@echo "Installing what requirements.lock names …"
	@$(PIP) install -r requirements.lock
	@$(PIP) install --no-deps -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	@echo "Installing what requirements-dev.lock names …"
	@$(PIP) install -r requirements-dev.lock
	@touch $@
