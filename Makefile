# Every target makes the virtual environment it needs. `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
NOONMARK := $(BIN)/noonmark

JSON ?=
SIZE ?=
SEED ?= 1
ROUNDS ?= 10
KILLS ?= 2500
FILE ?= tests/chaos/campaign/campaign.jsonl
SEEDS ?= 200
ARGS ?=
PYTEST_ARGS ?=

# Tests run in this many processes, each with its own Postgres and Kafka; 0 runs them in one, as a debugger needs it.
# Tests that need servers wait half of their time: four processes keep two cores busy.
WORKERS ?=
PROCESSES := 2
test: PROCESSES := 4
# A file stays in one process, for what its tests share; in the order of their names the long tests come first,
# and no process waits for another at the end.
PARALLEL = -n $(or $(WORKERS),$(PROCESSES)) --dist loadfile --no-loadscope-reorder

# Where one file has all of the long tests, each of them may go to either process.
SPREAD = -n $(or $(WORKERS),$(PROCESSES)) --dist load

# Without bytecode every process would compile all that it imports, and pytest rewrite every test again.
unexport PYTHONDONTWRITEBYTECODE

# What `make test` runs; the longer tiers have targets of their own.
LONG := chaos starved property virtual model simulation deploy containers
SHORT := tests $(LONG:%=--ignore=tests/%)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo up down test test-quick test-unit test-chaos chaos campaign campaign-page test-starved test-property test-virtual test-model test-simulation simulate test-deploy test-containers deploy-tools check format bench race clean

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(INSTALLED) ## start everything, publish the examples, account for each of them, stop everything
	@$(NOONMARK) demo

up: $(INSTALLED) ## start a development stack and run it until Ctrl-C (ARGS=--detach: until `make down`)
	@$(NOONMARK) dev up $(ARGS)

down: $(INSTALLED) ## end the development stack and nothing else
	@$(NOONMARK) dev down

test: $(INSTALLED) ## unit, contract, integration and acceptance tests (under 6 minutes)
	@$(BIN)/python -m pytest $(SHORT) -m "not slow" $(PARALLEL) $(PYTEST_ARGS)

test-quick: $(INSTALLED) ## unit, contract and chart tests that start no server (under 60 seconds)
	@$(BIN)/python -m pytest tests/unit tests/contract tests/chart -m "not (slow or postgres or kafka)" $(PARALLEL) $(PYTEST_ARGS)

test-unit: $(INSTALLED) ## the tests without I/O (under 30 seconds)
	@$(BIN)/python -m pytest tests/unit $(PARALLEL) $(PYTEST_ARGS)

test-chaos: $(INSTALLED) ## the longer tier: every service killed at every fault point, and slow tests
	@$(BIN)/python -m pytest tests/chaos $(PYTEST_ARGS)
	@$(BIN)/python -m pytest $(SHORT) -m slow $(PARALLEL) $(PYTEST_ARGS) || [ $$? -eq 5 ]

chaos: $(INSTALLED) ## rounds of load and faults that a SEED decides, each judged by the checker (ROUNDS=10 JSON=out.json)
	@$(BIN)/python -m tests.chaos.run --seed $(SEED) --rounds $(ROUNDS) $(if $(JSON),--json $(JSON)) $(ARGS)

test-starved: $(INSTALLED) ## every process of the services gets a twentieth of a core for a minute (under 3 minutes)
	@$(BIN)/python -m pytest tests/starved $(PYTEST_ARGS)

campaign: $(INSTALLED) ## chaos rounds over seeds until KILLS kills, a line per seed in FILE; continues where it stopped
	@$(BIN)/python -m tests.chaos.campaign --kills $(KILLS) --file $(FILE) $(ARGS)

campaign-page: $(INSTALLED) ## write the summary of FILE into docs/verification.md
	@$(BIN)/python -m tests.chaos.campaign --summary --write --file $(FILE)

test-property: $(INSTALLED) ## schedules against an oracle: 24 zones, ten years, every rule (about 2 minutes)
	@$(BIN)/python -m pytest tests/property $(PYTEST_ARGS)

test-virtual: $(INSTALLED) ## a year of 1,000 schedules and every kind of outage, on a virtual clock (about 4 minutes)
	@$(BIN)/python -m pytest tests/virtual $(PYTEST_ARGS)

test-model: $(INSTALLED) ## models of the races: every state, mutants, 2,000 walks on Postgres (about 2 minutes)
	@$(BIN)/python -m pytest tests/model $(PYTEST_ARGS)

test-simulation: $(INSTALLED) ## 20 simulated days with faults, in the order of a seed, each judged (about 3 minutes)
	@$(BIN)/python -m pytest tests/simulation $(SPREAD) $(PYTEST_ARGS)

simulate: $(INSTALLED) ## the same for more seeds (SEEDS=200), or for one again (ARGS="--seed 7 -v")
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) $(ARGS)

deploy-tools: $(INSTALLED) ## what the tests of chart, rules and image need: Debian packages, and builds kept in ~/.cache
	@$(BIN)/python -m tests.support.deploy_tools $(TOOLS)

test-deploy: $(INSTALLED) ## the chart on a real API server, the image, an upgrade under load (under 15 minutes)
	@$(BIN)/python -m pytest tests/deploy $(PYTEST_ARGS)

test-containers: $(INSTALLED) ## the stack in containers, and compose with an upgrade, on a Docker engine of the tests; needs root; not in CI
	@$(BIN)/python -m pytest tests/containers $(PYTEST_ARGS)

check: $(INSTALLED) ## formatting, lint, strict types, borders between the packages
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(INSTALLED) ## put the code into its standard form
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(INSTALLED) ## the benchmark (JSON=out.json keeps its figures, SIZE=100000 sets its runs)
	@$(BIN)/python -m benchmarks.run $(if $(JSON),--json $(JSON)) $(if $(SIZE),--size $(SIZE)) $(ARGS)

race: $(INSTALLED) ## noonmark, the bare design and installed rivals with one workload (JSON=out.json SIZE=100000)
	@$(BIN)/python -m benchmarks.race $(if $(JSON),--json $(JSON)) $(if $(SIZE),--size $(SIZE)) $(ARGS)

clean: ## remove what was built, and the data of the development stack unless it runs
	@if [ -e .noonmark/stack.json ]; then echo "a development stack may be running: make down"; exit 1; fi
	@rm -rf .noonmark .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist $(VENV)
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "noonmark needs Python 3.11 or newer, but $(PYTHON) is older or missing: run make PYTHON=python3.12 ..." >&2; exit 1; }
	@[ -x $(BIN)/pip ] || { echo "making $(VENV) ..."; rm -rf $(VENV); $(PYTHON) -m venv $(VENV); } || { \
	    echo "$(PYTHON) cannot make virtual environments; on Debian: apt install python3-venv" >&2; exit 1; }
	@echo "installing noonmark and what it needs into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    -c constraints.txt -e '.[dev-stack,tracing]' --group dev
	@touch $@
