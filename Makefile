# Everything sets itself up: Python 3.11 or newer is all that is needed beforehand.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test slow soundness mutants test-lowest lint bench vnncomp experiments gallery docs build clean

demo: $(VENV)/.installed
	$(BIN)/pindown demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=15

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

# All published results at quick scale, and the page that sets them beside what was published.
experiments: $(VENV)/.installed
	$(BIN)/pindown reproduce --all --jobs 2 --resume --out pindown-experiments --ledger docs/reproduction.md

gallery: $(VENV)/.installed
	$(BIN)/python gallery/render.py

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -q -W --keep-going -b html docs site

# Wheels and source distributions of the library and of the experiments, in dist/.
build: $(VENV)/.installed-test
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m build --no-isolation --outdir dist reproduction

clean:
	rm -rf $(VENV) $(VENV)-lowest site dist pindown-demo pindown-experiments

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pindown needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml reproduction/pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . -e reproduction
	touch $@

$(VENV)/.installed-%: pyproject.toml reproduction/pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$*]" -e reproduction
	touch $@ $(VENV)/.installed

$(VENV)-lowest/.installed: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e ".[test]" -e reproduction
	touch $@
