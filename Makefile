# Everything sets itself up: Python 3.11 or newer is all that is needed beforehand.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test test-core check test-all test-lowest coverage slow soundness mutants lint bench vnncomp experiments gallery docs \
	build release-check clean

demo: $(VENV)/.installed
	$(BIN)/pindown demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=15

# Before a commit, in a minute or so: formats, types, what changed files are tested by, and a quick core.
check: lint
	$(BIN)/python -m pytest -q -x -p no:cacheprovider $$($(BIN)/python -m tests.touched)

# All that needs no torch.
test-core: $(VENV)/.installed-core
	$(BIN)/python -m pytest -n 2 --dist worksteal

# With every Python of these that is here, each in an environment of its own: everything with those in FULL, all that
# needs no torch with the others, since torch has its small CPU build for some Pythons only.
PYTHONS ?= 3.11 3.12 3.13
FULL ?= 3.11
test-all:
	@for version in $(PYTHONS); do \
	  export PYENV_VERSION=$$version; \
	  if ! python$$version -c '' 2>/dev/null; then echo "Python $$version is not here: left out"; continue; fi; \
	  case " $(FULL) " in *" $$version "*) tests=test;; *) tests=test-core;; esac; \
	  echo "Python $$version: make $$tests"; \
	  $(MAKE) $$tests PYTHON=python$$version VENV=$(VENV)-$$version || exit 1; \
	done

# Which lines the tests run: a table, and coverage.json.
coverage: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal -q --cov=pindown --cov-report=term:skip-covered --cov-report=json

# With the oldest releases that pyproject.toml allows, in an environment of their own.
test-lowest: $(VENV)-lowest/.installed
	NUMBA_CACHE_DIR=$(abspath $(VENV)-lowest/numba) $(VENV)-lowest/bin/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/run.py

# Problems of the verification competition with known answers: hours; what is finished is not run again.
vnncomp: $(VENV)/.installed-test
	$(BIN)/python benchmarks/vnncomp.py

# Tests that take minutes.
slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 -m slow

# Faults put into formulas: every one has to be noticed by its tests. SAMPLE=20 takes so many, ONLY=words some;
# PROPOSE=module makes new ones.
SAMPLE ?= 0
mutants: $(VENV)/.installed-test
	$(BIN)/python -m tests.mutants.$(if $(PROPOSE),propose $(PROPOSE),run --sample $(SAMPLE) --only "$(ONLY)")

# A random attack on everything called proved, against exact arithmetic: minutes, with a table at the end.
SEED  ?= 1
COUNT ?= 5000
START ?= 0
soundness: $(VENV)/.installed-test
	$(BIN)/python -m tests.soundness.attack --seed $(SEED) --count $(COUNT) --start $(START) --jobs 2

# All published results at SCALE (quick, decisive), and the page that sets them beside what was published. Large runs
# are taken up where they stopped; what the page needs of each stays in reproduction/results.
SCALE ?= quick
experiments: $(VENV)/.installed-all
	$(BIN)/pindown reproduce --all --scale $(SCALE) --jobs 2 --resume --out reproduction/results --ledger docs/reproduction.md

gallery: $(VENV)/.installed-all
	$(BIN)/python gallery/render.py

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -q -W --keep-going -b html docs site

# Wheels and source distributions of the library and of the experiments, in dist/.
build: $(VENV)/.installed-test
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m build --no-isolation --outdir dist reproduction

# What strangers will get: both files built, each installed alone, and tried where nothing of this folder is.
release-check: build
	PYTHON=$(abspath $(BIN))/python .ci/release_check

clean:
	rm -rf $(VENV) $(VENV)-* site dist pindown-demo pindown-experiments

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pindown needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml reproduction/pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[plots]"
	touch $@

$(VENV)/.installed-core: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test-core]"
	touch $@

$(VENV)/.installed-%: pyproject.toml reproduction/pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$*]" -e reproduction
	touch $@ $(VENV)/.installed

$(VENV)-lowest/.installed: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e ".[test]" -e reproduction
	touch $@
