# tokcast: `make demo` for a first look, `make test` for the whole suite.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint bench ranking oracles browser runtimes fit clean

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
	ln -sfn ../../../cli/python/__init__.py build/types/tokcast/__init__.py
	$(BIN)/mypy
	PYTHONPATH=build/types $(BIN)/lint-imports

test: lint
	$(BIN)/pytest

oracles: $(STAMP)
	$(BIN)/python benchmarks/fetch_oracles.py

# What the tests in a browser need: Playwright drives a Chromium that is installed already.
browser: $(STAMP)
	$(BIN)/pip install --quiet --group browser
	mkdir -p build/browser
	test -f build/browser/package/axe.min.js || (cd build/browser && npm pack --silent axe-core@4 && tar -xzf axe-core-4*.tgz)
# Prints where llama-bench and the libraries are: LLAMA_CPP_LIB_PATH, for both ways of measuring.
runtimes: $(STAMP)
	mkdir -p build
	VENV=$(VENV) benchmarks/build_llama.sh > build/llama-folder
	$(BIN)/pip install --quiet "mlx[cpu]" mlx-lm || echo "MLX has no wheel here"
	cat build/llama-folder

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

ranking: $(STAMP)
	$(BIN)/python benchmarks/ranking.py

# Fit again, release the coefficients and their held-out error, and bring the docs up to date.
fit: $(STAMP)
	$(BIN)/tokcast fit --save fits/data/coefficients.json > build/fit.txt
	$(BIN)/tokcast fit -o json > build/scores.json
	mv build/scores.json fits/data/scores.json
	$(BIN)/tokcast fit --part offload --save fits/data/offload.json
	$(BIN)/tokcast evaluate --part offload -o json > build/offload_scores.json
	mv build/offload_scores.json fits/data/offload_scores.json
	$(BIN)/pip install --quiet -e ".[plots]"
	$(BIN)/tokcast evaluate --save docs > build/evaluate.txt
	$(BIN)/tokcast energy evaluate --save fits/data/energy.json > build/energy.txt
	$(BIN)/tokcast scaling --save fits/data/scaling.json --plot docs/scaling.svg > build/scaling.txt
	$(BIN)/python docs/refresh.py

clean:
	rm -rf build $(VENV)
