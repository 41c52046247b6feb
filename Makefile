# Two commands do everything: `make compare` (the main job) and `make test`.
# Both set up .venv first; nothing is reinstalled when nothing changed.
VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup compare test lint bench gallery docs clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt -e ".[test]"
	touch $@

compare: $(READY)
	rm -rf out/compare
	$(BIN)/harmonica compare --out out/compare

# One BLAS thread a process: two cores run two processes, not four threads.
test: lint
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -o addopts="" -q -s tests/benchmarks --benchmark-enable

gallery: $(READY)
	$(BIN)/python examples/05_what_if.py out/gallery
	$(BIN)/python docs/gallery/screenshots.py out/gallery
	$(BIN)/python docs/gallery/plots.py

docs: $(READY)
	$(BIN)/python docs/build_site.py site

clean:
	rm -rf $(VENV) build dist out site *.egg-info
