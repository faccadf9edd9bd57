# `make demo` and `make test` need a Python of 3.10 or later with its venv module; the rest is set up in .venv.

PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
INSTALLED := .venv/.installed
# One thread a process, and no window: the tests run beside one another and on machines without a screen. Each of the
# hundreds of processes that tests start reads the modules' bytecode rather than compile them again.
QUIETLY := OMP_NUM_THREADS=1 SDL_VIDEODRIVER=dummy MPLBACKEND=Agg PYTHONDONTWRITEBYTECODE=

.PHONY: demo test test-uncompiled test-compiled test-long test-libraries fuzz lint format bench docs docs-serve clean

demo: $(INSTALLED)
	$(BIN)/fair-envs demo

# The first two need one core each. The compiled tests need all of them, and begin when the first of the two ends.
test: $(INSTALLED)
	$(MAKE) --no-print-directory -j 2 lint test-uncompiled test-compiled

test-uncompiled: $(INSTALLED)
	$(QUIETLY) NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m nojit

# A file's tests run in one process, which compiles each layout of its lanes and makes each fixture once. The order is
# that of the files: those with few tests take as long as others, and would come last.
test-compiled: $(INSTALLED)
	$(QUIETLY) $(BIN)/python -m pytest -m "not long" -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Whole studies, killed processes, the fuzzer: what takes more than ten seconds each.
test-long: $(INSTALLED)
	$(QUIETLY) $(BIN)/python -m pytest -m long

# `make test-libraries NAME=torchrl`: every id in another library, in an environment of its own with the versions that
# were tried. The names are those of tests/libraries/requirements/. The warnings of other libraries are not errors.
LIBRARY := .venv-$(NAME)/bin/python

test-libraries:
	$(PYTHON) -m venv .venv-$(NAME)
	$(LIBRARY) -m pip install --requirement tests/libraries/requirements/$(NAME).txt --editable . pytest hypothesis
	$(QUIETLY) $(LIBRARY) -m pytest -W default tests/libraries/test_$(NAME).py

# What tests/testing/test_every_id.py (`make test-long`) plays; about a minute where the rules are compiled.
fuzz: $(INSTALLED)
	$(QUIETLY) $(BIN)/python -m fair_envs.testing.fuzz all --steps 3000 --layouts 1 --seed 0

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(INSTALLED)
	$(BIN)/fair-envs bench

# The website. Warnings are errors, and every link within it is checked.
SITE := docs/_build/html

docs: $(INSTALLED)
	$(QUIETLY) $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --builder html docs $(SITE)
	$(BIN)/python docs/_links.py $(SITE)

docs-serve: docs
	$(BIN)/python -m http.server --directory $(SITE)

clean:
	rm -rf .venv .venv-* docs/_build docs/api docs/environments .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist fair_envs.egg-info
	find baselines benchmarks fair_envs tests wrappers -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last, so an installation that broke off is taken up again.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python must be 3.10 or later, got " + sys.version if sys.version_info < (3, 10) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-compile --constraint constraints.txt --editable ".[all,dev,docs]"
	touch $@
