# The two commands: `make run` does the main job, `make test` passes the tests. Each first sets up what it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNS := $(VENV)/.installed-package
TOOLS := .venv-tools
DOCS := .venv-docs
export PIP_DISABLE_PIP_VERSION_CHECK := 1
INSTALL := -m pip install --quiet --constraint constraints.txt

.PHONY: run run-all test test-all test-tools test-versions docs torture lint bench setup setup-tools clean

run: $(RUNS)
	$(BIN)/sih reproduce --out out

run-all: $(RUNS)
	$(BIN)/sih reproduce --all --out out

test: setup
	$(BIN)/pytest -n auto

test-all: setup
	$(BIN)/pytest -n auto -m ""

# With TransformerLens, nnsight, pyvene and CircuitsVis, in a set-up of their own: they bring a hundred packages.
test-tools: setup-tools
	$(TOOLS)/bin/pytest -W default tests/tools

# The tests with the lowest or the newest versions that pyproject.toml allows (VERSIONS=lowest, VERSIONS=newest).
# A torch from the registry brings gigabytes of CUDA on Linux, so this is for a hosted CI and for releases.
VERSIONS ?= lowest
test-versions:
	$(PYTHON) -m venv .venv-$(VERSIONS)
	.venv-$(VERSIONS)/bin/python -m pip install --quiet uv
	.venv-$(VERSIONS)/bin/uv pip install --quiet --python .venv-$(VERSIONS)/bin/python \
		--resolution $(if $(filter lowest,$(VERSIONS)),lowest-direct,highest) --editable '.[dev]'
	.venv-$(VERSIONS)/bin/pytest -n auto

# The site, in site/. What makes pages has a set-up of its own, which sees the packages of .venv too: notebooks are executed.
docs: $(DOCS)/.installed
	$(DOCS)/bin/python -m website.words
	$(DOCS)/bin/python -m pytest -W default tests/docs
	NO_MKDOCS_2_WARNING=1 OMP_NUM_THREADS=1 $(DOCS)/bin/python -m mkdocs --quiet build --strict
	$(DOCS)/bin/python -m website.built site
	$(DOCS)/bin/python -m website.searched site

torture: setup
	cd tests && PYTHONPATH=. OMP_NUM_THREADS=1 ../$(BIN)/python -m torture $(TORTURE)

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

bench: setup
	$(BIN)/python -m benchmarks

setup: $(STAMP)

setup-tools: $(TOOLS)/.installed

# The package alone, for `make run`; what tests and checks need is added to the same .venv.
$(RUNS): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) --editable .
	touch $@

$(STAMP): $(RUNS)
	$(BIN)/python $(INSTALL) --editable '.[dev]'
	touch $@

$(TOOLS)/.installed: pyproject.toml constraints.txt
	test -x $(TOOLS)/bin/python || $(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python $(INSTALL) --editable '.[tools]'
	touch $@

$(DOCS)/.installed: $(STAMP) website/requirements.txt
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python $(INSTALL) --requirement website/requirements.txt
	packages() { $$1/bin/python -c 'import site; print(site.getsitepackages()[0])'; }; \
	echo "import site; site.addsitedir('$$(packages $(VENV))')" > "$$(packages $(DOCS))/and_sih.pth"
	touch $@

clean:
	rm -rf $(VENV) $(TOOLS) $(DOCS) .venv-lowest .venv-newest out site
