# Thin: Meson builds, scripts/ does the rest. `make help` lists what there is.
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=

# What `make run` shows: a training step, what holds it and what to change.
RUN ?= train llama-3-8b --gpu h200_sxm -b 2 --seq 4096 --recompute full --attention sdpa

# A PyTorch version that python/requirements-test*.txt knows; empty is the default.
TORCH ?=

.PHONY: all help run web docs check test test-python release-check wheel deb dist fuzz coverage bench lint format install clean
all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

help:
	@echo 'make            build the program and the library in $(BUILD)/'
	@echo 'make run        build, then forecast a training step: how long, why, what to change'
	@echo 'make web        the page and the library for browsers, as static files in $(BUILD)/web (needs Node)'
	@echo 'make docs       the site of all pages, static and searchable, in $(BUILD)/site'
	@echo 'make check      unit and command tests, under a minute on an idle machine'
	@echo 'make test       all tests: gcc, clang under ASan and UBSan, fuzzers (about fifteen minutes)'
	@echo 'make test-python  the Python package alone; TORCH=2.6.0 with the oldest PyTorch it supports'
	@echo 'make release-check  packages, commands under sanitizers, engines for many requests, types, the site: what a release needs beyond make test'
	@echo 'make wheel      the Python wheel, in dist/ (ARCH=aarch64: for that processor); make deb: packages for Debian; make dist: the sources'
	@echo 'make fuzz       every parser under libFuzzer, ASan and UBSan for HOURS=1 in all, or RUNS=10000000 each'
	@echo 'make coverage   lines and branches of src/ that unit, golden and command tests reach'
	@echo 'make bench      speed and accuracy as tables; fails where a figure misses what is wanted of it'
	@echo 'make lint       layout, static analysis, include ladder'
	@echo 'make format     lay the sources out'
	@echo 'make install    PREFIX=/usr/local DESTDIR='
	@echo 'make clean      remove the build directories'

$(BUILD)/build.ninja:
	@scripts/setup build
	@meson setup $(BUILD) -Dtests=$$(pkg-config --exists cmocka && echo true || echo false) >/dev/null

run: all
	@$(BUILD)/foretell $(RUN)

web:
	@BUILD=$(BUILD) scripts/web

docs: all
	@scripts/setup docs
	@BUILD=$(BUILD) scripts/docs $(BUILD)/site

check:
	@scripts/setup test
	@[ -f $(BUILD)/build.ninja ] || meson setup $(BUILD) >/dev/null
	@meson configure $(BUILD) -Dtests=true
	@ninja -C $(BUILD) --quiet
	@meson test -C $(BUILD) --no-rebuild --print-errorlogs --suite unit --suite cli

test:
	@scripts/test

test-python: all
	@BUILD=$(BUILD) scripts/test_python $(TORCH)

release-check:
	@scripts/release_check

# ARCH=aarch64: for that processor, by a cross compiler.
ARCH ?=
wheel:
	@scripts/wheel $(if $(ARCH),--for $(ARCH))

deb:
	@scripts/deb

dist:
	@scripts/tarball

# Hours are shared by the targets, RUNS=10000000 are executions of each; what they find stays in build-clang/fuzz.
# RECORD=tests/fuzz/record.tsv adds what was executed to the record behind SECURITY.md's table (scripts/fuzz_record write).
HOURS ?= 1
RUNS ?=
RECORD ?=
fuzz:
	@scripts/setup test
	@[ -f build-clang/build.ninja ] || CC=clang meson setup build-clang -Db_sanitize=address,undefined -Db_lundef=false -Dfuzz=true >/dev/null
	@meson configure build-clang -Dc_args= # scripts/sanitized_build leaves out what only a search for new inputs has use for
	@ninja -C build-clang --quiet
	@scripts/fuzz $(if $(RUNS),-n $(RUNS),-h $(HOURS)) $(if $(RECORD),-r $(RECORD)) build-clang

coverage:
	@scripts/coverage

bench: all
	@BUILD=$(BUILD) scripts/bench

lint:
	@scripts/setup lint
	@$(MAKE) --no-print-directory all
	@scripts/lint $(BUILD)

format:
	@find include src cli tests bench -name '*.[ch]' ! -name '*_list.h' ! -name 'keys_*.h' -exec clang-format -i {} +

install: all
	@meson configure $(BUILD) --prefix=$(abspath $(PREFIX))
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD)

clean:
	@rm -rf $(BUILD) build-clang build-coverage build-tsan build-wasm
