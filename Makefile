# Every target makes .venv by itself when it is missing or older than pyproject.toml.
ifeq ($(OS),Windows_NT)
PYTHON ?= python
BIN := .venv/Scripts
EXE := .exe
else
PYTHON ?= python3
BIN := .venv/bin
EXE :=
endif
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-bridges test-versions lint bench campaign mutants docs pictures dist clean

help:
	@echo "make demo   install into .venv, report on a built-in arm (out/puma560.html)"
	@echo "make test   run the tests, or those of one part: make test ROOM=simulation (tests/README.md)"
	@echo "make test-bridges   run those that need JAX, PyTorch, CasADi, SymPy, FMPy, Dask, a browser, a graphics device or QEMU"
	@echo "make lint   ruff, mypy --strict, import contracts"
	@echo "make bench  measure speed against Pinocchio, MuJoCo, the Robotics Toolbox and a memory copy"
	@echo "make campaign   random robustness tests for MINUTES=10: robots, arrays, files, cache, forks"
	@echo "make mutants   plant COUNT=20 errors (SEED=1) one by one and tell which of them no test sees; goes on when run again"
	@echo "make pictures   make the screenshots of README and documentation, in Chromium"
	@echo "make dist   build sdist and wheel twice, check them, try the wheel in a clean environment"
	@echo "make test-versions   self-test and some tests with the lowest allowed versions and with other Pythons"
	@echo "make docs   build the documentation (docs/_build/html/index.html)"

$(BIN)/python$(EXE):
	$(PYTHON) -m venv .venv

.venv/.core: pyproject.toml | $(BIN)/python$(EXE)
	@echo "installing armdyn into .venv (a minute or two, once)"
	$(PIP) -e .
	@touch $@

.venv/.dev: pyproject.toml | $(BIN)/python$(EXE)
	@echo "installing armdyn and its development tools into .venv (a few minutes, once)"
	$(PIP) -e ".[dev]"
	@touch $@ .venv/.core

.venv/.peers: .venv/.dev
	@echo "installing the programs to compare with into .venv (a minute, once)"
	$(PIP) -e ".[peers]"
	@touch $@

# The one place that says which PyTorch: for this version a build without CUDA is found; others bring gigabytes of it.
TORCH := torch==2.13.0

.venv/.bridges: .venv/.dev
	@echo "installing JAX, PyTorch, FMPy, Dask and wgpu into .venv (a few minutes, once)"
	$(PIP) -e ".[jax,torch,fmi,scale,gpu]" "$(TORCH)" pyopencl
	@touch $@

demo: .venv/.core
	@mkdir -p out
	$(BIN)/armdyn report puma560 -o out/puma560.html

# The files of ROOM by the table in tests/README.md; without it, all of them.
test: .venv/.dev
	@files=$$($(BIN)/python tests/rooms.py $(ROOM)) && set -x && $(BIN)/python -m pytest -n auto $$files

test-bridges: .venv/.bridges
	$(BIN)/python -m pytest -n auto tests/bridges

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.peers
	$(BIN)/python benchmarks/bench_kernels.py

MINUTES ?= 10
campaign: .venv/.dev
	$(BIN)/python benchmarks/campaign.py --minutes $(MINUTES)

COUNT ?= 20
SEED ?= 1
mutants: .venv/.dev
	$(BIN)/python benchmarks/mutants.py --count $(COUNT) --seed $(SEED)

pictures: .venv/.dev
	$(BIN)/python docs/scripts/pictures.py

docs: .venv/.dev
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

dist: .venv/.dev
	$(BIN)/python packaging/dist.py

test-versions:
	$(PYTHON) packaging/versions.py

clean:
	rm -rf .venv .venv-versions out docs/_build build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
