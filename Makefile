# Two commands do everything, set-up included: make demo, make test.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test lint messages bench clean

# A virtual environment with the versions that are known to work together.
$(READY): pyproject.toml constraints.txt scripts/setup.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh scripts/setup.sh
	@touch $(READY)

# Reports on the example data: HTML and PDF under reports/demo/<campaign>/.
demo: $(READY)
	@sh scripts/browser.sh
	@PATH="$(BIN):$$PATH" sh scripts/demo.sh

test: $(READY)
	@sh scripts/browser.sh
	$(BIN)/python -m pytest -n auto

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Brings the catalogues of translations up to the messages of the sources; what is new has an empty msgstr.
messages: $(READY)
	$(BIN)/pybabel -q extract --no-location --sort-output -w 120 -o .messages.pot rdmalab
	$(BIN)/pybabel -q update -N --ignore-obsolete --ignore-pot-creation-date -w 120 -D rdmalab -d rdmalab/locale -i .messages.pot
	@rm -f .messages.pot

bench: $(READY)
	taskset -c 0 $(BIN)/python tests/benchmarks/bench.py
	$(BIN)/python tests/benchmarks/batch.py $(REPORTS)

clean:
	rm -rf $(VENV) reports/demo data/rdmalab.duckdb* data/.rdmalab*
