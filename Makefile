# Everything runs in .venv, which the first command builds and later ones reuse.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint types imports unit docs package lock audit minimum coverage fuzz mutations mutants kills corpus soak gpu kernels stacks browser bench clean
# Needs no tools of developers.
demo: .venv/lab
	$(BIN)/liespline demo

test: lint types imports unit docs package

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

imports: .venv/ready
	$(BIN)/lint-imports

unit: .venv/ready browser
# One thread per process: threads that outnumber the cores wait for each other.
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

docs: .venv/ready
	PYTHONPATH=docs $(BIN)/mkdocs build --strict

# What would be published: dist/.
package: .venv/ready
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*

# The hashes of the files that constraints.txt names.
lock: .venv/ready
	$(BIN)/python reliability/lock.py

# Known weaknesses of the locked versions, where the index answers that question.
audit:
	$(PYTHON) -m venv build/audit
	build/audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	build/audit/bin/pip-audit --strict --disable-pip --require-hashes -r requirements.lock

# The oldest versions pyproject.toml allows: the core and the lab on them, in an environment of several GB.
minimum:
	$(PYTHON) -m venv build/minimum
	build/minimum/bin/pip install --quiet --disable-pip-version-check -r minimum.txt \
	  $$(grep -E '^(pytest|pytest-xdist|hypothesis)==' constraints.txt) scipy onnxruntime submitit
	build/minimum/bin/pip install --quiet --disable-pip-version-check --no-deps -e .
# Old packages warn of each other; site and package want the tools of constraints.txt.
	OMP_NUM_THREADS=1 build/minimum/bin/python -m pytest -n 2 -o filterwarnings=default \
	  --ignore tests/house/test_docs_site.py --ignore tests/house/test_package.py

# Branch coverage of the core, then of the lab.
coverage: .venv/ready browser
	$(BIN)/pip install --quiet --disable-pip-version-check 'coverage>=7.10'
	OMP_NUM_THREADS=1 $(BIN)/coverage run -m pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --omit '*/lab/*'
	$(BIN)/coverage report --include '*/lab/*'

# The long checks of docs/reliability.md; each leaves its findings in reliability/results.json.
fuzz mutations kills corpus soak: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/python reliability/$@.py
	$(BIN)/python reliability/table.py

# Random changes of the core; the first time on a commit it looks which tests run which lines.
mutants: .venv/ready
	$(BIN)/pip install --quiet --disable-pip-version-check 'coverage>=7.10' 'cosmic-ray>=8.4'
	OMP_NUM_THREADS=1 $(BIN)/python reliability/mutants.py
	$(BIN)/python reliability/table.py

# Where a GPU is: everything on it against the CPU's numbers, then the speed table; under eight minutes.
gpu: .venv/ready
	$(BIN)/python reliability/gpu.py
	$(BIN)/python reliability/table.py

# All kernels for compute capability 9.0 with eight versions of Triton, no GPU needed; 2 GB in build/triton.
kernels: .venv/ready
	$(BIN)/python benchmarks/kernels.py

# Other people's tools with our networks in them, each in an environment of its own: build/stacks/NAME, of what
# its line in tests/stacks/needs.txt asks for, runs tests/stacks/test_NAME.py. `make stacks STACKS=monai` runs that one.
# Where a line names a torch, for torchvision's sake, that one is taken in place of ours.
STACKS ?= $(patsubst tests/stacks/test_%.py,%,$(wildcard tests/stacks/test_*.py))
.PRECIOUS: build/stacks/%/ready
stacks: $(STACKS:%=stack-%)

stack-%: build/stacks/%/ready
	OMP_NUM_THREADS=1 build/stacks/$*/bin/python -m pytest --confcutdir tests/stacks -o filterwarnings=default \
	  tests/stacks/test_$*.py

build/stacks/%/ready: tests/stacks/needs.txt constraints.txt
	$(PYTHON) -m venv $(@D)
	sed -n 's/^$*: //p' $< | tr ' ' '\n' > $(@D)/needs.txt
	cat $(@D)/needs.txt constraints.txt | grep -m 1 '^torch==' > $(@D)/torch.txt
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $(@D)/torch.txt
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $(@D)/torch.txt -r $(@D)/needs.txt -e .
	touch $@

# Reports and pages are tested in a real browser; without one, and without root to install one, those tests are left out.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
	  echo "No Chromium, and no way to install it: tests of pages in a browser are left out."

bench: .venv/ready
	$(BIN)/python benchmarks/cpu.py

.venv/lab: pyproject.toml constraints.txt requirements.lock
	$(PYTHON) -m venv .venv
# torch first and alone: a later resolver must find this build installed, not choose its own.
	$(BIN)/pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
# LOCK=requirements.lock takes no file whose hash is not in it.
	$(BIN)/pip install --quiet --disable-pip-version-check $(if $(LOCK),--require-hashes --no-deps -r $(LOCK),-c constraints.txt -e '.[lab]')
	$(if $(LOCK),$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .)
	touch $@

.venv/ready: .venv/lab
	$(if $(LOCK),,$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lab,studies,dev]')
	touch $@

clean:
	rm -rf .venv runs site .pytest_cache .mypy_cache .ruff_cache
