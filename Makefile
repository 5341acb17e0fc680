# make demo   solve a hard puzzle with the model that ships (base install, no torch)
# make test   lint, type check and test, in an environment of its own
# make fmt    format and fix what ruff can fix
# make clean  remove the environments and all caches

PYTHON ?= python3
PYTEST_ARGS ?= -n 2
PIP_ARGS ?= --quiet --disable-pip-version-check
# From the RRN test set: 17 givens, the fewest that a Sudoku with one solution can have.
PUZZLE ?= 002000010000050600000000000560090000400000002000600080700201000030000900000800000

DEMO = .venv
TEST = .venv-test

.PHONY: help demo test check fmt clean
help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: $(DEMO)/.installed
	@$(DEMO)/bin/mull solve $(PUZZLE)

test: check
	OMP_NUM_THREADS=1 $(TEST)/bin/python -m pytest $(PYTEST_ARGS)

check: $(TEST)/.installed
	$(TEST)/bin/ruff check .
	$(TEST)/bin/ruff format --check .
	$(TEST)/bin/mypy

fmt: $(TEST)/.installed
	$(TEST)/bin/ruff check --fix .
	$(TEST)/bin/ruff format .

# A stamp is newer than what it was made from; a changed dependency installs again, a changed source does not need to.
$(DEMO)/.installed: pyproject.toml constraints.txt
	@echo "installing mull into $(DEMO)"
	@test -x $(DEMO)/bin/python || $(PYTHON) -m venv $(DEMO)
	@$(DEMO)/bin/python -m pip install $(PIP_ARGS) -c constraints.txt -e .
	@touch $@

$(TEST)/.installed: pyproject.toml constraints.txt
	@echo "installing mull and what the tests need into $(TEST)"
	@test -x $(TEST)/bin/python || $(PYTHON) -m venv $(TEST)
	@$(TEST)/bin/python -m pip install $(PIP_ARGS) -c constraints.txt -e '.[all,dev]'
	@touch $@

clean:
	rm -rf $(DEMO) $(TEST) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
