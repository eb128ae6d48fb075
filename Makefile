# Needs Python (3.10 or later) and make, nothing else: no recipe calls another program.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
# Python compiles what is imported then: of the packages with torch, a tenth.
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile
# Where it is set, each of the many processes that the tests start compiles everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-lab paper soak lowest evidence wheel plugin lint docs pages vectors smoke bench bench-bulk bench-search clean
.DEFAULT_GOAL := help

help:  ## what there is to make
	@$(PYTHON) -c "import re;[print(f'make {m[1]:12} {m[2]}') for m in re.finditer(r'(?m)^([\w-]+):.*?## (.*)',open('Makefile').read())]"

$(VENV)/.installed: pyproject.toml
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -c "import sys; sys.exit(0 if sys.version_info >= (3, 10) else 'langshift needs Python 3.10 or later; name one with: make PYTHON=/path/to/python3')"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e '.[embedded,console]'
	@: > $@

$(VENV)/.installed-dev: $(VENV)/.installed lab/pyproject.toml
	@echo "Adding what the tests and checks need ..."
	@$(PIP) -e '.[embedded,test,lint]' -e lab
	@: > $@

# Several GB: the tests of `st:` models skip without it.
$(VENV)/.installed-transformers: $(VENV)/.installed-dev
	@echo "Adding sentence-transformers and torch ..."
	@$(PIP) -e '.[transformers]'
	@: > $@

demo: $(VENV)/.installed  ## start OpenSearch, index the demo corpus twice, show before and after
	@$(VENV)/bin/langshift demo

# Files are dealt out to several processes, which share one OpenSearch.
TOGETHER := -n auto --dist loadgroup --no-loadscope-reorder
# How many times `make soak` kills a load, and a retune; a reencode of many documents is killed twice.
KILLS ?= 100

test: $(VENV)/.installed-dev  ## all tests of the core, those against a real OpenSearch and in a browser included
	@$(PY) -m pytest $(TOGETHER) tests/unit tests/cluster tests/browser tests/docs --ignore tests/cluster/faults

# Of the laboratory's tests those that `make test-lab` runs.
LAB ?= lab/tests

test-lab: $(VENV)/.installed-dev  ## the tests of the laboratory, lab/; LAB=lab/tests/unit alone needs no cluster
	@$(PY) -m pytest $(TOGETHER) $(LAB)

paper: $(VENV)/.installed-dev  ## one of the papers' figures, from the texts: XQuAD in three languages; make evidence has all
	@$(PY) -m pytest -p no:randomly tests/paper

soak: $(VENV)/.installed-dev  ## the tests of faults: processes and servers killed, KILLS (100) times in a load; wrong answers; others who write
	@LANGSHIFT_KILLS=$(KILLS) $(PY) -m pytest $(TOGETHER) tests/cluster/faults

# Who is let in, what is read from files and servers, and the tools of agents.
LOWEST ?= $(wildcard $(addprefix tests/unit/test_,service_access.py client_filters.py console_*.py source*.py *_http.py report*.py trusted_*.py)) \
	tests/cluster/console/test_agents.py tests/cluster/console/test_console_access.py

# Only what is required by name goes down: what that requires in turn is as new as it may be.
lowest: $(VENV)/.installed  ## tests with the lowest versions that pyproject.toml allows, LOWEST of them, in .build/lowest
	@$(PIP) "uv>=0.8,<1"
	@$(PY) -m uv venv --quiet --clear --python $(PY) .build/lowest
	@$(PY) -m uv pip install --quiet --python .build/lowest --resolution lowest-direct -e '.[test]' -e lab
	@.build/lowest/bin/python -m pytest -p no:randomly $(LOWEST)

# What was shown once and need not be shown with every change; what it prints goes into the pages.
evidence: $(VENV)/.installed-transformers  ## proofs, hours: the papers' figures in full, models by torch, Ray, twenty kills, large tables: every setting on every question
	@$(PIP) "langchain-core>=1,<2" "mteb>=2,<3" "openapi-python-client>=0.24,<0.30" "schemathesis>=4,<5"
	@LANGSHIFT_KILLS=20 $(PY) -m pytest $(TOGETHER) tests/cluster/faults tests/evidence/models tests/evidence/paper tests/evidence/workers
	@LANGSHIFT_EVIDENCE=1 $(PY) -m pytest -p no:randomly -s tests/evidence/test_*.py tests/docs/test_blocks.py tests/cluster/test_painless.py tests/unit/test_detector_text.py

wheel: $(VENV)/.installed-dev  ## build the wheel, into .build/wheel
	@$(PY) tests/support/built_wheel.py

plugin: $(VENV)/.installed-dev  ## build the OpenSearch plugin, into .build/plugin
	@$(PY) tools/build_plugin.py

# Every page anew, so that a warning is never passed over; a broken link is a warning, and a warning fails.
SITE := -m sphinx --quiet --nitpicky --fail-on-warning --fresh-env --write-all -c docs -d .build/doctrees . .build/site

docs: $(VENV)/.installed-dev  ## build the site of README.md and docs/, into .build/site
	@$(PY) $(SITE)

pages: $(VENV)/.installed-dev  ## write docs/reference/cli.md and docs/reference/measures.md anew, from the code
	@$(PY) tools/generate_pages.py

lint: wheel  ## ruff; names; budget; generated pages; links of the site; mypy --strict and the layers over the built wheel
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) tools/check_names.py
	@$(PY) tools/source_budget.py
	@$(PY) tools/generate_pages.py --check
	@$(PY) $(SITE)
	@$(PY) tests/support/check_wheel.py

# An hour, nearly all of it for encoding with e5-small.
vectors: $(VENV)/.installed-dev  ## fit and tune the language vectors that come with langshift, on NTREX-128, into debias/data
	@$(PY) tools/ship_vectors.py

smoke: wheel  ## the built wheel in a clean environment, as a newcomer would use it
	@$(PY) tests/support/smoke_wheel.py

bench: $(VENV)/.installed-dev  ## benchmarks: candidates in turn, median and spread
	@$(PY) -m pytest -p no:randomly -s tests/bench

bench-bulk: $(VENV)/.installed-dev  ## the benchmark of bulk indexing alone, beside the client library's helpers
	@$(PY) -m pytest -p no:randomly -s tests/bench/bench_bulk.py tests/bench/bench_overlap.py tests/bench/bench_state.py tests/bench/bench_million.py

bench-search: $(VENV)/.installed-dev  ## the benchmarks of the search modes, the plugin and the console, query by query in turn
	@$(PY) -m pytest -p no:randomly -s tests/bench/bench_search.py tests/bench/bench_sparse.py tests/bench/bench_late.py tests/bench/bench_native.py tests/bench/bench_console.py

clean:  ## remove the environment and everything built
	@$(PYTHON) -c "import shutil; [shutil.rmtree(p, ignore_errors=True) for p in ('$(VENV)', 'build', 'dist', '.build')]"
