# Everything below sets itself up on a machine that has Python >= 3.11 with venv and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-core
TEST_STAMP := $(VENV)/.installed-test
DOCS_STAMP := $(VENV)/.installed-docs

.PHONY: demo test test-long durations docs docs-links sbom lint types browser clean help

help:
	@echo "make demo    set up and recover a planted network from its answers"
	@echo "make test    set up and run lint, types and tests"
	@echo "make test-long  run the cases that take longest, which make test leaves out"
	@echo "make durations  measure all cases and choose those that make test leaves out"
	@echo "make docs    set up and build the documentation into docs/_build/html"
	@echo "make clean   remove the virtual environment and caches"

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(TEST_STAMP): $(STAMP) constraints/cpu.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints/cpu.txt "torch==2.13.0"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints/cpu.txt -e ".[torch,test]"
	@touch $@

$(DOCS_STAMP): $(STAMP) constraints/cpu.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints/cpu.txt "torch==2.13.0"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints/cpu.txt -e ".[docs]"
	@touch $@

demo: $(STAMP)
	$(BIN)/unweave demo

lint: $(TEST_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(TEST_STAMP)
	$(BIN)/mypy

# The report and the web page are tested in a real browser. As root on Debian it is installed; elsewhere put
# chromium and chromedriver on the path.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get install -qq -y --no-install-recommends chromium chromium-driver >/dev/null || \
	      { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium chromium-driver >/dev/null; }; }; } || \
	  { echo "chromium and chromedriver must be on the path for the browser tests: install them first." >&2; exit 1; }

# Two processes of one BLAS thread each: the tests' matrices are small, and a second thread only waits.
test: lint types browser
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

test-long: $(TEST_STAMP)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "long and not slow and not paper"

durations: $(TEST_STAMP)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -q -m "not slow and not paper" \
	  --junitxml=.durations.xml
	$(BIN)/python tests/durations.py .durations.xml

# Runs every gallery script and notebook; a warning is an error. Then every link within the pages is followed.
docs: $(DOCS_STAMP)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W --keep-going -j 2 -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

# Links to other hosts, which need the network.
docs-links: $(DOCS_STAMP)
	$(BIN)/python -m sphinx -q -D nb_execution_mode=off -D plot_gallery=0 -b linkcheck docs docs/_build/links

# What a release is made of, in the form of CycloneDX: the package and all that it installs.
sbom:
	rm -rf dist/sbom && mkdir -p dist
	$(PYTHON) -m venv dist/sbom
	dist/sbom/bin/python -m pip install --quiet --disable-pip-version-check .
	$(PYTHON) -m venv dist/sbom-tool
	dist/sbom-tool/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom
	dist/sbom-tool/bin/cyclonedx-py environment dist/sbom/bin/python --pyproject pyproject.toml --of JSON -o dist/unweave.cdx.json
	rm -rf dist/sbom dist/sbom-tool

clean:
	rm -rf $(VENV) docs/_build docs/api docs/gallery docs/project docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache dist build
