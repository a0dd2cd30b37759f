# Thin: Meson builds, scripts/ does the rest. `make help` lists what there is.
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=

# The forecast that `make run` shows: one vocabulary column fewer is not one column faster.
RUN ?= kernel gemm -m 4096 -n 50257 -k 768 --gpu h200_sxm
RUN_BESIDE ?= kernel gemm -m 4096 -n 50304 -k 768 --gpu h200_sxm

# A PyTorch version that python/requirements-test*.txt knows; empty is the default.
TORCH ?=

.PHONY: all help run test test-python bench lint format install clean
all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

help:
	@echo 'make            build the program and the library in $(BUILD)/'
	@echo 'make run        build, then show one telling forecast'
	@echo 'make test       all tests: gcc, clang under ASan and UBSan, fuzzers (about ten minutes)'
	@echo 'make test-python  the Python package alone; TORCH=2.6.0 with the oldest PyTorch it supports'
	@echo 'make bench      speed and accuracy, as tables'
	@echo 'make lint       layout, static analysis, include ladder'
	@echo 'make format     lay the sources out'
	@echo 'make install    PREFIX=/usr/local DESTDIR='
	@echo 'make clean      remove the build directories'

$(BUILD)/build.ninja:
	@scripts/setup build
	@meson setup $(BUILD) -Dtests=$$(pkg-config --exists cmocka && echo true || echo false) >/dev/null

run: all
	@$(BUILD)/foretell $(RUN)
	@echo
	@$(BUILD)/foretell $(RUN_BESIDE)

test:
	@scripts/test

test-python: all
	@BUILD=$(BUILD) scripts/test_python $(TORCH)

bench: all
	@BUILD=$(BUILD) scripts/bench

lint:
	@scripts/setup lint
	@$(MAKE) --no-print-directory all
	@scripts/lint $(BUILD)

format:
	@find src cli tests bench -name '*.c' -exec clang-format -i {} +

install: all
	@meson configure $(BUILD) --prefix=$(abspath $(PREFIX))
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD)

clean:
	@rm -rf $(BUILD) build-clang build-tsan
