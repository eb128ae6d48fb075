# Needs Python (3.10 or later) and make, nothing else: no recipe calls another program.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test soak lint bench bench-bulk bench-search clean
.DEFAULT_GOAL := help

help:  ## what there is to make
	@$(PYTHON) -c "import re;[print(f'make {m[1]:12} {m[2]}') for m in re.finditer(r'(?m)^([\w-]+):.*?## (.*)',open('Makefile').read())]"

$(VENV)/.installed: pyproject.toml
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -c "import sys; sys.exit(0 if sys.version_info >= (3, 10) else 'langshift needs Python 3.10 or later; name one with: make PYTHON=/path/to/python3')"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e '.[embedded,console]'
	@: > $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "Adding what the tests and checks need ..."
	@$(PIP) -e '.[embedded,test,lint]'
	@: > $@

# Several GB: the tests of `st:` models skip without it.
$(VENV)/.installed-transformers: $(VENV)/.installed-dev
	@echo "Adding sentence-transformers and torch ..."
	@$(PIP) -e '.[transformers]'
	@: > $@

demo: $(VENV)/.installed  ## start OpenSearch, index the demo corpus twice, show before and after
	@$(VENV)/bin/langshift demo

test: $(VENV)/.installed-dev  ## run every test, those against a real OpenSearch included
	@$(PY) -m pytest

# The faults that loads and retunes survive, in full length: a hundred kills instead of a few.
soak: $(VENV)/.installed-dev  ## the long form of the tests of faults: 100 SIGKILLs over a load, and over retunes
	@LANGSHIFT_KILLS=100 $(PY) -m pytest tests/cluster/test_faults_kills.py tests/cluster/test_retune_kills.py \
		tests/cluster/test_nodes_growth.py -s

lint: $(VENV)/.installed-dev  ## ruff, and mypy --strict over the built wheel
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) tests/support/typecheck.py

bench: $(VENV)/.installed-dev  ## benchmarks: candidates in turn, median and spread
	@$(PY) -m pytest tests/bench -s

bench-bulk: $(VENV)/.installed-dev  ## the benchmark of bulk indexing alone, beside the client library's helpers
	@$(PY) -m pytest tests/bench/bench_bulk.py tests/bench/bench_overlap.py tests/bench/bench_million.py -s

bench-search: $(VENV)/.installed-dev  ## the benchmarks of the search modes and of the console, query by query in turn
	@$(PY) -m pytest tests/bench/bench_search.py tests/bench/bench_console.py -s

clean:  ## remove the environment and everything built
	@$(PYTHON) -c "import shutil; [shutil.rmtree(p, ignore_errors=True) for p in ('$(VENV)', 'build', 'dist', '.build')]"
