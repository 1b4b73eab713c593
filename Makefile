# `make demo` and `make test` set up what they need; the other targets too. `make demo PROVIDER=gcp`: another cloud.
.DELETE_ON_ERROR:
PYTHON ?= python3
PROVIDER ?= aws
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo test matrix check format bench lock clean

setup: $(READY)

$(READY): requirements-dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Trellis needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: $(READY)
	$(BIN)/trellis demo --provider $(PROVIDER)

test: $(READY)
	$(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder -m "not matrix"

# Every fault on every call that Trellis makes: hundreds of clusters, several minutes on a quiet machine.
matrix: $(READY)
	$(BIN)/python -m pytest -m matrix

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m bench

# Renews the locks from pyproject.toml. No registry's address enters them.
LOCK := uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.11 --custom-compile-command "make lock"
lock:
	$(LOCK) --extra sandbox pyproject.toml -o requirements.lock
	$(LOCK) sandbox/openstack/requirements.in -o sandbox/openstack/requirements.lock
	$(LOCK) --extra sandbox --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
