# tokcast: `make demo` for a first look, `make test` for the whole suite.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint bench ranking oracles fit clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet -e . --group dev
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/tokcast predict llama-3.2-3b@Q4_K_M --offline
	$(BIN)/tokcast predict qwen3-30b-a3b@Q4_K_M --host "RTX 4090" --offline

lint: $(STAMP)
	mkdir -p build/types/tokcast
	for d in predictor hosts measurements fits cli; do ln -sfn "../../../$$d" "build/types/tokcast/$$d"; done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	ln -sfn ../../../api/__init__.py build/types/tokcast/__init__.py
	$(BIN)/mypy
	PYTHONPATH=build/types $(BIN)/lint-imports

test: lint
	$(BIN)/pytest

oracles: $(STAMP)
	$(BIN)/python benchmarks/fetch_oracles.py

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

ranking: $(STAMP)
	$(BIN)/python benchmarks/ranking.py

# Fit again, release the coefficients and their held-out error, and bring the docs up to date.
fit: $(STAMP)
	$(BIN)/tokcast fit --save fits/data/coefficients.json -o json > build/scores.json
	mv build/scores.json fits/data/scores.json
	$(BIN)/pip install --quiet -e ".[plots]"
	$(BIN)/tokcast evaluate --save docs > build/evaluate.txt
	$(BIN)/python docs/refresh.py

clean:
	rm -rf build $(VENV)
