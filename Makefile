# Every target works in a clean clone; the virtual environment is made and kept up to date as needed.
PYTHON ?= python3
VENV ?= .venv
JOBS ?= auto
BIN := $(VENV)/bin
C_FILES := $(wildcard native/*/*.[chm] native/*/*/*.[chm] tests/native/*.[ch] tests/native/metal/*.[hm])
NATIVE := $(wildcard native/*/*.[chm] native/*/*/*.[chm]) native/build_ffi.py
BUILD := pyproject.toml setup.py
DEMO := arrays/dict_cache
SOAK := --jobs 2 --fault-runs 3
TRACES := 100000
# What the tests need; some of NumPy's build an extension module.
FOREIGN_PACKAGES := numpy scipy pandas pytest hypothesis setuptools meson ninja cython
export TLMEM_REQUIRE_NATIVE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup site wheels house screenshots demo test test-python test-native hostile traces bench detection pictures attribution corpus ablation soak foreign mutants lint format clean

help: ## show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "tlmem needs Python 3.11 or later; name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Only what recording and reading need.
$(VENV)/.installed: $(BUILD) $(NATIVE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e .
	@touch $@

# The rest of what developing needs. An editable install compiles in a folder that goes away, so the
# extension is left out of it and built below, where only changed C files are compiled again. Python
# compiles a module when it is first imported; most modules of these packages never are.
$(VENV)/.developed: $(BUILD) | $(BIN)/python
	TLMEM_PURE=1 $(BIN)/python -m pip install --quiet --no-compile 'setuptools>=77' -e '.[test,dev]'
	@touch $@

$(VENV)/.built: $(NATIVE) $(VENV)/.developed
	$(BIN)/python setup.py --quiet build_ext --inplace
	@$(BIN)/python -c 'import tlmem._native'
	@touch $@ $(VENV)/.installed

setup: $(VENV)/.developed $(VENV)/.built ## make .venv with everything and build the extension

demo: $(VENV)/.installed ## record a leaking NumPy program and print the report
	@rm -f tlmem-demo.tlm
	$(BIN)/tlmem record -o tlmem-demo.tlm scenarios/programs/$(DEMO).py
	$(BIN)/tlmem report tlmem-demo.tlm

test: setup ## every test, C and Python
	$(BIN)/pytest -n $(JOBS) --dist loadgroup

test-python: setup ## the Python tests only
	$(BIN)/pytest -n $(JOBS) --dist loadgroup -m "not native"

test-native: setup ## the C tests under AddressSanitizer, UBSan, ThreadSanitizer and valgrind
	$(BIN)/pytest -n $(JOBS) -m native

hostile: setup ## forged files and hostile programs, the long ones too
	TLMEM_HOSTILE=long $(BIN)/pytest -n $(JOBS) tests/hostile

traces: setup ## 100,000 random traces through the simulator of CUDA's allocator (TRACES=1000000)
	TLMEM_REPLAY_TRACES=$(TRACES) $(BIN)/pytest -q 'tests/native/test_native.py::test_c[test_replay-address]'

bench: setup ## measure: ns per event, whole programs beside others, bytes per event, reading
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	$(BIN)/python -m benchmarks

attribution: setup ## record programs of many kinds and write where their memory went into docs/attribution.md
	$(BIN)/python -m tlmem.scenarios.harness.attribution > $(VENV)/attribution.md
	mv $(VENV)/attribution.md docs/attribution.md

detection: setup ## record every scenario and write what is found into docs/detection.md
	$(BIN)/python -m tlmem.scenarios.harness.detection docs/detection.md

corpus: setup ## record and judge the programs of tests/corpus, which decide about changes of the rules
	PYTHONPATH=tests $(BIN)/python -m corpus

ablation: setup ## judge recordings with each rule switched off, into docs/reference/rules.md
	PYTHONPATH=tests $(BIN)/python -m corpus.ablation $(VENV)/ablation --record --page docs/reference/rules.md

soak: setup ## every scenario and seeded leak many times; goes on where it was ended (SOAK="--runs 10")
	$(BIN)/python -m tlmem.scenarios.harness.soak --state $(VENV)/soak --page docs/detection.md $(SOAK)

mutants: setup ## break each mechanism of the seed map and run its tests (MUTANTS="S42 S43a")
	PYTHONPATH=tests $(BIN)/python -m mutants --state $(VENV)/mutants --page docs/mutants.md $(MUTANTS)

# Each Python has an environment of its own for it; results are kept below $(VENV)/foreign.
foreign: ## other projects' tests plain and recorded, into docs/foreign.md (PYTHON=python3.12 FOREIGN=numpy)
	@version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])') || \
	    { echo "name a Python of 3.11 or later: make foreign PYTHON=python3.12" >&2; exit 1; }; \
	bin=$(VENV)/foreign-$$version/bin; set -e; \
	[ -x $$bin/python ] || $(PYTHON) -m venv $(VENV)/foreign-$$version; \
	$$bin/python -m pip install --quiet --no-compile . $(FOREIGN_PACKAGES); \
	PYTHONPATH=tests $$bin/python -P -m foreign --state $(VENV)/foreign --page docs/foreign.md $(FOREIGN)

pictures: setup ## draw the pictures in docs/images from a scenario
	$(BIN)/tlmem record -q -f -o $(VENV)/pictures.tlm scenarios/programs/$(DEMO).py
	$(BIN)/tlmem plot $(VENV)/pictures.tlm --kind memory -f -o docs/images/memory.png
	$(BIN)/tlmem plot $(VENV)/pictures.tlm --kind objects -f -o docs/images/objects.png
	$(BIN)/tlmem plot $(VENV)/pictures.tlm --kind growth -f -o docs/images/growth.png

screenshots: setup ## write pictures of the screens to docs/images, of every screen in three sizes below it
	PYTHONPATH=tests $(BIN)/python -m support.story $(VENV)/train.tlm $(VENV)/before.tlm
	PYTHONPATH=tests $(BIN)/python -m support.fleets $(VENV)/run
	$(BIN)/python -m tlmem.dashboards.screenshots $(VENV)/train.tlm docs/images
	$(BIN)/python -m tlmem.dashboards.screenshots $(VENV)/train.tlm docs/images/screens --all --diff $(VENV)/before.tlm --fleet $(VENV)/run

site: ## the docs as a site in build/site; fails where a link leads nowhere
	@[ -x $(VENV)/site/bin/python ] || $(PYTHON) -m venv $(VENV)/site
	$(VENV)/site/bin/python -m pip install --quiet --no-compile "$$(sed -n 's/^site = \["\(.*\)"\]$$/\1/p' pyproject.toml)"
	NO_MKDOCS_2_WARNING=1 $(VENV)/site/bin/mkdocs build --strict

wheels: setup ## a wheel for every Python found, tried in an empty environment, with a share of the tests
	$(BIN)/python .ci/wheels --tests --keep build/wheels

house: setup ## draw the folders and write their table into docs/design.md
	$(BIN)/python docs/house.py

lint: setup ## ruff, mypy and clang-format, changing nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(C_FILES)

format: setup ## bring Python and C into shape
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(C_FILES)

clean: ## remove what was built, not .venv
	rm -rf build dist *.egg-info tlmem/_native*.so tlmem/_native.c tlmem/lib tlmem/include $(VENV)/.built .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
