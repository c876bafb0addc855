# Everything runs in .venv, which the first command builds and later ones reuse.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint types imports unit docs browser bench clean
demo: .venv/ready
	$(BIN)/liespline demo

test: lint types imports unit docs

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

imports: .venv/ready
	$(BIN)/lint-imports

unit: .venv/ready browser
# One thread a process: threads that outnumber the cores wait for each other.
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

docs: .venv/ready
	PYTHONPATH=docs $(BIN)/mkdocs build --strict

# Reports and pages are tested in a real browser.
browser:
	@command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium >/dev/null)

bench: .venv/ready
	$(BIN)/python benchmarks/cpu.py

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
# torch first and alone: a later resolver must find this build installed, not choose its own.
	$(BIN)/pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lab,dev]'
	touch $@

clean:
	rm -rf .venv runs site .pytest_cache .mypy_cache .ruff_cache
