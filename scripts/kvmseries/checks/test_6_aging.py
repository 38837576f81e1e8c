"""Aging without a lock: that it takes none, that vCPUs that fault and who ages do not slow each other
down, and that no access is forgotten, all by access_tracking_stress_test.  And aging that races:
stage2_fault_stress_test on a kernel whose faults, unmapping and write protection wait for aging to be
there (patches/debug/v5.10-delays.patch).

A walk that ages counts once, however many leaves of it raced.  Bounded, and so with the normal
configuration; for 1,000 of each with lockdep and KASAN, an hour or more on two CPUs:
`SERIES_AGES=1000 make test CHECKS=scripts/kvmseries/checks/test_6_aging.py`
"""

import os
import re

import pytest

from kvmseries import (bench, build, catalog, claims, guest, image, machine, parse, paths, progress,
                       selftests, trees, vtime)
from kvmseries.errors import Fail

KERNEL = os.environ.get("KERNEL") or None

ACCESS = "access_tracking_stress_test"
# Pages of a vCPU that are aged, and how often while vCPUs are idle.
PAGES, PASSES = 64, 4
# In virtual time: iterations, of which the first warms up.
ITERATIONS = 3

# How many of each race there must be; above WANTED with the debug configuration.
WANTED = 20
AGES = int(os.environ.get("SERIES_AGES", str(WANTED)))
CONFIGS = ("debug",) if AGES > WANTED else ()

PROGRAM = "/tests/stage2_fault_stress_test"
# Never so many of everything that it stops before its time.  No vCPU stays at a word.
LINE = (PROGRAM, "-m", "get", "-n", "1000000", "-r", "3", "-i", "1000", "-v", "1")
# All who make aging race, and some who age by themselves
ALL = (*LINE, "-v", "3", "-b", "8M", "-o", "log,punch,rally,age")
# Who makes what race, over what memory: blocks are split and collapsed as logging goes on and off.
RACES = {
    "log": (("lost", "replaced"), "anonymous_thp", "16M"),
    "punch": (("unmapped",), "anonymous", "8M"),
}
# Seconds for one of each.  Measured with two CPUs that are busy otherwise: 0.25, and 0.06 for what
# is unmapped; in a debug kernel many times that.
SECONDS = 1 if AGES <= WANTED else 5
DELAY_US = "5000"
KILLED = 6


@pytest.fixture(scope="module", name="counts")
def _counts():
    """Lock counts of base and series, aged while vCPUs fault in memory that is new to the host, too."""
    series = catalog.load("v5.10")
    line = f"-p -S- -b {PAGES * 4}K -B {PAGES * 4}K -i 2 -n {PASSES}"
    runs, _ = bench.run(bench.Job(
        series=series, arch="arm64", test=ACCESS,
        line=tuple(bench.arguments(ACCESS, "arm64", line, series.kernel)), vcpus=(2,),
        points=bench.points(series, "base,series"), samples=1, configs=(), counts=True, times=False,
        cpu="max", accel="tcg", params=(), kernel=KERNEL))
    return runs


@pytest.mark.boot
def test_aging_takes_no_lock(counts):
    assert not claims.lockless_aging(counts, "series")


@pytest.mark.boot
def test_negative_control_base_takes_the_lock_to_age(counts):
    assert not claims.locked_aging(counts, "base", PAGES, PASSES)
    assert claims.lockless_aging(counts, "base")


@pytest.fixture(scope="module", name="figures")
def _figures():
    """A function: the kernel's label to {"aging", "no-aging": {metric: value}}, of the last iteration
    with 16 vCPUs that fault memory in, in virtual time."""
    found = {}

    def figures(label):
        if label not in found:
            found[label] = _virtual(label)
        return found[label]
    return figures


def _virtual(label):
    series = catalog.load("v5.10")
    kernel = build.kernel(series, dict(base=0, series=len(series.patches))[label], "arm64",
                          kernel_tree=KERNEL)
    initrd = image.base("arm64", selftests.build(series, "arm64", KERNEL))
    commands = []
    for name, more in (("aging", ""), ("no-aging", " -a 0")):
        line = bench.arguments(ACCESS, "arm64", f"-i {ITERATIONS}{more}", series.kernel)
        commands.append((name, 120, ["/tests/spread", f"/tests/{ACCESS}", "-v", "16", *line]))
    with progress.single("vtime-guest", f"virtual time: aging, {label}", 40) as note:
        virtual = machine.Machine("arm64", vtime.CPUS["arm64"], cpus=18, clock="virtual",
                                  model=vtime.NOMINAL, slice_ns=500)
        result = guest.run(kernel, initrd, virtual, commands, f"aging-{label}", note)
    assert not result.splats
    counted = vtime.by_test(vtime.counters(result.folder))
    found = {}
    for outcome in result.outcomes:
        # Where an access is forgotten although all TLBs were flushed, the test itself fails.
        assert not outcome.status, outcome.output
        measures = parse.parse(ACCESS, outcome.output) + vtime.measures(counted[outcome.name])
        found[outcome.name] = {measure.metric: measure.value for measure in measures
                               if measure.iteration == ITERATIONS}
    return found


@pytest.mark.boot
def test_faults_do_not_slow_aging_down(figures):
    aging = figures("series")["aging"]
    assert aging["touched.after"] > 0 and not aging["false_idle.after"]
    assert aging["pass_median.running"] <= 1.2 * aging["pass_median.idle"]


@pytest.mark.boot
def test_negative_control_faults_slow_aging_down_on_base(figures):
    aging = figures("base")["aging"]
    assert aging["pass_median.running"] > 5 * aging["pass_median.idle"]


@pytest.mark.boot
def test_aging_does_not_slow_faults_down(figures):
    aging, none = figures("series")["aging"], figures("series")["no-aging"]
    for metric in ("instructions_per_fault.fault", "fault_memory_time"):
        assert aging[metric] == pytest.approx(none[metric], rel=0.05), metric


@pytest.mark.boot
def test_negative_control_an_access_that_is_forgotten_is_noticed():
    kernel = build.in_tree(trees.planted(catalog.load("v5.10"), ["age-forgets"], KERNEL), "arm64")
    initrd = image.base("arm64", selftests.build(catalog.load("v5.10"), "arm64", KERNEL))
    with progress.single("planted", "a planted bug: age-forgets", 60) as note:
        result = guest.run(kernel, initrd, machine.Machine("arm64"),
                           [(ACCESS, 120, [f"/tests/{ACCESS}", "-b", "512K", "-i", "1"])],
                           "aging-age-forgets", note)
    assert re.search(r"\d+ pages were found idle, although vCPUs accessed them after a flush",
                     result.outcomes[0].output), result.outcomes[0].output
    assert result.outcomes[0].status


def _kernel(*bugs, configs=()):
    """The series' kernel with delays, and with `bugs` planted: use it before the next is made."""
    tree = trees.planted(catalog.load("v5.10"), ["delays", *bugs], KERNEL)
    return build.in_tree(tree, "arm64", configs)


def _run(kernel, name, command, seconds, delay_us=DELAY_US):
    """(guest.Outcome, splats, {race: walks}) of one command on `kernel`, with aging delayed."""
    initrd = image.base("arm64", selftests.build(catalog.load("v5.10"), "arm64", KERNEL))
    script = (image.GUEST / "ages.sh").read_text(encoding="utf-8")
    with progress.single("stress", f"aging: {name}", seconds) as note:
        # Everything takes longer with lockdep and KASAN, and a vCPU's end is waited for.
        result = guest.run(kernel, initrd, machine.Machine("arm64"),
                           [("aging", 3 * seconds + 120,
                             ["sh", "-c", script, "ages.sh", delay_us, *command])],
                           f"aging-{name}", note)
    outcome = result.outcomes[0]
    walks = {what: int(count) for what, count in
             re.findall(r"^Walks that age: (\w+) (\d+)$", outcome.output, re.M)}
    return outcome, result.splats, walks


def _wreck(kernel, name, command, seconds, delay_us=DELAY_US):
    """What a run printed on a kernel that may not survive it: its output and splats, or the console."""
    selftests.build(catalog.load("v5.10"), "arm64", KERNEL)
    paths.remove(paths.out("runs", f"aging-{name}"))
    try:
        outcome, splats, _ = _run(kernel, name, command, seconds, delay_us)
        return "\n".join([outcome.output, *splats])
    except Fail:
        # What is used by somebody else by now may be the kernel's.
        return (paths.out("runs", f"aging-{name}") / "console.log").read_text(
            encoding="utf-8", errors="replace")


def _killing(vms, seconds):
    """The command that has so many VMs killed while they are aged."""
    return (PROGRAM, "-m", "get", "-n", "1000000", "-r", "3", "-i", "300", "-v", "2", "-b", "4M",
            "-o", "punch,age", "-K", "-k", str(vms), "-t", str(seconds))


@pytest.fixture(scope="module", name="delayed")
def _delayed():
    """The kernel with delays and no bug."""
    return _kernel(configs=CONFIGS)


@pytest.mark.boot
@pytest.mark.parametrize("helper", RACES)
def test_aging_that_races_loses_nothing(helper, delayed):
    races, memory, size = RACES[helper]
    seconds, hit = AGES * SECONDS, dict.fromkeys(races, 0)
    # A host that is slow by the load of others gets its time.
    for _ in range(3):
        outcome, splats, walks = _run(delayed, helper, (*LINE, "-o", helper, "-s", memory, "-b", size,
                                                        "-t", str(seconds)), seconds)
        assert not outcome.status, outcome.output
        assert not splats
        hit = {race: hit[race] + walks[race] for race in races}
        if min(hit.values()) >= AGES:
            break
    # Or nothing has raced, and this has shown nothing.
    assert min(hit.values()) >= AGES, hit


@pytest.mark.boot
def test_vms_are_killed_while_they_are_aged(delayed):
    vms = KILLED if AGES <= WANTED else AGES // 20
    outcome, splats, walks = _run(delayed, "late", _killing(vms, 2 * vms), 3 * vms, "20000")
    assert not outcome.status, outcome.output
    assert not splats
    assert walks["late"] >= (1 if AGES <= WANTED else AGES), outcome.output


@pytest.mark.boot
def test_negative_control_what_is_unmapped_comes_back():
    found = _wreck(_kernel("age-without-cmpxchg"), "age-without-cmpxchg", (*ALL, "-t", "60"), 60)
    assert re.search(r": (stale|lost|wrong): |is not in the dirty log|"
                     "WARNING: .* at (stage2_|__kvm_pgtable_)|Unable to handle kernel",
                     found), found


@pytest.mark.boot
@pytest.mark.parametrize("bug, command", [
    ("pgt-freed-without-rcu", _killing(10, 20)),
    ("age-table-freed-without-rcu", (*ALL, "-t", "45")),
])
def test_negative_control_freed_under_aging(bug, command):
    found = _wreck(_kernel(bug), bug, command, 60, "20000")
    assert re.search("WARNING: .*(stage2_age|__kvm_pgtable_walk)|Bad page state|"
                     "Unable to handle kernel", found), found
