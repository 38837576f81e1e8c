"""What the checks that boot guests share: kernels of v5.10's series, and what is run on them."""

from checks import extra
from kvmseries.base import paths, progress
from kvmseries.data import parse
from kvmseries.kernel import build, mutants, selftests
from kvmseries.measure import bench
from kvmseries.source import catalog
from kvmseries.vm import image, machine, run as guest
from vtime import vtime

TREE = paths.own_tree()
# ns, of the virtual clock: as the instrument's own default.
SLICE = 500


# Delays, and mutants of which kvm.mutant=NAME chooses one: patches/mutants/mutants.yaml. One kernel of an architecture
# is for all of them.
BUGS = ("delays", "x86-delays", "mutants")
# Where the instrument hold-times counts how often mmu_lock is taken.
COUNTS = "/sys/kernel/debug/mmu_lock_counts"


def planted(*names, arch="arm64", configs=(), count=None, note=None, name="v5.10"):
    """The kernel of series `name`, or that of its first `count` patches, with trees.on_top() for
    each of `names`: kvmseries.kernel.mutants."""
    series = catalog.load(name)
    return mutants.kernel(series, names, arch, configs, count, extra.own_base(series), note)


def with_bugs(arch="arm64", configs=()):
    """The kernel with delays in which bug() plants a bug."""
    return planted(*BUGS, arch=arch, configs=configs)


def bug(name):
    """The kernel parameter that plants the bug `name` in the kernel of with_bugs()."""
    return f"kvm.mutant={name}"


def initrd(arch="arm64", name="v5.10"):
    """The initramfs with the selftests of series `name`."""
    series = catalog.load(name)
    return image.base(arch, selftests.build(series, arch, extra.own_base(series)))


def run_planted(
    names, which, commands, seconds, label, arch="arm64", configs=(), params=(), memory=3072, count=None, name="v7.3"
):
    """({name: guest.Outcome}, splats) of `commands`, {name: words}, each of which has `seconds`, on planted(*names), with
    kvm.mutant=WHICH or, if it is "", nothing planted."""
    kernel, archive = planted(*names, arch=arch, configs=configs, count=count, name=name), initrd(arch, name)
    params = (*params, bug(which)) if which else params
    label = f"{label}-{which or 'nothing'}-{arch}"
    with progress.single("planted", label, 120) as note:
        result = guest.run(
            kernel,
            archive,
            machine.Machine(arch, memory=memory, params=params),
            [(test, seconds, command) for test, command in commands.items()],
            label,
            note,
        )
    return dict(zip(commands, result.outcomes)), result.splats


def built(label, arch="arm64", configs=()):
    """The kernel `label`, such as "base" or "series"."""
    series = catalog.load("v5.10")
    (point,) = catalog.points(series, label)
    return build.kernel(series, point.count, arch, configs, TREE)


def script(name, *words):
    """The command that runs tools-testing-selftests-kvm/guest/NAME with `words`."""
    text = (image.GUEST / name).read_text(encoding="utf-8")
    return ("sh", "-c", text, name, *map(str, words))


def stress(kernel, name, command, seconds, cpu="max", params=()):
    """(guest.Outcome, splats) of one command that takes `seconds` on `kernel`, with swap."""
    archive = initrd(kernel.arch)
    with progress.single("stress", name, seconds) as note:
        # Everything takes longer with lockdep and KASAN, and a vCPU's end is waited for.
        result = guest.run(
            kernel,
            archive,
            machine.Machine(kernel.arch, cpu, params=(machine.SWAP, *params)),
            [("stress", 3 * seconds + 120, list(command))],
            name,
            note,
        )
    if result.outcomes[0].status == 124:
        # Its output says where its threads were; this, whether the kernel knows why.
        print(f"{name}: its time was up; the kernel reports: {result.splats or 'nothing'}")
    return result.outcomes[0], result.splats


def races(wanted, most, run):
    """Call run(), which returns {race: times} of what went well, `most` times at most, until each race of
    `wanted`, {race: times}, was met as often."""
    hit = dict.fromkeys(wanted, 0)
    # A host that is slow by the load of others gets its time.
    for _ in range(most):
        met = run()
        hit = {race: hit[race] + met[race] for race in hit}
        if all(hit[race] >= wanted[race] for race in hit):
            return
    # Or nothing has raced, and this has shown nothing.
    assert all(hit[race] >= wanted[race] for race in hit), hit


def virtual(kernel, name, commands, cpus, params=(), slice_ns=SLICE, memory=3072, series="v5.10"):
    """Run `commands` in virtual time, of the selftests of `series`: the guest.Result, all of them well."""
    archive = initrd(kernel.arch, series)
    with progress.single("vtime-guest", f"virtual time: {name}", 15) as note:
        emulated = machine.Machine(
            kernel.arch,
            vtime.CPUS[kernel.arch],
            cpus=cpus,
            memory=memory,
            params=params,
            clock="virtual",
            model=vtime.NOMINAL,
            slice_ns=slice_ns,
        )
        result = guest.run(kernel, archive, emulated, commands, f"vtime-{name}", note)
    assert not result.splats
    assert [f"{outcome}"[:4000] for outcome in result.outcomes if outcome.status] == [], result.folder
    return result


def counted_locks(test, args, vcpus, label):
    """Runs of `test` on arm64 as those of lock_counts(), from the normal configuration with
    patches/instruments/v5.10/hold-times.patch: it counts mmu_lock where KVM takes it today, and nowhere else.  In virtual
    time, where threads that spin do not keep each other from two CPUs of the host."""
    series = catalog.load("v5.10")
    (point,) = catalog.points(series, label)
    kernel = planted("hold-times", count=point.count)
    line = bench.arguments(test, "arm64", args, series.kernel)
    commands = [
        (
            f"{test}-{count}",
            60 * (1 + count),
            ["/tests/lockphase", "-f", COUNTS, "--", f"/tests/{test}", "-v", str(count), *line],
        )
        for count in vcpus
    ]
    result = virtual(kernel, f"counts-{label}-{test}", commands, max(vcpus) + 2)
    return [
        {
            "kernel": label,
            "vcpus": count,
            "metric": found.metric,
            "iteration": found.iteration,
            "samples": [found.value],
        }
        for count, outcome in zip(vcpus, result.outcomes)
        for found in parse.parse(test, outcome.output)
        if found.metric.startswith("mmu_lock_")
    ]


def lock_counts(test, args, vcpus, kernels, arch="arm64", params=()):
    """Runs of `test` (a key of bench.yaml, with `args` over its defaults) on the lockstat kernels named by
    `kernels`, such as "base,series": with lock counts, and without times."""
    series = catalog.load("v5.10")
    runs, _ = bench.run(
        bench.Job(
            series=series,
            arch=arch,
            test=test,
            line=tuple(bench.arguments(test, arch, args, series.kernel)),
            vcpus=vcpus,
            points=catalog.points(series, kernels),
            samples=1,
            configs=(),
            counts=True,
            times=False,
            cpu="max",
            accel="tcg",
            params=params,
            kernel=TREE,
        )
    )
    return runs
