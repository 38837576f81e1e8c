"""What the checks of aging share, arm64's (test_6_aging.py) and x86-64's (test_7_aging_x86.py)."""

import re

from checks import guests
from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.data import parse
from kvmseries.measure import bench, counters
from kvmseries.source import catalog

ACCESS = "access_tracking_stress_test"
# Arguments with which vCPUs access pages that are aged, after each page that they fault in; and the share of
# these pages that a pass finds young, at least.  Measured: 0.97 and more.
HOT, YOUNG = "-H 4", 0.8
# A pass beside faulting vCPUs by one over pages as young beside idle ones: 0.95 to 1.04 was measured.
BESIDE = 1.2
# vCPUs' time with aging by that without: 0.99 to 1.04 was measured.
SLOWER = 1.1


def delayed(kernel, name, command, seconds, delay_us, params=()):
    """(guest.Outcome, splats, {race: walks}) of one command on `kernel`, one of patches/instruments with
    delays, where aging waits for up to `delay_us`."""
    outcome, splats = guests.stress(
        kernel, f"aging-{name}", guests.script("ages.sh", delay_us, *command), seconds, params=params
    )
    walks = {what: int(count) for what, count in re.findall(r"^Walks that age: (\w+) (\d+)$", outcome.output, re.M)}
    return outcome, splats, walks


def races(kernel, name, command, seconds, delay_us, wanted, most, params=()):
    """guests.races() of `command`, run as delayed() does; `wanted`: {race: walks}.  All must go well."""

    def run():
        outcome, splats, walks = delayed(kernel, name, command, seconds, delay_us, params)
        assert not outcome.status, outcome.output
        assert not splats
        return walks

    guests.races(wanted, most, run)


def wreck(kernel, name, command, delay_us, params=()):
    """What a minute's run prints on `kernel`, which may not survive it: its output and splats, or the
    console."""
    console = paths.out("runs", f"aging-{name}") / "console.log"
    guests.initrd(kernel.arch)
    paths.remove(console)
    try:
        # Or what is left of a kernel may wait for what is gone until the time is up.
        outcome, splats, _ = delayed(kernel, name, command, 60, delay_us, (*params, "oops=panic"))
        return "\n".join([outcome.output, *splats])
    except Fail:
        # What is used by somebody else by now may be the kernel's.
        return console.read_text(encoding="utf-8", errors="replace")


def hot(label, arch, options, vcpus, limit, name, params=()):
    """figures() of "aging" and "no-aging" with pages that vCPUs access; options: more arguments."""
    line = f"{HOT} {options}"
    return figures(label, arch, {"aging": line, "no-aging": f"{line} -a 0"}, vcpus, limit, name, params)


def found_young(found, vcpus):
    """Assert that passes had young pages to age, of 16 a vCPU, and that no access was forgotten."""
    for when in ("idle", "running"):
        assert found[f"young.{when}"] >= YOUNG * 16 * vcpus, (when, found[f"young.{when}"])
    assert found["touched.after"] > 0 and not found["false_idle.after"]


def figures(label, arch, lines, vcpus, limit, name, params=()):
    """{line: {metric: value}} of the last iteration of access_tracking_stress_test in virtual time, on the
    kernel `label` ("base").

    lines: {line: arguments over bench.yaml's}; limit: seconds for one of them."""
    release = catalog.load("v5.10").kernel
    commands = [
        (
            line,
            limit,
            [
                *bench.scheduling(arch, ACCESS, release),
                f"/tests/{ACCESS}",
                "-v",
                str(vcpus),
                *bench.arguments(ACCESS, arch, args, release),
            ],
        )
        for line, args in lines.items()
    ]
    # Where an access is forgotten although all TLBs were flushed, the test itself fails.
    result = guests.virtual(guests.built(label, arch), f"aging-{name}", commands, cpus=vcpus + 2, params=params)
    counted = counters.by_test(counters.load(result.folder))
    found = {}
    for outcome in result.outcomes:
        measures = parse.parse(ACCESS, outcome.output) + counters.measures(counted[outcome.name])
        last = max(measure.iteration or 0 for measure in measures)
        found[outcome.name] = {measure.metric: measure.value for measure in measures if measure.iteration == last}
    return found
