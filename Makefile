# Everything starts from Python 3.11 or newer; each command sets up what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := $(VENV)/.run-ready
TEST   := $(VENV)/.test-ready
COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

# Hundreds of processes start in the tests: modules are compiled once, whatever the caller set.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test steady drill check bench bench-store bench-content bench-credentials bench-artifacts bench-mail lint types architecture docs lock clean

run: $(RUN)                ## embedded database with demo data, ready to be called
	$(BIN)/toolgate serve --demo

test: $(TEST)              ## the whole test suite, on real servers
	$(BIN)/python -m pytest -n $(or $(WORKERS),2) --dist loadfile --no-loadscope-reorder

steady: $(TEST)            ## the suite TIMES times beside two busy loops: nothing may fail by chance
	$(BIN)/python -m tests.steady --times $(or $(TIMES),10) --workers $(or $(WORKERS),4)

drill: $(TEST)             ## what takes minutes: a frozen database, kills, many more examples and records, the suite without pack WITHOUT
	WITHOUT=$(or $(WITHOUT),orchestrator) $(BIN)/python -m pytest tests/drill $(wildcard tests/packs/*/drill) -s
	EFFORT=thorough $(BIN)/python -m pytest $$(grep -rl --include='test_*.py' 'tests\.effort' tests)

check: lint types architecture docs test   ## exactly what CI runs

lint: $(TEST)
	$(BIN)/ruff format --check src tests bench docs
	$(BIN)/ruff check src tests bench docs

types: $(TEST)
	$(BIN)/basedpyright --level error

architecture: $(TEST)
	$(BIN)/lint-imports --no-cache

docs: $(TEST)
	$(BIN)/python -m docs.generate --check
	$(BIN)/python -m docs.house --check

bench: $(TEST)             ## side by side, as a table of ratios; BENCH='--only echo' for a part
	$(BIN)/python -m bench calls $(BENCH)

bench-store: $(TEST)       ## documents and a tree, among a thousand and a million; loads them once
	$(BIN)/python -m bench store $(BENCH)

bench-content: $(TEST)     ## pack content at a million rows; loading them takes some minutes
	$(BIN)/python -m bench content

bench-credentials: $(TEST) ## what a look at a credential costs, among ten and among a million
	$(BIN)/python -m bench credentials

bench-artifacts: $(TEST)   ## 10 MiB in and out, beside a bare handler on the same disk
	$(BIN)/python -m bench artifacts

bench-mail: $(TEST)        ## a campaign by mail beside bare aiosmtplib, on SQLite and PostgreSQL
	$(BIN)/python -m bench mail $(BENCH)

lock: | $(BIN)/uv          ## pin every dependency by hash, newest that fits
	$(COMPILE) requirements/tools.in -o requirements/tools.txt
	$(COMPILE) pyproject.toml -o requirements/run.txt
	$(COMPILE) pyproject.toml --all-extras --group test -c requirements/run.txt -o requirements/test.txt
	$(COMPILE) pyproject.toml --extra postgres --extra redis \
		-c requirements/run.txt -c requirements/test.txt -o requirements/host.txt
	$(COMPILE) bench/peers/requirements.in -o bench/peers/requirements.txt
	$(COMPILE) tests/clients/python_1/requirements.in -o tests/clients/python_1/requirements.txt

clean:
	rm -rf $(VENV) .cache .toolgate

$(BIN)/uv: requirements/tools.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "toolgate needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/tools.txt
	@touch $@

$(RUN): requirements/run.txt pyproject.toml | $(BIN)/uv
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install -q --require-hashes -r requirements/run.txt
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install -q --no-deps --no-build-isolation -e .
	@touch $@

$(TEST): requirements/test.txt $(RUN)
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install -q --require-hashes -r requirements/test.txt
	@touch $@
