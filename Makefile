# SPDX-License-Identifier: Apache-2.0
# The few commands of daily work. What they do stands in scripts/; everything is relative to this folder.
.DEFAULT_GOAL := help
.PHONY: help run build test test-kafka ci check bench sim fuzz fmt lint screenshots clean
MAKEFLAGS += --no-print-directory

LISTEN ?= 127.0.0.1:8080
SEED ?= 1
STEPS ?= 100000
BUILD ?= release
FUZZ_SECONDS ?= 60

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' Makefile | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'

run: build ## installs what is missing, builds, and opens the demo (LISTEN=127.0.0.1:8080)
	@exec build/holdfast demo --listen $(LISTEN)

build: ## installs what is missing and builds build/holdfast
	@scripts/packages build
	@scripts/packages web || echo 'build: going on without Node'
	@scripts/build release

test: ## the tests: lint, unit, store, simulator, API, faults, PostgreSQL, browser, operations
	@scripts/packages build web test
	@scripts/test

test-kafka: ## the distributed mode on a real Apache Kafka, one broker and three
	@scripts/packages build web test kafka
	@scripts/test kafka

ci: ## the same, what threads share under ThreadSanitizer, and a real Kafka
	@scripts/packages build web test kafka
	@scripts/test all

check: ## the fast part of test: lint and unit
	@scripts/packages build test
	@scripts/test lint unit

bench: build ## holds per second over HTTP, next to redis-benchmark
	@scripts/packages test
	@scripts/bench

SIM = $(if $(filter release,$(BUILD)),build,build/$(BUILD))/test/sim/sim
sim: ## one run of the simulator: make sim SEED=7 STEPS=1000000 (BUILD=asan: as the tests run it)
	@scripts/packages build
	@scripts/build $(BUILD) test/sim/sim
	@$(SIM) --seed $(SEED) --steps $(STEPS)

fuzz: ## every fuzzer for FUZZ_SECONDS each
	@scripts/packages build dev
	@scripts/fuzz $(FUZZ_SECONDS)

fmt: ## formats the C sources (clang-format 14)
	@scripts/packages dev
	@find src test -name '*.[ch]' -exec clang-format-14 -i {} +

lint: ## checks on the sources that no compiler makes
	@scripts/packages build
	@scripts/lint

screenshots: build ## makes the pictures in docs/images
	@scripts/packages web test
	@node test/web/screenshots.mjs

clean: ## removes everything that was built
	@rm -rf build web/dist web/node_modules
