# Two commands on a fresh machine: `make demo` and `make test`. Everything lives in .venv and bandana_data.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One more than there are cores: what tests of flows start, they also wait for.
WORKERS ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)")
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Hundreds of interpreters are started: each would compile everything again.
unexport PYTHONDONTWRITEBYTECODE
# Types take a minute on a fresh clone: they are checked beside the tests, and what is wrong is shown after them.
TYPES := .mypy_cache/said.txt
BESIDE = mkdir -p $(dir $(TYPES)); $(BIN)/mypy > $(TYPES) 2>&1 & types=$$!; $(1); tests=$$?; \
	wait $$types; types=$$?; cat $(TYPES); test $$types -eq 0 -a $$tests -eq 0

.PHONY: demo test test-all test-fast test-numeric test-python quick lint style bench docs release clean

demo: $(STAMP)
	$(BIN)/bandana demo

test: style
	$(call BESIDE,$(BIN)/python -m pytest -m "not nightly" $(PARALLEL))

test-all: style
	$(call BESIDE,$(BIN)/python -m pytest $(PARALLEL))

# As another processor: BLAS kernels and instruction sets that this one would not take by itself; and both beside each other.
test-numeric: $(STAMP)
	$(BIN)/python -m pytest tests/test_processors.py -k "not kernels and not instructions"
	$(BIN)/python -m tests.processors pytest -m "numeric and not nightly" $(PARALLEL)

quick: $(STAMP)
	$(BIN)/python -m pytest --quick $(PARALLEL)

# What is not slow under another interpreter, in an environment of its own: make test-python PYTHON=python3.13
test-python:
	$(MAKE) test-fast VENV=.venv-$(notdir $(PYTHON))

test-fast: $(STAMP)
	$(BIN)/python -m pytest -m "not slow and not nightly" $(PARALLEL)

lint: style
	$(BIN)/mypy

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m benchmarks

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "open site/index.html, or serve it: $(BIN)/python -m mkdocs serve"

# Wheel, sdist, bill of materials and lock file of the commit into dist/, built twice and compared; the upload is yours.
release:
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r deploy/release.lock
	.venv-release/bin/python deploy/release.py dist

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) .venv-* bandana_data build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
