# Everything a contributor does. `make help` lists it.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help venv lint format test unit histories runtime test-tools fuzz fuzz-previews e2e cluster cluster-down cluster-clean images install demo bench bench-scale generate lock

WORKERS ?= 0
PYTEST = .venv/bin/python -m pytest
# Tests of one file share what they have started: they run in one process.
PARALLEL = -n auto --maxprocesses 4 --dist loadfile
HISTORIES = $(addprefix tests/unit/operator/,test_lifecycle_machine.py test_workers_race.py test_killed_anywhere.py \
	pool/test_sharing_machine.py pool/test_histories.py pool/test_claims_faults.py)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: ## The developer's environment, from the lock file
	@hack/venv.sh

lint: venv ## Format, lint, types, import rules
	@hack/lint.sh

format: venv ## Rewrite the code in the project's format
	@.venv/bin/ruff check --fix --quiet .; .venv/bin/ruff format --quiet .

test: install test-tools ## All tests: unit, runtime, end to end on a kind cluster
	@$(PYTEST) $(PARALLEL) tests/unit tests/runtime || failed=$$?; $(PYTEST) tests/e2e && exit $${failed:-0}

unit: venv ## The tests that need nothing, in some minutes
	@$(PYTEST) $(PARALLEL) tests/unit

histories: venv ## Random histories of the operator, other ones each time, for many minutes
	@HYPOTHESIS_PROFILE=long $(PYTEST) --timeout 7200 $(HISTORIES)

runtime: venv ## The tests of a real runtime on loopback
	@$(PYTEST) $(PARALLEL) tests/runtime

fuzz: venv ## Odd requests to every endpoint of a real runtime (N=20000, SEED=1 to repeat a run)
	@.venv/bin/python -m tests.fuzz $(or $(N),20000) $(if $(SEED),--seed $(SEED))

fuzz-previews: venv ## Malformed requests to previews, by Python and by HAProxy (N=50000 each, SEED=1 to repeat a run)
	@.venv/bin/python -m tests.fuzz.previews $(or $(N),50000) $(if $(SEED),--seed $(SEED))

e2e: install test-tools ## The tests on a kind cluster
	@$(PYTEST) tests/e2e

test-tools: venv ## What the tests need besides: an ingress controller, a browser, judges (the first time takes minutes)
	@hack/tools/all.sh

cluster: ## A kind cluster, from a bare machine to Ready nodes (WORKERS=2 for more nodes)
	@WORKERS=$(WORKERS) hack/cluster/up.sh

cluster-down: ## Delete the cluster, keep the caches
	@hack/cluster/down.sh

cluster-clean: ## Delete the cluster and everything cached for it
	@hack/cluster/clean.sh

images: cluster ## Build our images and bring them into the nodes
	@hack/images/build.sh

install: venv images ## Install or upgrade the chart in the cluster
	@hack/install.sh

demo: install ## From nothing to a command's output from a sandbox
	@hack/demo.sh

bench: install ## Measure, and print the table of docs/benchmarks.md
	@.venv/bin/python -m tests.bench

bench-scale: venv cluster ## Measure the operator with 2,000 sandboxes on simulated nodes (some minutes)
	@.venv/bin/python -m tests.bench.scale

generate: venv ## Write the CRDs' YAML and the reference pages from the models
	@.venv/bin/python -m sandpod_crds.generate
	@.venv/bin/python -m sandpod_runtime.openapi

lock: venv ## Pin the newest versions that pyproject.toml allows
	@hack/lock.sh
