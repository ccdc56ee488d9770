# Everything sets itself up: Python 3.11 or newer is all that is needed beforehand.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test lint bench experiments docs clean

demo: $(VENV)/.installed
	$(BIN)/pindown demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=15

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/run.py

experiments: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 -m slow

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -q -W --keep-going -b html docs site

clean:
	rm -rf $(VENV) site dist pindown-demo

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pindown needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.installed-%: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$*]"
	touch $@ $(VENV)/.installed
