# One entry for people and CI alike. Everything runs in .venv, which `make setup` creates; no compiler is needed.
.DEFAULT_GOAL := help
.PHONY: help setup run test package-test image-test check generated fix bench faults docs
PY := .venv/bin/python
STAMP := .venv/.rsched-setup

help:
	@echo "make run | test | check | bench | faults | docs   (ARGS=... is passed on; faults: the long fault runs)"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@set -e; found=; for p in $(PYTHON) python3.11 python3 python; do \
	  if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$p; break; fi; \
	done; \
	if [ -z "$$found" ]; then echo "Python 3.11 or newer is needed, as python3.11 or python3 on PATH, or as PYTHON=..." >&2; exit 1; fi; \
	if ! $(PY) -m pip --version >/dev/null 2>&1; then $$found -m venv .venv; fi
	$(PY) -m pip install --disable-pip-version-check --quiet --prefer-binary -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

run: setup
	@exec .venv/bin/rsched up --demo $(ARGS)

# Two time zones of the host, neither of which may change anything. Three at once, as much of it is waiting. One short fault run of each kind is among these tests.
test: setup
	TZ=Asia/Kathmandu $(PY) -m pytest -n 3 -m 'not faults and not packaging' $(ARGS)
	TZ=America/St_Johns $(PY) -m pytest -n 3 tests/core tests/scheduler tests/sim $(ARGS)

# The wheel and the sdist, each installed into a new environment and started; needs a package index.
package-test: setup
	$(PY) -m pytest -m packaging tests/packaging $(ARGS)

# The container image with a fleet of its containers; needs podman (or ENGINE=docker), and root unless BASE names an image.
image-test: setup
	$(PY) -m docker.try_image --engine '$(or $(ENGINE),podman)' --base '$(BASE)'

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	@$(MAKE) --no-print-directory generated

generated: setup
	@$(PY) -m tools.generate --check

# Puts right what ruff can put right by itself.
fix: setup
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

bench: setup
	$(PY) -m bench $(ARGS)

# The long fault runs, one at a time: they measure instants.
faults: setup
	$(PY) -m pytest -m faults $(ARGS)

docs: setup
	$(PY) -m tools.generate
