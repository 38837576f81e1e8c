"""What the checks of aging share: of 5.10's on arm64 and x86-64, and of 7.3's."""

from kvmseries.measure import bench
from kvmseries.source import catalog
from tests.lab import races, script

ACCESS = "access_tracking_stress_test"
# Of 5.10: arguments with which vCPUs access pages that are aged, after each page that they fault in; and the share of
# these pages that a pass finds young, at least.  Measured: 0.97 and more.
HOT, YOUNG = "-H 4", 0.8
# For lock counts: pages of a vCPU that are aged, and as many that are faulted in; passes over idle vCPUs.
PAGES, PASSES = 64, 4
# A pass beside faulting vCPUs by one over pages as young beside idle ones: 0.95 to 1.04 was measured.
BESIDE = 1.2
# vCPUs' time with aging by that without: 0.99 to 1.04 was measured.
SLOWER = 1.1
# What the test says that has found an access forgotten.
FORGOTTEN = r"\d+ pages were found idle, although vCPUs accessed them after a flush"


def ages(delay_us, command):
    """`command` on a kernel of 5.10 with delays, where aging waits for up to so many us."""
    return script("ages.sh", delay_us, *command)


def lose_nothing(lab, name, command, seconds, delay_us, wanted, most):
    """Run `command` until it has met so many walks that age and that have raced, `wanted`; all runs must go well."""

    def run():
        return lab.stress(ages(delay_us, command), seconds, f"aging-{name}").good().counts()

    races({f"walks_that_age.{what}": times for what, times in wanted.items()}, most, run)


def lock_counts(lab, name):
    """How often base and series, each in place of the kernel of `lab`, take mmu_lock to age PAGES and to fault in pages."""
    args = f"-p -S- -b {PAGES * 4}K -B {PAGES * 4}K -i 2 -n {PASSES}"
    return [
        run
        for label in ("base", "series")
        for run in lab.but(kernel=label).lock_counts(ACCESS, args, (2,), name.format(label))
    ]


def hot(lab, options, vcpus, limit, name):
    """The Ran of "aging" and "no-aging", in virtual time, with pages that vCPUs access; options: more arguments."""
    release, line = catalog.load(lab.series).kernel, f"{HOT} {options}"
    program = [*bench.scheduling(lab.arch, ACCESS, release), f"/tests/{ACCESS}", "-v", vcpus]
    commands = {
        case: [*program, *bench.arguments(ACCESS, lab.arch, args, release)]
        for case, args in {"aging": line, "no-aging": f"{line} -a 0"}.items()
    }
    # Where an access is forgotten although all TLBs were flushed, the test itself fails.
    return lab.virtual(vcpus + 2).run(commands, limit, f"vtime-aging-{name}").good()


def found_young(ran, vcpus):
    """Assert that passes had young pages to age, of 16 a vCPU, and that no access was forgotten."""
    for when in ("idle", "running"):
        young = ran.metric(f"young.{when}", "aging")
        assert young >= YOUNG * 16 * vcpus, (when, young)
    assert ran.metric("touched.after", "aging") > 0 and not ran.metric("false_idle.after", "aging")


def beside(ran):
    """A pass beside vCPUs that fault, by one beside idle ones."""
    return ran.metric("pass_median.running", "aging") / ran.metric("pass_median.idle", "aging")


def with_aging(ran, metric):
    """`metric` with aging by that without."""
    return ran.metric(metric, "aging") / ran.metric(metric, "no-aging")


def forgets(lab, command, name):
    """Assert that access_tracking_stress_test notices what the mutant of `lab` forgets."""
    ran = lab.run(command, 300, name)
    assert ran.status and ran.found(FORGOTTEN), ran.output
