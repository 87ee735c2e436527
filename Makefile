# Everything one can do here; `make help` lists it. `make` alone makes a fresh Debian or Ubuntu ready to run.
#
# The native part is a list: native/Makefile.inc says which sources make which program (LAUNCH_SOURCES and so on below).

SHELL := /bin/sh
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

# Shows each command's subject: make V=1.
SHOW := @$(if $(V),echo,true)

BIN := bin
NODE_MODULES := node_modules/.package-lock.json
COMMANDS := $(BIN)/llm-do $(BIN)/llm-do-exec

include native/Makefile.inc

# musl, because the start-up of a static glibc alone costs half a millisecond per program.
ifeq ($(origin CC),default)
CC := musl-gcc
endif
CFLAGS  ?= -std=gnu11 -O2 -fdata-sections -Wall -Wextra -Werror -fPIE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
# Static, at a random address, relocations read-only before main, no executable stack. What each costs: docs/internals/performance.md.
LDFLAGS ?= -s -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code,--sort-section=alignment
# Debian's musl-gcc has no specs for -static-pie, so its start files are named here; every other compiler knows the option.
MUSL_LIB = $(shell sed -n 's/.*-specs "\(.*\)\/[^/]*".*/\1/p' "$$(command -v $(firstword $(CC)))" 2>/dev/null)
ifneq ($(findstring musl,$(CC)),)
# Before the setup there is no compiler yet; whoever needs it says so (NATIVE_STAMP).
GCC_FILE = $(shell $(CC) -print-file-name=$(1) 2>/dev/null)
LINK_FIRST = -static -nostartfiles -Wl,-pie,--no-dynamic-linker,-z,text $(MUSL_LIB)/rcrt1.o $(MUSL_LIB)/crti.o $(call GCC_FILE,crtbeginS.o)
LINK_LAST  = $(call GCC_FILE,crtendS.o) $(MUSL_LIB)/crtn.o
else
LINK_FIRST = -static-pie
endif

PROGRAMS := $(addprefix $(BIN)/,llm-do init net container probe)

# Elsewhere docker is the backend, and node the command.
ifneq ($(shell uname -s),Linux)
PROGRAMS :=
endif

.PHONY: native-programs other-native install uninstall packages deb devcontainer release release-files all setup setup-test native build run check lint types unit watch sweep native-unit analyze contract fuzz soak mutants drivers test test-all test-touched setup-test-all client-table golden bench fleet-demo doctor clean help FORCE

## ---- set up

all: setup ## the same as setup, and what to do next
	@echo 'make: ready. Next: $(BIN)/llm-do exec -- ls -l   and   $(BIN)/llm-do doctor' >&2

# For a make within a make whose caller has not said how much at once.
AT_ONCE = --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 1))

setup: ## all that a fresh machine needs: system packages, npm packages, native programs, build
	@scripts/setup run
	@git config core.hooksPath >/dev/null 2>&1 || git config core.hooksPath scripts/hooks 2>/dev/null || :
	@$(MAKE) -q $(AT_ONCE) native build 2>/dev/null || echo 'make: compiling and bundling (V=1 shows each file)' >&2
	@$(MAKE) $(AT_ONCE) native build

setup-test: setup ## what only the tests need: docker, clients and servers, compilers
	@scripts/setup test

setup-test-all: setup-test ## what only make test-all needs: podman, emulators, a JDK, a browser
	@scripts/setup test-all

$(NODE_MODULES): package.json package-lock.json
	@echo 'make: installing npm packages' >&2
	@npm ci --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

## ---- the native programs

native: $(PROGRAMS) $(if $(filter Linux,$(shell uname -s)),$(COMMANDS)) ## compile native/, static, into bin/ (CC=aarch64-linux-gnu-gcc cross-compiles)
	@:

# musl-gcc sees no kernel headers of its own; it gets exactly those three directories and nothing of glibc.
MUSL := $(findstring musl,$(CC))
MULTIARCH = $(shell gcc -print-multiarch 2>/dev/null)
ASM_HEADERS = $(firstword $(wildcard /usr/include/$(MULTIARCH)/asm /usr/include/asm))
KERNEL_HEADERS := build/include
NATIVE_INCLUDE := $(if $(MUSL),-isystem $(KERNEL_HEADERS))

$(KERNEL_HEADERS)/.made: Makefile
	@test -e /usr/include/linux/landlock.h && test -n "$(ASM_HEADERS)" || { \
	  echo 'make: kernel headers: /usr/include/linux/landlock.h is missing (hint: apt-get install linux-libc-dev, or: make setup)' >&2; exit 1; }
	@rm -rf $(KERNEL_HEADERS) && mkdir -p $(KERNEL_HEADERS)
	@ln -s /usr/include/linux $(KERNEL_HEADERS)/linux
	@ln -s /usr/include/asm-generic $(KERNEL_HEADERS)/asm-generic
	@ln -s $(ASM_HEADERS) $(KERNEL_HEADERS)/asm
	@touch $@

# Another compiler or other flags make everything again.
NATIVE_COMMAND := $(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(LINK_FIRST) $(LINK_LAST)
LINK_FIRST := $(LINK_FIRST)
LINK_LAST  := $(LINK_LAST)
comma := ,
# A second directory (BIN=build/arm64/bin) has a compiler of its own.
NATIVE_MADE  := $(if $(filter bin,$(BIN)),build/native,$(BIN))
NATIVE_STAMP := $(NATIVE_MADE).command
NATIVE_HINT  := $(if $(MUSL),make setup$(comma) or another one: make native CC=gcc,make setup-test-all installs the one for the other machine)
$(NATIVE_STAMP): FORCE
	@command -v $(firstword $(CC)) >/dev/null || { \
	  echo 'make: $(firstword $(CC)): no such compiler (hint: $(NATIVE_HINT))' >&2; exit 1; }
	@mkdir -p $(@D) $(BIN)
	@echo '$(NATIVE_COMMAND)' | cmp -s - $@ || echo '$(NATIVE_COMMAND)' >$@

# A source is compiled once for all programs that have it. Another make may be at the same file, so it gets its name when it is whole.
OBJECTS := $(NATIVE_MADE).objects
objects_of = $(patsubst native/%.c,$(OBJECTS)/%.o,$(1))
$(OBJECTS)/%.o: native/%.c Makefile $(NATIVE_STAMP) $(if $(MUSL),$(KERNEL_HEADERS)/.made)
	@mkdir -p $(@D)
	$(SHOW) '  CC $<'
	@new=$@.$$$$; $(CC) $(CPPFLAGS) $(CFLAGS) $(NATIVE_INCLUDE) -MMD -MP -MF $$new.d -MT $@ -c -o $$new $< && mv $$new.d $(@:.o=.d) && mv $$new $@ || { rm -f $$new $$new.d; exit 1; }

# $(call program,NAME,SOURCES)
define program
$(BIN)/$(1): $(call objects_of,$(2)) native/Makefile.inc
	$(SHOW) '  LD $$@'
	@new=$$@.$$$$$$$$; $(CC) $(CFLAGS) $(LDFLAGS) -o $$$$new $(LINK_FIRST) $(call objects_of,$(2)) $(LINK_LAST) && mv $$$$new $$@
-include $(patsubst %.o,%.d,$(call objects_of,$(2)))
endef
$(eval $(call program,llm-do,$(HOST_SOURCES)))
$(eval $(call program,init,$(INIT_SOURCES)))
$(eval $(call program,net,$(NET_SOURCES)))
$(eval $(call program,container,$(CONTAINER_SOURCES)))
$(eval $(call program,probe,$(PROBE_SOURCES)))

contract: $(NODE_MODULES) ## write what both languages share, from native/contract.yaml
	@node scripts/contract.mjs

## ---- the TypeScript part

SOURCES := $(shell find src -type f)

build: dist/cli.cjs $(COMMANDS) ## bundle src/ into dist/, declarations into dist/types, the commands into bin/
	@:

dist/cli.cjs: $(SOURCES) $(wildcard profiles/*.yaml scripts/*.mjs) package.json tsconfig.json $(NODE_MODULES)
	@node scripts/build.mjs

# On Linux the commands are one program (which finds dist/cli.cjs next to itself), elsewhere two lines of node.
ifeq ($(shell uname -s),Linux)
$(BIN)/llm-do-exec: $(BIN)/llm-do
	@ln -f $< $@
else
$(COMMANDS): scripts/commands.mjs scripts/portable.sh
	@node scripts/commands.mjs
endif

## ---- installing it

PREFIX ?= /usr/local
NATIVE_PROGRAMS = $(notdir $(PROGRAMS))
export PREFIX DESTDIR NATIVE_PROGRAMS

install: native build ## install below DESTDIR/PREFIX (/usr/local): programs, manual pages, completions
	@packaging/install

uninstall: ## remove what make install has installed there
	@packaging/uninstall

FEATURE ?= build/devcontainer/llm-do
devcontainer: native build ## the feature for dev containers with what is built, in build/devcontainer/llm-do
	@rm -rf $(FEATURE) && mkdir -p $(dir $(FEATURE)) && cp -R packaging/devcontainer/llm-do $(FEATURE)
	@PREFIX=/usr/local DESTDIR=$(abspath $(FEATURE))/built WITHOUT_COMPILED=1 packaging/install

# The other machine's programs; the compiler for this one's is the usual one.
ifeq ($(shell uname -m),aarch64)
OTHER := x64
OTHER_CC ?= x86_64-linux-gnu-gcc
PACKED := arm64=$(BIN) x64=build/x64/bin
else
OTHER := arm64
OTHER_CC ?= aarch64-linux-gnu-gcc
PACKED := x64=$(BIN) arm64=build/arm64/bin
endif

other-native:
	@$(MAKE) $(AT_ONCE) native CC=$(OTHER_CC) BIN=build/$(OTHER)/bin

PACKAGES ?= build/packages
packages: native build $(if $(BOTH),other-native) ## the packages of npm for this machine and of Python, into build/packages; BOTH=1: for x64 and arm64
	@node packaging/npm.mjs $(PACKAGES) $(if $(BOTH),$(PACKED),$(firstword $(PACKED)))
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) packaging/make-python $(PACKAGES)

DEB_ARCHITECTURE := $(if $(filter aarch64,$(shell uname -m)),arm64,amd64)
# Of the sources, not of the build.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
DEB ?= build/packages/llm-do-exec_$(VERSION)_$(DEB_ARCHITECTURE).deb
deb: native build ## a package for Debian and Ubuntu, into build/packages
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) packaging/make-deb $(DEB) $(DEB_ARCHITECTURE)

# REPOSITORY and MAINTAINER: what package.json has as an address that nobody can register, until they are decided.
export REPOSITORY MAINTAINER
RELEASE ?= build/release
release: $(NODE_MODULES) ## check the tree and build the files of a release twice: make release REPOSITORY=https://... MAINTAINER='NAME <MAIL>'
	@scripts/setup release
	@node packaging/release.mjs $(RELEASE)

release-files: native build other-native # the files of a release, once, of what is here
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) node packaging/release-files.mjs $(RELEASE) $(PACKED)

native-programs: # their names, for packaging/tree
	@echo $(NATIVE_PROGRAMS)

run: setup ## the main job on a real command: one allowed action, one denied, one JSON result
	@scripts/demo

## ---- checks

# Two at a time: the analyzers and the compiler of TypeScript fill what the waits of the tests leave of two processors.
check: $(NODE_MODULES) ## lint, types, unit, golden and architecture tests, C units, analyzers; no root, no network
	@$(MAKE) --no-print-directory -j2 --output-sync=target unit analyze lint types native-unit

# Not by npx, which takes most of a second to find what is here.
VITEST := node node_modules/vitest/vitest.mjs
BIOME := node_modules/.bin/biome
TSC := node_modules/.bin/tsc

lint: $(NODE_MODULES) ## biome: lint and format; plain English
	@node scripts/plain-english.mjs
	@$(BIOME) check --error-on-warnings

# A build that is up to date has compiled the sources with the same options.
types: $(NODE_MODULES) ## the TypeScript compiler over sources and tests
	@$(MAKE) --no-print-directory -q dist/cli.cjs 2>/dev/null || $(TSC) --noEmit --emitDeclarationOnly false --declaration false -p .
	@$(TSC) -p tests

unit: $(NODE_MODULES) ## tests without root and sandbox: make unit FILE=tests/policy/merge.test.ts NAME='part of a title'
	@$(VITEST) run --project unit $(FILE) $(if $(NAME),-t '$(NAME)')

watch: $(NODE_MODULES) ## the same, again at every change, only what a change can reach
	@$(VITEST) watch --project unit $(FILE) $(if $(NAME),-t '$(NAME)')

sweep: $(NODE_MODULES) ## the exhaustive comparisons that make test has and make check has not
	@$(VITEST) run --project sweep $(FILE)

# Sources of the native part that have units.
UNIT_TESTED := lib/text lib/files lib/launch-file lib/open-by-steps sandbox/seccomp-eval lib/json-text lib/status client/environment client/exec-in-words client/shell-call client/result client/result-json lib/sha256 lib/utf8 client/capture \
               runner/freshness runner/observer-look lib/launch-cache lib/seal lib/guard lib/guard-zone lib/guard-watch lib/guard-follow lib/guard-config lib/guard-hide lib/hide lib/git-config lib/covers lib/sealed-memory lib/walk lib/tree-size lib/tree-index lib/tree-check lib/tree-question runner/tree-watcher lib/look lib/repository lib/arena lib/fd-message lib/clock lib/loop lib/report-failure lib/run-record lib/cgroup lib/children runner/layer-size lib/layer lib/remove-tree tools/layer-list tools/layer-protected tools/layer-choice tools/layer-changes tools/layer-modes tools/layer-notes tools/layer-paths
UNIT_SOURCES := $(UNIT_TESTED:%=native/%.c)
UNIT_OBJECTS := $(patsubst %.c,build/unit/%.o,$(UNIT_SOURCES) $(wildcard tests/native/unit/*.c))
UNIT_FLAGS := -std=gnu11 -D_GNU_SOURCE= -DLLM_DO_VERSION=0 -O0 -g1 -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all \
              -Inative

# What the launch file's reader returns is never freed: a run needs it to its end.
native-unit: build/unit/run drivers ## unit tests of the native part, in a second: make native-unit NAME='part of a title'
	@ASAN_OPTIONS=detect_leaks=0 $< $(if $(NAME),'$(NAME)')

build/unit/run: $(UNIT_OBJECTS)
	@gcc -fsanitize=address,undefined -o $@ $^

# Programs that show a test what the native part answers, with a main of their own: the linker takes what each needs.
DRIVERS := cgroup/driver network/judge native/answer native/fill native/filter native/program native/rules native/variables native/words
LIBRARY_OBJECTS := $(patsubst %.c,build/unit/%.o,$(shell grep -L '^int main' native/*/*.c))
# What a fuzz target says of the native part is compiled here; scripts/fuzz needs clang, and minutes.
TARGET_OBJECTS := $(patsubst %.c,build/unit/%.o,$(wildcard tests/fuzz/*.c))

# What tests run in sandboxes, static: nothing else need be visible there.
GUESTS := $(addprefix build/drivers/guests/,$(notdir $(basename $(wildcard tests/adversary/programs/*.c))) apply-filter be-dirty deceive-observer detach hide-memory make-calls plant-root)

drivers: $(DRIVERS:%=build/drivers/%) $(GUESTS) build/drivers/native/answer-small $(TARGET_OBJECTS) ## the programs by which system tests ask the native part; the targets of make fuzz are compiled, too
	@:

.PRECIOUS: build/unit/%.o
build/unit/native.a: $(LIBRARY_OBJECTS)
	@rm -f $@ && ar rcs $@ $^

build/drivers/%: build/unit/tests/%.o build/unit/native.a
	@mkdir -p $(@D)
	@gcc -fsanitize=address,undefined -o $@ $^

# Without what the sanitizers reserve: for a test that limits its memory.
build/drivers/native/answer-small: tests/native/answer.c $(call sources,client,capture result result-json) $(call sources,lib,utf8 status json-text) $(BASE) $(NATIVE_HEADERS) Makefile
	@mkdir -p $(@D)
	@gcc $(filter-out -fsanitize=% -fno-sanitize-%,$(UNIT_FLAGS)) -o $@ $(filter %.c,$^)

GUEST = @mkdir -p $(@D) && gcc -D_GNU_SOURCE= -O1 -Wall -Wextra -Werror -static -s -pthread -o $@ $<
build/drivers/guests/%: tests/programs/%.c Makefile
	$(GUEST)
build/drivers/guests/%: tests/adversary/programs/%.c tests/adversary/programs/answer.h Makefile
	$(GUEST)

build/unit/%.o: %.c Makefile
	@mkdir -p $(@D)
	@gcc $(UNIT_FLAGS) -MMD -MP -c -o $@ $<
-include $(UNIT_OBJECTS:.o=.d) $(LIBRARY_OBJECTS:.o=.d) $(TARGET_OBJECTS:.o=.d) $(DRIVERS:%=build/unit/tests/%.d)

analyze: ## the static analyzers of gcc and clang over native/
	@scripts/analyze

MINUTES ?= 20
fuzz: ## the native parsers under libFuzzer, ASan and UBSan, MINUTES=20 each; new inputs are kept in tests/fuzz/corpus
	@scripts/fuzz $(MINUTES)

test: setup-test ## every wall and every promise once, on real components: make test FILE=tests/real/ends.system.test.ts NAME='part of a title' TIMES=20
	@$(MAKE) $(AT_ONCE) drivers
	@CI=$(CI) node scripts/test/main.mjs $(FILE) $(if $(NAME),--name '$(NAME)') $(if $(TIMES),--times $(TIMES))

test-touched: setup-test ## what the working change reaches, its mutants too
	@$(MAKE) $(AT_ONCE) drivers
	@CI=$(CI) node scripts/test/main.mjs --touched

test-all: setup-test-all ## the rest of the product space too, in parts under 50 minutes each: make test-all PART='vm mutants'
	@$(MAKE) $(AT_ONCE) drivers other-native
	@CI=$(CI) node scripts/test/main.mjs --all $(PART)

# A loss shows in minutes: of agents and servers that are killed there is one run of each kind, then sandboxes for as long as asked.
FLEET_CHAOS := node bench/fleet.mjs chaos --tasks 300 --agents 3 --kills 8 --server-kills 4 --within 300 --seed $(or $(SEED),1)

soak: all drivers ## random policies, attacks and kills with a look at the host after each: make soak MINUTES=30 SEED=1 JOBS=4
	$(if $(ROUND),,@$(FLEET_CHAOS) --http && $(FLEET_CHAOS))
	@node scripts/soak.mjs $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(if $(ROUND),--round $(ROUND)) $(if $(JOBS),--jobs $(JOBS))

mutants: all ## breaks a wall at a time, in a copy, and demands that its test notices: make mutants ONLY='NAME NAME'
	@node scripts/mutants.mjs $(ONLY)

client-table: all ## real clients of a restricted network, each allowed and denied, as a table (root)
	@mkdir -p build
	@LLM_DO_TEST_CLIENTS=build/clients.md $(VITEST) run --project system tests/network/clients.deep.system.test.ts
	@cat build/clients.md

golden: $(NODE_MODULES) ## rewrite the golden files; git diff is the review
	@LLM_DO_GOLDEN=write npx --no-install vitest run --project unit

bench: all ## start-up and throughput next to bwrap and its peers
	@test -e bench/main.mjs || { echo 'make: bench/main.mjs: there is no benchmark in this checkout' >&2; exit 1; }
	@node bench/main.mjs

fleet-demo: setup ## Redis, one agent and a few tasks on this machine, and what became of them
	@node bench/fleet.mjs demo

doctor: setup ## what this machine can hold, and the narrow fix for what it cannot
	@$(BIN)/llm-do doctor

clean: ## remove everything that was built
	rm -rf $(BIN) dist build

help: ## this list
	@awk -F ':.*## ' '/^## ---- / { printf "%s%s:\n", n++ ? "\n" : "", substr($$0, 9) } /^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' \
	  $(firstword $(MAKEFILE_LIST))
