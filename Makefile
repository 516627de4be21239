PYTHON ?= python3.11
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: serve build test clean

serve: $(VENV)/.installed
	$(BIN)/encyclopedia serve

build: $(VENV)/.installed
	$(BIN)/encyclopedia build

test: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/encyclopedia build
	$(BIN)/pytest --numprocesses 2

clean:
	rm -rf $(VENV) site site.* .cache site_src/families site_src/data site_src/source site_src/index.md

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	touch $@
