# The commands of this project. Each installs what it lacks, can be interrupted and repeated, and
# keeps all that it makes under out/, but for downloads and the compiler cache (SERIES_CACHE, by default
# ~/.cache/kvm-series). TREE=/path uses your own tree as the base of the series.

VCPUS ?= 1,2,4,8,16
OUT = $(or $(SERIES_OUT),out)
# run, proof and soak are of one series; test, test-all and check of all, unless SERIES names one.
ONE = $(or $(SERIES),v5.10)
KNOWN = $(patsubst patches/%/base,%,$(wildcard patches/*/base))
ifneq ($(filter-out $(KNOWN),$(SERIES))$(word 2,$(SERIES)),)
$(error unknown series '$(SERIES)': SERIES is one of $(KNOWN))
endif
QEMU = $(filter qemu-%,$(ONE))
RESULTS = $(OUT)/results/$(ONE)-arm64-$(if $(QEMU),migration,dirty_log_perf_test).json
# Options of make run; migrations have their own numbers of vCPUs.
BENCH = $(if $(QEMU),,--arch arm64 --vcpus $(VCPUS) --retry 6)
PYTEST = $(OUT)/venv/bin/python -m pytest -o cache_dir=$(OUT)/pytest $(if $(SERIES),--series $(SERIES)) $(ARGS)
# With the time of each check that takes a second or more, and of all for machines.
RUN = $(PYTEST) -s -v --durations=0 --durations-min=1
CHECKS = scripts/kvmseries scripts/vtime model/runner qemu-migration/migrate tools-testing-selftests-kvm tests

TREE ?=
export TREE

.PHONY: help run proof ready test test-all check soak deps clean

help:
	@echo 'make run    build base and series for arm64, boot both, run dirty_log_perf_test, compare'
	@echo 'make proof  the patched code under a model checker: all scenarios, all mutants (minutes)'
	@echo 'make test   unit tests, patches, builds, functional selftests, a race and a mutant for each kernel (about an hour)'
	@echo 'make test-all  every check (hours): each step builds, all mutants, the clock, migrations; ARGS=--lf: those that have failed'
	@echo 'make check  the checks that boot nothing (minutes)'
	@echo 'make soak   selftests and stress on all configurations, resumable (HOURS=4 in all); SERIES=qemu-10.0: random migrations'
	@echo 'make deps   install what the above install when they need it'
	@echo 'make clean  remove out/, which holds all that was made; downloads and the compiler cache stay'
	@echo 'CONTAINER=1 with any of these: in a container of Debian, by podman or docker, on hosts that are not Debian'
	@echo 'Variables: SERIES=$(ONE) (of make test, test-all and check: all) VCPUS=$(VCPUS) TREE=/path/to/your/tree; see scripts/series -h'

ifdef CONTAINER
run proof test test-all check soak deps:
	@scripts/container make $@ $(filter-out CONTAINER=% TREE=%,$(MAKEOVERRIDES))
else

# A round is disturbed now and then (Documentation/results.md): rounds that do not agree are measured again, and the output says so.
# If they still do not agree, the results are kept and marked: they have a page, too, and bench's exit status stays.
run:
	@mkdir -p $(dir $(RESULTS)) && touch $(OUT)/run.begun
	@scripts/series bench $(ONE) $(BENCH) --json $(RESULTS); status=$$?; \
	if [ -e $(RESULTS) ] && ! [ $(RESULTS) -ot $(OUT)/run.begun ]; then \
		scripts/series report --table none $(RESULTS) || exit; fi; exit $$status

proof:
	@scripts/bootstrap
	@scripts/series prove $(ONE)

# Before pytest begins: the unit tests run compilers, too.
ready:
	@scripts/bootstrap
	@scripts/series deps --checks

test: ready
	@$(RUN) --junit-xml=$(OUT)/tests.xml -m 'not slow' $(CHECKS)

test-all: ready
	@$(RUN) --junit-xml=$(OUT)/tests-all.xml $(CHECKS)

check: ready
	@$(PYTEST) -q -rs -m 'not build and not boot and not slow' $(CHECKS)

soak:
	@scripts/series test $(ONE) --soak $(or $(HOURS),4)

deps:
	@scripts/series deps

endif

clean:
	rm -rf $(OUT)
