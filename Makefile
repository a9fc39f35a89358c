# Everything that a person or CI runs. `make help` lists it.

PYTHON ?= python3
VENV   ?= .venv
# More options for pip. Example: the CPU build of torch, which is much smaller than the default one on Linux:
#   make campaign PIP_OPTIONS="--extra-index-url https://download.pytorch.org/whl/cpu"
PIP_OPTIONS ?=
# More options for `assay run`, for `assay prove` and for pytest.
RUN  ?=
PROVE ?=
TEST ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check $(PIP_OPTIONS) -c constraints.txt
RECIPE := pyproject.toml constraints.txt

.PHONY: help campaign test coverage lint format bench proofs check-proofs detection constraints clean

help:
	@echo "make campaign   run the quick campaign and the proofs, write the HTML report"
	@echo "make test       run all tests"
	@echo "make coverage   run all tests, and tell which branches they take (about 1.6 times as long)"
	@echo "make lint       ruff, mypy, pyright, import contracts"
	@echo "make format     apply ruff's formatter and safe fixes"
	@echo "make proofs     write docs/proofs.md from the proofs"
	@echo "make detection  write docs/detection*.md and docs/controls.md from runs over the zoo (an hour and more)"
	@echo "make bench      print the benchmarks, with machine and versions"
	@echo "make clean      remove everything that these made"

campaign: $(VENV)/.installed
	@status=0; \
	$(BIN)/assay run --all --profile quick --known known.toml $(RUN) || status=$$?; \
	case $$status in 0|1|3) ;; *) exit $$status ;; esac; \
	$(BIN)/assay prove $(PROVE) || { proved=$$?; [ $$status -ne 0 ] || status=$$proved; }; \
	$(BIN)/assay report --known known.toml --html .assay/report.html; \
	exit $$status

# A process that has run out of tests takes over half of what the other still has.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

test: $(VENV)/.installed-dev
	$(PYTEST) $(TEST)

coverage: $(VENV)/.installed-dev
	@mkdir -p .cache/coverage
	$(PYTEST) --cov --cov-report=term $(TEST)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src tests
	$(BIN)/pyright
	$(BIN)/lint-imports --cache-dir .cache/imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

proofs: $(VENV)/.installed-dev
	$(BIN)/assay prove $(PROVE) --markdown docs/proofs.md

# Fails when writing docs/proofs.md would change it. What is proved already is not proved again.
check-proofs: $(VENV)/.installed-dev
	@mkdir -p .cache
	@command -v coqc > /dev/null || { echo "coqc is not installed, so docs/proofs.md is not compared: apt-get install coq"; exit 0; }; \
	$(BIN)/assay prove $(PROVE) --markdown .cache/proofs.md > .cache/proofs.txt || { cat .cache/proofs.txt; exit 1; }; \
	diff -u docs/proofs.md .cache/proofs.md || { echo "docs/proofs.md is out of date: make proofs"; exit 1; }

# Faults by three seeds of the ci profile, controls by every claim, and which claims catch what.
# What is missed is on the page: that is no reason to stop.
detection: $(VENV)/.installed-dev
	$(BIN)/assay zoo --faults '*' --profile ci --repeat 3 --markdown docs/detection.md || [ $$? -eq 1 ]
	$(BIN)/assay zoo --controls '*' --markdown docs/controls.md || [ $$? -eq 1 ]
	$(BIN)/assay zoo --faults '*' --all-claims --markdown docs/detection-by-claim.md || [ $$? -eq 1 ]

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks

# The two lists of versions: what runs, and what checks. Nothing is reinstalled while they stand.
$(VENV)/.installed: $(RECIPE) | $(BIN)/python
	@echo "Installing into $(VENV) ..."
	@$(PIP) --upgrade setuptools
	@$(PIP) --no-build-isolation -e ".[torch]"
	@touch $@

$(VENV)/.installed-dev: $(RECIPE) | $(BIN)/python
	@echo "Installing into $(VENV), with what tests and checks need ..."
	@$(PIP) --upgrade setuptools
	@$(PIP) --no-build-isolation -e ".[dev]"
	@touch $@ $(VENV)/.installed

$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(f"assay needs Python 3.11 or newer, and $(PYTHON) is {v.major}.{v.minor}. Try: make PYTHON=python3.12" if v < (3, 11) else 0)'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# A fresh environment with the newest versions that pyproject.toml allows, written down.
constraints:
	rm -rf .cache/constraints
	$(PYTHON) -m venv .cache/constraints
	.cache/constraints/bin/python -m pip install --quiet $(PIP_OPTIONS) --upgrade setuptools
	.cache/constraints/bin/python -m pip install --quiet $(PIP_OPTIONS) --no-build-isolation ".[dev]"
	{ sed -n '/^#/p' constraints.txt; \
	  .cache/constraints/bin/python -m pip freeze --all | grep -v -E '^(pip==|assay )' | sed 's/+cpu$$//'; \
	} > .cache/constraints.txt
	mv .cache/constraints.txt constraints.txt

clean:
	rm -rf $(VENV) .cache .assay .hypothesis build dist src/*.egg-info
