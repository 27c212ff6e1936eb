# Everything below works from a fresh clone with Python >= 3.11, git and make: it creates its own virtual environment.
# What is demonstrated, tested and measured is a wheel, and that wheel is built from the sdist.

PYTHON ?= python3
# Processes that run tests side by side; the tests are independent of each other. Many wait for daemons, so that there
# may be more of them than cores; the slow ones stand together, so that who has none left takes some of another's.
JOBS ?= 3
# More for pytest, as in: make test PYTEST_ARGS="tests/unit -k floors"
PYTEST_ARGS ?=
# What of the bench, as in: make bench BENCH_ARGS="--only send --json"
BENCH_ARGS ?=

# What decides whether anything counts, and the tests that run every branch of it without a machine or git.
CORE_TESTS := $(addprefix tests/unit/test_,answered.py exhibits.py fingerprints.py invitations.py presence.py proposals.py \
	protocol_line.py protocol_vectors.py requests.py root_changes.py rotations.py sealed.py trust_chain.py trust_document.py \
	walk.py weighing.py)
# Which modules to change, all of the core or some: make mutants MODULE="wire.keys.chain wire.keys.rules"
MODULE ?= all

VENV := .venv
BIN := $(VENV)/bin
BENCH_VENV := .cache/bench/venv
# Folders too: removing a module is a change.
SOURCES := $(shell find wire -name __pycache__ -prune -o -print) pyproject.toml README.md LICENSE
PIP_INSTALL = -m pip install --quiet --quiet --disable-pip-version-check

.PHONY: help demo test test-full core but-core mutants lint bench dev clean
.DELETE_ON_ERROR:

# Either would put somebody else's modules in front of what is installed.
unexport PYTHONPATH PYTHONHOME

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: $(VENV)/.wheel ## two machines, two daemons, an attack and its repair, in half a minute
	$(BIN)/wire demo

test: $(VENV)/.extras ## all tests, in the sizes of continuous integration
	$(BIN)/pytest -n $(JOBS) --dist worksteal $(PYTEST_ARGS)

test-full: $(VENV)/.extras ## all tests, in the sizes of the promises; takes long
	WIRE_TEST_SIZE=full $(BIN)/pytest -n $(JOBS) --dist worksteal $(PYTEST_ARGS)

core: $(VENV)/.extras ## the trust core under its own tests, which must run every branch of it
	@mkdir -p .cache
	$(BIN)/coverage run -m pytest -q -p no:xdist $(CORE_TESTS)
	$(BIN)/coverage report

# For `make test` after `make core`, which has run these.
but-core:
	@echo $(addprefix --ignore=,$(CORE_TESTS))

mutants: $(VENV)/.extras ## small changes of the core, each of which a test of the core must notice; takes long
	$(BIN)/python -P tools/mutants.py $(MODULE) -- $(CORE_TESTS)

lint: $(VENV)/.extras ## style, formatting, types and import floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/floors.py

bench: $(BENCH_VENV)/.wheel ## measure against the floors of the same run, in a clean environment
	$(BENCH_VENV)/bin/python -P bench/run.py $(BENCH_ARGS)

dev: $(VENV)/.extras ## an environment for work on the code: .venv with an editable install
	$(BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation --force-reinstall --editable .
	@rm -f $(VENV)/.wheel # so that the next `make test` puts the wheel back
	@echo "ready: . $(BIN)/activate"

clean: ## remove everything that was built here
	rm -rf $(VENV) .cache dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find wire tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment, with what builds the wheel.
$(VENV)/.made: pyproject.toml tools/make-venv
	tools/make-venv $(PYTHON) $(VENV)
	$(BIN)/python $(PIP_INSTALL) "build>=1.2" "hatchling>=1.27" "editables>=0.5"
	@touch $@

# `build` makes the sdist from the tree and the wheel from the sdist. -P keeps the root, with its links `daemon` and
# `keys`, off sys.path.
dist/.built: $(VENV)/.made $(SOURCES)
	@rm -rf dist && mkdir -p .cache
	$(BIN)/python -P -m build --no-isolation --outdir dist . >.cache/build.log 2>&1 || { cat .cache/build.log; exit 1; }
	@touch $@

# The second install replaces a wheel of the same version; the first brings what it needs.
$(VENV)/.wheel: dist/.built
	$(BIN)/python $(PIP_INSTALL) dist/*.whl
	$(BIN)/python $(PIP_INSTALL) --no-deps --force-reinstall dist/*.whl
	@touch $@

$(VENV)/.extras: $(VENV)/.wheel
	$(BIN)/python $(PIP_INSTALL) "$$(echo dist/*.whl)[test,dev]"
	@touch $@

# Nothing but the wheel and what it needs: an editable install or a plugin would be measured with it.
$(BENCH_VENV)/.wheel: dist/.built
	@mkdir -p $(dir $(BENCH_VENV))
	tools/make-venv $(PYTHON) $(BENCH_VENV)
	$(BENCH_VENV)/bin/python $(PIP_INSTALL) dist/*.whl
	@touch $@
