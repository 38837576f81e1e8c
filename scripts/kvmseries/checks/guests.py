"""What the checks that boot guests share: kernels of v5.10's series, and what is run on them."""

import os

from kvmseries import (bench, build, catalog, guest, image, machine, progress, selftests, trees,
                       vtime)

KERNEL = os.environ.get("KERNEL") or None
# ns, of the virtual clock: as the instrument's own default.
SLICE = 500


def planted(*names, arch="arm64", configs=(), count=None, note=None):
    """The series' kernel, or that of its first `count` patches, with patches/debug/v5.10-NAME.patch for
    each of `names`: use it before the next is made."""
    tree = trees.planted(catalog.load("v5.10"), names, KERNEL, count)
    return build.in_tree(tree, arch, configs, note)


def initrd(arch="arm64"):
    """The initramfs with the series' selftests."""
    return image.base(arch, selftests.build(catalog.load("v5.10"), arch, KERNEL))


def built(label, arch="arm64", configs=()):
    """The kernel `label`, such as "base" or "series"."""
    series = catalog.load("v5.10")
    point, = bench.points(series, label)
    return build.kernel(series, point.count, arch, configs, KERNEL)


def script(name, *words):
    """The command that runs tools-testing-selftests-kvm/guest/NAME with `words`."""
    text = (image.GUEST / name).read_text(encoding="utf-8")
    return ("sh", "-c", text, name, *map(str, words))


def stress(kernel, name, command, seconds, cpu="max", params=()):
    """(guest.Outcome, splats) of one command that takes `seconds` on `kernel`, with swap."""
    archive = initrd(kernel.arch)
    with progress.single("stress", name, seconds) as note:
        # Everything takes longer with lockdep and KASAN, and a vCPU's end is waited for.
        result = guest.run(kernel, archive, machine.Machine(kernel.arch, cpu, params=(machine.SWAP, *params)),
                           [("stress", 3 * seconds + 120, list(command))], name, note)
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


def virtual(kernel, name, commands, cpus, params=(), slice_ns=SLICE):
    """Run `commands` in virtual time: the guest.Result, all of them well."""
    archive = initrd(kernel.arch)
    with progress.single("vtime-guest", f"virtual time: {name}", 15) as note:
        emulated = machine.Machine(kernel.arch, vtime.CPUS[kernel.arch], cpus=cpus, params=params,
                                   clock="virtual", model=vtime.NOMINAL, slice_ns=slice_ns)
        result = guest.run(kernel, archive, emulated, commands, f"vtime-{name}", note)
    assert not result.splats
    assert not any(outcome.status for outcome in result.outcomes), result.folder
    return result


def lock_counts(test, args, vcpus, kernels, arch="arm64", params=()):
    """Runs of `test` (a key of bench.yaml, with `args` over its defaults) on the lockstat kernels named by
    `kernels`, such as "base,series": with lock counts, and without times."""
    series = catalog.load("v5.10")
    runs, _ = bench.run(bench.Job(
        series=series, arch=arch, test=test,
        line=tuple(bench.arguments(test, arch, args, series.kernel)), vcpus=vcpus,
        points=bench.points(series, kernels), samples=1, configs=(), counts=True, times=False,
        cpu="max", accel="tcg", params=params, kernel=KERNEL))
    return runs
